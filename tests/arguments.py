"""What public functions take: values, what is left out, what is right though it looks wrong.

Tables of tests/test_arguments.py. A value is found by the name of its parameter, or by the function
where the name says something else there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gnnlab as dgl
import gnnlab.function as fn
from gnnlab.compat.nn.hetero import HeteroEmbedding, HeteroLinear
from gnnlab.dataloading import MultiLayerFullNeighborSampler

SRC, DST = [0, 1, 2, 3, 4, 5, 0, 2, 4], [1, 2, 3, 4, 5, 0, 3, 5, 1]
USERS, FOLLOWS = 6, 9
FOLLOW = ("user", "follows", "user")

COMPAT = """functions geometry ops utils nn.conv.attention nn.conv.edges nn.conv.propagation nn.glob
    nn.hetero nn.factory nn.utils nn.conv.molecules nn.denseconv
    nn.graph_transformer nn.hgtconv nn.knowledge_graph nn.pnaconv
    transforms.augment transforms.diffusion transforms.homophily transforms.paths transforms.points
    transforms.position transforms.structure transforms.traversal
    dataloading.subgraphs sampling node2vec"""


class Nodes(list[int]):
    """Valid IDs of users, of which there are ``bound``; ``more`` are those of another type."""

    bound, words, key, more = USERS, ("node", "seed", "row"), "user", {"game": [1]}


class Edges(list[int]):
    """Valid IDs of edges."""

    bound, words, key, more = FOLLOWS, ("edge", "seed"), "follows", {"plays": [1]}


class Rows(tuple[int, ...]):
    """Shape of a feature."""

    words = "row", "feature", "weight", "label", "point"


class Types(Rows):
    """Shape of a feature of 0 and 1, the only types that there are."""

    words = "row", "type", "label"


class Name(str):
    """One of a few names or words."""

    words = ("weight",)


def one() -> Any:
    g = dgl.graph((SRC, DST))
    g.ndata["h"], g.ndata["p"] = rows(X), rows(ONE)
    g.edata["h"], g.edata["p"] = rows(EX), rows(W)
    return g


def typed() -> Any:
    plays = ("user", "plays", "game")
    g = dgl.heterograph({("user", "follows", "user"): (SRC, DST), plays: ([0, 0, 1], [0, 1, 2])})
    frames = {FOLLOWS: g.edges["follows"], USERS: g.nodes["user"]}
    for size, view in (*frames.items(), (3, g.nodes["game"]), (3, g.edges["plays"])):
        view.data["h"], view.data["p"] = rows(Rows([size, 4])), rows(Rows([size]))
    return g


def both_ways() -> Any:
    edges = {("user", "plays", "game"): ([0, 0, 1], [0, 1, 2])}
    edges["game", "by", "user"] = ([0, 1, 2], [0, 0, 1])
    return dgl.heterograph(edges, {"user": USERS, "game": 3})


def rows(shape: Rows) -> torch.Tensor:
    count = torch.arange(int(np.prod(shape)))
    values = count % 2 if isinstance(shape, Types) else count.float() % 5 + 1
    return values.reshape(tuple(shape))


def graph(w: Any) -> Any:
    return w.graph


def keep(value: Any) -> Callable[[Any], Any]:
    return lambda w: value


NODES, EDGES = Nodes([0, 2]), Edges([0, 2])
ONE, X, W, EX = Rows([USERS]), Rows([USERS, 4]), Rows([FOLLOWS]), Rows([FOLLOWS, 4])
FULL = MultiLayerFullNeighborSampler(1)
READOUT = {"feat": Name("h"), "weight": Name("p"), "op": Name("sum"), "sortby": 1}

# Values by name of the parameter; a function makes one from the world of the test.
VALUES: dict[str, Any] = {
    "g graph G rel A B block": graph,
    "graphs g_list": lambda w: [w.graph],
    "u source root nodes nids seed_nodes seeds dst_nodes src_nodes indices input_nodes": NODES,
    "always_preserve idx ids items": NODES,
    "v": Nodes([1, 3]),
    "src": Nodes([0]),
    "dst": Nodes([3]),
    "edges eid eids seed_edges exclude_edges exclude_eids excluded": EDGES,
    "feat x nfeat nfeats node_feat node_feats ufeat lhs_data lhs input_ coord_feat feat_0 pos": X,
    "h_src h_dst h_head h_tail ndata": X,
    "edge_weight efeat e_weights": W,
    "efeats edge_feat edge_feats logits rhs_data rhs": EX,
    "y label labels": Types([USERS]),
    "ntype": Name("user"),
    "etype": Name("follows"),
    "ntypes": keep(["user"]),
    "etypes": keep(["follows"]),
    "feature_names node_attrs edge_attrs node_feat_names edge_feat_names edge_attr node_attr": Name(
        "h"
    ),
    "prefetch_node_feats prefetch_labels prefetch_edge_feats prefetch_ndata prefetch_edata": Name(
        "h"
    ),
    "share_ndata share_edata in_feat_name": Name("h"),
    "prob mask weight_name eweight_name weight": Name("p"),
    "aggregator aggregate reduce reduce_op reducer agg": Name("sum"),
    "edge_dir": Name("in"),
    "form": Name("uv"),
    "order edge_permute_algo": Name("src"),
    "norm_by": Name("dst"),
    "lhs_target": Name("u"),
    "rhs_target": Name("e"),
    "op": Name("mul"),
    "fmt scipy_fmt formats": Name("coo"),
    "fanouts": keep([-1]),
    "fanout": -1,
    "graph_sampler sampler block_sampler": keep(FULL),
    "message_func func": keep(fn.copy_u("h", "m")),
    "reduce_func": keep(fn.sum("m", "out")),
    "k num_layers gid num walk_length layer_id num_traversals num_random_walks num_samples": 1,
    "num_neighbors p q key num_heads npoints partid rank seed budget": 1,
    "world_size num_parts num_rels num_types num_ntypes num_etypes": 2,
    "in_feats in_size in_feat in_node_feats in_edge_feats node_in_feats edge_in_feats feat_size": 4,
    "input_feats output_feats out_feats out_size out_feat out_node_feats out_edge_feats": 4,
    "hidden_feats hidden_size head_size rfeats embedding_dim max_degree edge_feat_size": 4,
    "alpha termination_prob delta": 0.5,
    "data": lambda w: (SRC, DST),
    "initializer": keep(lambda shape, dtype, device, rows: torch.ones(shape, dtype=dtype)),
}
# Values by function, where the name says something else there.
SPECIAL: dict[str, dict[str, Any]] = {
    "ops.e_*": {"x": EX, "y": X},
    "ops.copy_e*": {"x": EX},
    "ops.?_???_e*": {"x": X, "y": EX},
    "ops.[uv]_*": {"x": X, "y": X},
    "ops.*spmm": {"rel": lambda w: w.graph.relation(), "efeat": EX},
    "ops.sddmm": {"rel": lambda w: w.graph.relation()},
    "ops.segment_reduce": {"seglen": keep(torch.tensor([2, 3, 1])), "value": X},
    **{f"{each}_*": READOUT for each in ["readout", "sum", "mean", "max", "softmax", "topk"]},
    "*broadcast_*": {"graph_feat": Rows([1, 4])},
    "nn.GraphConv*": {"norm": Name("both"), "weight": None},
    "compat.nn.denseconv.DenseSAGEConv": {"norm": None},
    "compat.nn.denseconv.*": {"norm": Name("both")},
    "compat.nn.denseconv.*.forward": {"adj": lambda w: torch.eye(USERS)},
    "nn.SAGEConv": {"aggregator_type": Name("mean"), "norm": None},
    "nn.*Conv": {"norm": Name("both"), "aggregator_type": Name("mean"), "edge_feats": 4},
    "compat.nn.conv.*.[EG]*Conv": {"edge_feats": 4},
    "compat.nn.conv.*Conv": {"aggregator_type": Name("mean")},
    "compat.nn.conv.edges.NNConv": {"edge_func": keep(lambda e: torch.ones(len(e), 16))},
    "compat.nn.conv.edges.GMMConv*": {"dim": 4, "n_kernels": 2, "pseudo": EX},
    "compat.nn.conv.edges.GatedGraphConv*": {
        "n_steps": 1,
        "n_etypes": 2,
        "etypes": Types([FOLLOWS]),
    },
    "compat.nn.conv.propagation.GCN2Conv": {"layer": 1},
    "compat.nn.glob.GlobalAttentionPooling": {"gate_nn": lambda w: torch.nn.Linear(4, 1)},
    "compat.nn.glob.Set2Set": {"input_dim": 4, "n_iters": 1, "n_layers": 1},
    "compat.nn.utils.JumpingKnowledge.forward": {"feat_list": lambda w: [rows(X)]},
    "compat.nn.utils.LabelPropagation*": {"norm_type": Name("sym"), "mask": None},
    "compat.sampling.sample_etype_neighbors": {"etype_offset": keep([0, 5, 9])},
    "compat.dataloading.subgraphs.SAINTSampler": {"mode": Name("node")},
    "*rand_bipartite": {
        "utype": "a",
        "vtype": "b",
        "etype": "c",
        "num_edges": 3,
        "num_src_nodes": 4,
        "num_dst_nodes": 4,
    },
    "*segmented_knn_graph": {"segs": keep([2, 4])},
    "*SegmentedKNNGraph.forward": {"segs": keep([2, 4])},
    "*adius*": {"r": 2.0},
    "compat.transforms.diffusion.GDC": {"coefs": keep([0.5, 0.5])},
    "sampling.PinSAGESampler*": {
        "ntype": Name("user"),
        "other_type": Name("game"),
        "G": lambda w: both_ways(),
    },
    "plot.partition_map": {"assignment": Types([USERS])},
    "plot.sampling_tree": {"blocks": lambda w: FULL.sample(w.graph, [0])[2]},
    "plot.*": {"labels": None, "pos": Rows([USERS, 2])},
    "batch": {"ndata": keep(["h"]), "edata": keep(["h"])},
    "to_homogeneous": {"ndata": keep(["h"]), "edata": keep(["h"])},
    "to_heterogeneous": {
        "G": lambda w: dgl.to_homogeneous(w.graph),
        "ntypes": keep(["a"]),
        "etypes": keep(["b"]),
        "ntype_field": Name("_TYPE"),
        "etype_field": Name("_TYPE"),
    },
    "parallel.rank_share": {"rank": 0, "ids": keep([0, 2])},
    "data.per_class_split": {"train_per_class": 1, "num_val": 1, "num_test": 1},
    "*_homophily": {"y": Rows([USERS])},
    "distributed.DistEmbedding*": {"num_embeddings": USERS, "self": lambda w: w.embedding()},
    "distributed.DistTensor*": {"self": lambda w: w.graph.ndata["h"], "index": NODES},
    "distributed.DistTensor.__setitem__": {"value": Rows([2, 4])},
    "distributed.GraphPartitionBook*": {"self": lambda w: w.graph.get_partition_book()},
    "distributed.PartitionPolicy*": {
        "self": lambda w: w.graph.get_node_partition_policy(w.graph.ntypes[-1])
    },
    "distributed.*.map_to_per_etype": {"ids": EDGES},
    "dataloading.score": {
        "model": keep(lambda blocks, x: {t: blocks[0].dstnodes(t) for t in blocks[0].dsttypes}),
        "inputs": "h",
    },
    "*rank_among_all": {"score": keep(lambda u, v: torch.arange(6.0)[v].expand(len(u), -1))},
    "distributed.*_split": {"partition_book": lambda w: w.graph.get_partition_book(), "rank": 0},
    "distributed.*.reverse_edges": {"etype": FOLLOW, "reverse_etype": FOLLOW},
    "distributed.inclusion_probabilities": {"batch_size": 2},
    "distributed.*pick_layer": {"fanouts": lambda w: {w.graph.canonical_etypes[0]: -1}},
    "*.prop_nodes": {"nodes_generator": keep([[0], [2]])},
    "*.prop_edges": {"edges_generator": keep([[0], [2]])},
    "*segment_mm": {
        "a": X,
        "b": lambda w: torch.ones(3, 4, 4),
        "seglen_a": keep(torch.tensor([2, 3, 1])),
    },
    "*gather_mm": {"a": X, "b": lambda w: torch.ones(2, 4, 4), "idx_b": Types([USERS])},
    "nn.GINConv": {"aggregator_type": Name("max")},
    "nn.RelGraphConv*": {"norm": W, "etypes": Types([FOLLOWS]), "regularizer": Name("basis")},
    "nn.GraphConv.forward": {"weight": None},
    "*.HGTConv.forward": {"ntype": Types([USERS]), "etype": Types([FOLLOWS])},
    "*.CFConv*": {"edge_feats": EX},
    "nn.TypedLinear.forward": {"x_type": Types([USERS])},
    "*.Trans?.forward": {"rels": Types([USERS])},
    "*.Trans?": {"feats": 4, "nfeats": 4},
    "nn.TypedLinear": {"regularizer": Name("basis")},
    "nn.EdgePredictor": {"op": Name("dot")},
    "*.PNAConv.forward": {"edge_feat": None},
    "*.PNAConv": {"aggregators": keep(["mean"]), "scalers": keep(["identity"])},
    "*.BiasedMHA*": {"ndata": Rows([1, USERS, 4]), "attn_bias_type": Name("add")},
    "*.GraphormerLayer*": {"nfeat": Rows([1, USERS, 4]), "attn_bias_type": Name("add")},
    "*.DegreeEncoder*": {"degrees": Types([2, 1, USERS]), "direction": Name("both")},
    "*.WeightAndSum.forward": {"feats": X},
}
# Functions left out, and why.
SKIP: dict[str, str] = {
    "function.*": "names are looked up by update_all, which is in EXTRA",
    "*_graphs": "files",
    "partition.*": "files and whole graphs; tests/partition",
    "distributed.load_*": "files",
    "distributed.policies.Scored": "an array that a cache has counted",
    "data.*Dataset*": "files",
    "data.*Table*": "tables, as of graph_from_tables",
    "data.graph_from_tables": "tables; tests/data/test_from_tables.py",
    "append": "rows by type; tests/partition/test_append.py",
    "data.append_tables": "tables; tests/data/test_from_tables.py",
    "data.to_table": "keys; tests/data/test_from_tables.py",
    "dataloading.Sampler.sample": "abstract",
    "dataloading.Timed": "holds what a sampler checks",
    "unbatch": "numbers of nodes and edges",
    "*hetero.Hetero*": "are in EXTRA",
    "distributed.partition_graph": "whole graphs",
    "nn.HeteroGraphConv*": "is in EXTRA",
    "*.PathEncoder*": "distances and paths, as of shortest_dist",
    "*.SpatialEncoder*": "distances, as of shortest_dist",
    "*relu_dropout": "computes with any tensor",
    "*ShiftedSoftplus*": "computes with any tensor",
    "*.RadialPooling*": "distances",
    "*.AtomicConv*": "atomic numbers and distances",
    "nn.ReLUDropout*": "computes with any tensor",
    "*.draw": "called by __call__, which has checked",
    "*.pick_layer": "takes IDs that were checked",
    "*.frontier_of": "takes IDs that were checked",
    "*first_of_each": "takes IDs that were checked",
    "dataloading.set_*_lazy_features": "names are looked up when the loader fills them",
    "*SAINTSampler*": "indices count batches",
    "*ClusterGCNSampler*": "partition_ids count clusters",
    "*_scipy": "matrices",
    "*_networkx": "graphs of networkx",
    "as_*graph": "new names",
    "*pack_traces": "results of random walks",
    "*neighbor_matching": "arrays without a graph",
    "*expand_as_pair": "passes on what it gets",
    "*_subframes": "lists of IDs, one for each type",
    "*set_new_frames": "frames",
    "*maybe_select": "computes with any tensors",
    "*check_eq_shape": "passes on what it gets",
    "Graph": "made by dgl.graph",
    "Block": "made by dgl.to_block",
    "*.derive": "for the library",
    "*.as_ids": "for the library",
    "distributed.DistEmbedding.traced": "for the library",
    "nn.GATConv.finish": "the end of forward, which has checked",
    "errors.*": "for the library",
    "helpers.*": "files to copy, with errors of Python; tests/test_helpers.py",
    "fork.*": "no graph but prepare_mp(graph)",
    "trace.*": "no graph",
    "simulate.*": "a job",
    "distributed.DistGraphServer": "a server",
    "distributed.Sparse*": "embeddings",
    "distributed.optim.*": "embeddings",
    "*Process": "Python's",
}
# Parameters that take no IDs, features, masks or names, though they are called so.
PLAIN = """*_size num_* copy_* return_* has_* store_* load_* balance_* project_* init_* share_*
    new_* *_attr ?_attrs *_nn *_edge *_drop attn_mask apply_* restart_prob keep_orig_edges start_idx
    feat_name eigval_name out_feat_name weight_column reverse_e* edge_id_attr_name net_type part_id
    etype_sorted graph_name features relabel_nodes preserve_nodes server_id sorted_by_type feat_dim
    sym_new_etype add_reverse_edges etype_dict node_permute_algo use_* *_trainer_ids *_ranges
    graph_format* name label_*"""
WATCHED = """node nodes edge edges nid nids eid eids id ids idx index indices seeds feat feats
    feature features label labels mask prob weight weights type types ntype ntypes etype etypes
    name names attr attrs ndata edata"""
# Right though they are neither: pattern of "function parameter: mistake" → why.
EXEMPT: dict[str, str] = {
    "*add_edges [uv]: no such ID": "adds the nodes",
    "*has_nodes nodes: n*": "says that they do not exist",
    "*has_edges_between [uv]: n*": "says that there is no edge",
    "*subgraph nodes: duplicates": "nodes are distinct; it would cost a sort to know",
    "*sample_* nodes: duplicates": "nodes are distinct; it would cost a sort to know",
    "dataloading.score nodes: duplicates": "a row for each",
    "dataloading.score nodes: one type": "returns the types that were given",
    "*khop_*subgraph nodes: one type": "returns the positions of the types that were given",
    "*send_and_recv edges: duplicates": "sends two messages",
    "EXTRA.hetero_embedding ids: duplicates": "a row for each",
    "EXTRA.hetero_embedding ids: *type": "takes those of one type here",
    "EXTRA.hetero_linear feat: *rows": "any number of rows",
    "*.sample* seed_nodes: one type": "returns the types that were given",
    "*EdgePredictionSampler.sample seed_edges: duplicates": "edges may be repeated",
    "*DegreePower* eids: duplicates": "draws by position",
    "*LabelPropagation.forward labels: unknown type": "any class",
    "EXTRA.pyg_link_loader edges: duplicates": "yields the ends of each",
    "EXTRA.pyg_loader nodes: duplicates": "yields the seeds as they are",
    "EXTRA.pyg_loader ntype: [[7]*": "where no text comes first, all are seeds without a type",
    "*edge_subgraph edges: duplicates": "edges may be repeated, their ends are not",
    "*negative_sampler.* eids: one type": "returns the types that were given",
    "*PinSAGESampler* seed_nodes: duplicates": "draws for each seed",
    "*setitem__ value: a number": "fills all rows",
    "*setitem__ value: fewer rows": "one row fills all",
    "distributed.*_subgraph nodes: no type": "IDs of the homogeneous graph",
    "distributed.*neighbors nodes: no type": "IDs of the homogeneous graph",
    "*prop_edges_dfs source: duplicates": "walks from each",
    "*bfs_nodes_generator source: duplicates": "yields the sources as they are",
    "*_random_walk nodes: duplicates": "draws for each node",
    "*create_dataloader nids: duplicates": "ranks share the list",
    "*diffusion.[GHP]* eweight_name: 'no such'": "weights are 1 where there is no feature",
    "*.adj_product_graph etype: 'no such'": "a new name",
    "*_graph* x: *rows": "any number of points",
    "*Graph.forward x: *rows": "any number of points",
    "*.BiasedMHA.forward ndata: *rows": "any number of graphs",
    "*.GraphormerLayer.forward nfeat: *rows": "any number of graphs",
    "compat.functions.broadcast_* graph_feat: *": "of one graph, any shape, as in DGL",
    "compat.functions.bipartite etype: 'no such'": "a new name",
    "nn.GATConv.check *": "forward checks the rows",
    "*.DegreeEncoder.forward degrees: unknown type": "larger degrees count as the largest",
    "plot.partition_map assignment: unknown type": "parts may be empty",
    "*.edge_label_informativeness y: unknown type": "any class",
}


# ------------------------------------------------------------------ what is no function
def set_ndata(graph, feat):
    graph.ndata["new"] = {"user": feat} if len(graph.ntypes) > 1 else feat


def set_edata(graph, efeats):
    graph.edata["new"] = {"follows": efeats} if len(graph.etypes) > 1 else efeats


def set_node_frame(graph, feat, ntype=None):
    graph.nodes[ntype or "_N"].data["new"] = feat


def nodes(graph, ntype=None):
    return graph.nodes(ntype)


def edges(graph, form="uv", order="eid", etype=None):
    return graph.edges(form=form, order=order, etype=etype)


def one_type(graph, etype):
    return graph[etype]


def read_feature(graph, mask):
    return graph.ndata[mask], graph.edata[mask]


def update_all(graph, mask):
    graph.update_all(fn.u_mul_e("h", mask, "m"), fn.sum("m", "new"))


def hetero_conv(graph, feat):
    layer = dgl.nn.HeteroGraphConv({r: dgl.nn.GraphConv(4, 1) for r in ("_E", "follows", "plays")})
    more = {"game": torch.ones(3, 4)} if len(graph.ntypes) > 1 else {}
    return layer(graph, {graph.ntypes[-1]: feat, **more})


def hetero_linear(graph, feat):
    return HeteroLinear({"user": 4}, 2)({"user": feat})["user"]


def hetero_embedding(graph, ids):
    key, rows = next(iter(ids.items())) if isinstance(ids, dict) else ("user", ids)
    return HeteroEmbedding({"user": USERS}, 2)({key: rows})[key]


def filter_nodes(graph, nodes, ntype=None):
    return graph.filter_nodes(lambda batch: batch.data["p"] > 0, nodes, ntype)


def filter_edges(graph, edges, etype=None):
    return graph.filter_edges(lambda batch: batch.data["p"] > 0, edges, etype)


def pyg_loader(graph, nodes, ntype=None):
    loader = pytest.importorskip("gnnlab.pyg.loader", exc_type=ImportError)
    seeds = nodes if ntype is None else (ntype, nodes)
    made = loader.NeighborLoader(graph, [-1], input_nodes=seeds, batch_size=FOLLOWS)
    return [(batch if ntype is None else batch[ntype]).n_id for batch in made]


def pyg_link_loader(graph, edges, etype=None):
    loader = pytest.importorskip("gnnlab.pyg.loader", exc_type=ImportError)
    seeds = edges if etype is None else (("user", etype, "user"), edges)
    made = loader.LinkNeighborLoader(graph, [-1], edge_label_index=seeds, batch_size=FOLLOWS)
    return [(batch if etype is None else batch["user"]).n_id for batch in made]


def new_nodes(graph, feat, ntype=None):
    graph.add_nodes(USERS, {"h": feat}, ntype)


def new_edges(graph, efeats, etype=None):
    graph.add_edges(SRC, DST, {"h": efeats}, etype)


EXTRA = [set_ndata, set_edata, set_node_frame, nodes, edges, one_type, read_feature, update_all]
EXTRA += [filter_nodes, filter_edges, hetero_linear, hetero_embedding, hetero_conv, pyg_loader]
EXTRA += [pyg_link_loader, new_nodes, new_edges]
