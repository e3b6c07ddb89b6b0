"""Each public function gives, for any IDs, features, masks and names, a right result or an error.

The functions are read from the package. A value is made for each parameter by its name; then one
parameter at a time gets what users give by mistake: duplicates, nothing, masks of all dtypes, a
wrong length, unusual dtypes, unknown names, one type of a typed graph left out. The result must
equal that of the valid IDs, or the error name the argument. A function or a parameter that the
tables lack fails.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

import numpy as np
import pytest
import torch

import gnnlab as dgl
import gnnlab.function as fn
from gnnlab.compat import methods
from gnnlab.dataloading import (
    DataLoader,
    EdgePredictionSampler,
    MultiLayerFullNeighborSampler,
    NodeCollator,
    Sampler,
    negative_sampler,
)
from gnnlab.distributed import DistGraph, DistTensor
from gnnlab.errors import GNNLabError
from tests.test_public_names import public_names

SRC, DST = [0, 1, 2, 3, 4, 5, 0, 2, 4], [1, 2, 3, 4, 5, 0, 3, 5, 1]
USERS, FOLLOWS = 6, 9
FOLLOW = ("user", "follows", "user")
COMPAT = [
    "functions",
    "geometry",
    "ops",
    "utils",
    "nn.conv.attention",
    "nn.conv.edges",
    "nn.conv.propagation",
    "nn.glob",
    "nn.hetero",
    "nn.factory",
    "nn.utils",
    "dataloading.subgraphs",
    "sampling.neighbor",
]


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
    "broadcast_*": {"graph_feat": Rows([1, 4])},
    "nn.*SAGEConv": {"aggregator_type": Name("mean"), "norm": None},
    "nn.GraphConv*": {"norm": Name("both"), "weight": None},
    "nn.*Conv": {"norm": Name("both"), "aggregator_type": Name("mean"), "edge_feats": 4},
    "compat.nn.conv.*.E*Conv": {"edge_feats": 4},
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
    "compat.sampling.neighbor.sample_etype_neighbors": {"etype_offset": keep([0, 5, 9])},
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
    "transforms.GDC*": {"coefs": keep([0.5, 0.5])},
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
    "distributed.*_split": {"partition_book": lambda w: w.graph.get_partition_book(), "rank": 0},
    "distributed.*.reverse_edges": {"etype": FOLLOW, "reverse_etype": FOLLOW},
    "distributed.*pick_layer": {"fanouts": lambda w: {w.graph.canonical_etypes[0]: -1}},
    "transforms.prop_nodes": {"nodes_generator": keep([[0], [2]])},
    "transforms.prop_edges": {"edges_generator": keep([[0], [2]])},
    "nn.SAGEConv": {"aggregator_type": Name("mean"), "norm": None},
    "nn.GINConv": {"aggregator_type": Name("max")},
    "nn.RelGraphConv*": {"norm": W, "etypes": Types([FOLLOWS]), "regularizer": Name("basis")},
    "nn.GraphConv.forward": {"weight": None},
    "nn.HGTConv.forward": {"ntype": Types([USERS]), "etype": Types([FOLLOWS])},
    "nn.CFConv*": {"edge_feats": EX},
    "nn.TypedLinear.forward": {"x_type": Types([USERS])},
    "nn.Trans?.forward": {"rels": Types([USERS])},
    "nn.Trans?": {"feats": 4, "nfeats": 4},
    "nn.TypedLinear": {"regularizer": Name("basis")},
    "nn.EdgePredictor": {"op": Name("dot")},
    "nn.PNAConv.forward": {"edge_feat": None},
    "nn.PNAConv": {"aggregators": keep(["mean"]), "scalers": keep(["identity"])},
    "nn.BiasedMHA*": {"ndata": Rows([1, USERS, 4]), "attn_bias_type": Name("add")},
    "nn.GraphormerLayer*": {"nfeat": Rows([1, USERS, 4]), "attn_bias_type": Name("add")},
    "nn.DegreeEncoder*": {"degrees": Types([2, 1, USERS]), "direction": Name("both")},
    "nn.Dense*.forward": {"adj": lambda w: torch.eye(USERS)},
    "nn.WeightAndSum.forward": {"feats": X},
}
# Functions left out, and why.
SKIP: dict[str, str] = {
    "function.*": "names are looked up by update_all, which is in EXTRA",
    "data.*": "reads and writes files; tests/data has damaged ones",
    "*_graphs": "files",
    "partition.*": "files and whole graphs; tests/partition",
    "distributed.load_*": "files",
    "distributed.partition_graph": "whole graphs",
    "nn.HeteroGraphConv*": "is in EXTRA",
    "*hetero.Hetero*": "tensors by type, without a graph",
    "nn.PathEncoder*": "distances and paths, as of shortest_dist",
    "nn.SpatialEncoder*": "distances, as of shortest_dist",
    "*relu_dropout": "computes with any tensor",
    "nn.ReLUDropout*": "computes with any tensor",
    "*.draw": "called by __call__, which has checked",
    "*.sample_frontier": "called by sample_blocks, which has checked",
    "*Sampler.sample": "called by loaders, which have checked",
    "*.sample_blocks": "called by loaders, which have checked",
    "*.collate": "takes items of its dataset",
    "*.pick_layer": "takes IDs that were checked",
    "*first_of_each": "takes IDs that were checked",
    "dataloading.set_*_lazy_features": "names are looked up when the loader fills them",
    "*SAINTSampler*": "indices count batches",
    "*ClusterGCNSampler*": "partition_ids count clusters",
    "*_scipy": "matrices",
    "*_networkx": "graphs of networkx",
    "as_*graph": "new names",
    "unbatch": "numbers of graphs",
    "*pack_traces": "results of random walks",
    "*gather_mm": "matrices",
    "*neighbor_matching": "arrays without a graph",
    "*expand_as_pair": "passes on what it gets",
    "*check_eq_shape": "passes on what it gets",
    "Graph": "made by dgl.graph",
    "Block": "made by dgl.to_block",
    "*.derive": "for the library",
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
    "*khop_*subgraph nodes: one type": "returns the positions of the types that were given",
    "*send_and_recv edges: duplicates": "sends two messages",
    "*EdgeCollator eids: duplicates": "edges may be repeated, their ends are not",
    "*edge_subgraph edges: duplicates": "edges may be repeated, their ends are not",
    "*DegreePower* eids: *": "draws by position and type",
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
    "transforms.GDC eweight_name: 'no such'": "weights are 1 where there is no feature",
    "transforms.[GHP]* eweight_name: 'no such'": "weights are 1 where there is no feature",
    "transforms.adj_product_graph etype: 'no such'": "a new name",
    "*_graph* x: *rows": "any number of points",
    "*Graph.forward x: *rows": "any number of points",
    "nn.BiasedMHA.forward ndata: *rows": "any number of graphs",
    "nn.GraphormerLayer.forward nfeat: *rows": "any number of graphs",
    "nn.AGNNConv.check *": "forward checks the rows",
    "nn.DegreeEncoder.forward degrees: unknown type": "larger degrees count as the largest",
    "plot.partition_map assignment: unknown type": "parts may be empty",
    "transforms.edge_label_informativeness y: unknown type": "any class",
    "*LabelPropagation.forward labels: *": "classes or rows of any number",
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


def new_nodes(graph, feat, ntype=None):
    graph.add_nodes(USERS, {"h": feat}, ntype)


def new_edges(graph, efeats, etype=None):
    graph.add_edges(SRC, DST, {"h": efeats}, etype)


EXTRA = [set_ndata, set_edata, set_node_frame, nodes, edges, one_type, read_feature, update_all]
EXTRA += [hetero_conv, new_nodes, new_edges]


def functions() -> Iterator[tuple[str, Any]]:
    """Name and value of each public function, class and method."""
    modules = [importlib.import_module(f"gnnlab.compat.{place}") for place in COMPAT]
    methods.unbind()
    for line in public_names():
        if match := re.fullmatch(r"gnnlab\.([\w.]+)\((.*)\)", line):
            value: Any = dgl
            for part in match[1].split("."):
                value = getattr(value, part)
            yield match[1], value
    for place, module in zip(COMPAT, modules, strict=True):
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") == module.__name__ and name[0] != "_":
                yield f"compat.{place}.{name}", value
                for method in ("forward", "sample"):
                    if inspect.isclass(value) and method in vars(value):
                        yield f"compat.{place}.{name}.{method}", vars(value)[method]


def parameters(value: Any) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(value).parameters.values())
    except ValueError:  # a class of exceptions
        return []
    return [p for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


# ------------------------------------------------------------------------------- calls
class World:
    """A graph of one kind, fresh for each call: "one" type, "typed", a block, or in parts."""

    def __init__(self, kind: str, folder: Any) -> None:
        self.kind, self.folder, self.typed = kind, folder, kind.startswith("typed")
        self.fresh()

    def fresh(self) -> None:
        torch.default_generator.manual_seed(0)
        dgl.seed(0)
        found = start(self.kind, self.folder)
        self.graph = found if isinstance(found, DistGraph) else found.clone()

    def embedding(self) -> Any:
        return dgl.distributed.DistEmbedding(USERS, 2, "e", part_policy=policy(self.graph))


def policy(g: Any) -> Any:
    return g.get_node_partition_policy(g.ntypes[-1])


@functools.cache
def start(kind: str, folder: Any) -> Any:
    g = typed() if kind.startswith("typed") else one()
    if kind.endswith("block"):
        return dgl.to_block(g)
    if not kind.endswith("parts"):
        return g
    name = kind.replace(" ", "-")
    dgl.distributed.partition_graph(g, name, 2, folder, part_method=halves)
    dgl.distributed.initialize()
    return DistGraph(name, part_config=folder / f"{name}.json")


def halves(g: Any, num_parts: int) -> Any:
    parts = {t: torch.arange(g.num_nodes(t)) * 2 // g.num_nodes(t) for t in g.ntypes}
    return parts if len(parts) > 1 else next(iter(parts.values()))


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


FLAT = {name: value for names, value in VALUES.items() for name in names.split()}
PUBLIC = {**dict(functions()), **{f"EXTRA.{each.__name__}": each for each in EXTRA}}


@functools.cache
def given(path: str, name: str) -> Any:
    """What the tables have for a parameter; KeyError if nothing."""
    for pattern, values in SPECIAL.items():
        if fnmatch(path, pattern) and name in values:
            return values[name]
    return FLAT[name]


def is_given(path: str, name: str) -> bool:
    try:
        given(path, name)
    except KeyError:
        return False
    return True


def matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(text, pattern) for pattern in patterns)


class Call:
    """A public function with arguments made for a world."""

    def __init__(self, path: str, value: Any, w: World) -> None:
        self.path, self.w, self.value = path, w, value
        self.signature = {p.name: p for p in parameters(value)}
        self.has_type = bool({"ntype", "etype"} & self.signature.keys())

    def names(self) -> list[str]:
        """Parameters to be tested."""
        found = [
            n for n in self.signature if is_given(self.path, n) and not matches(n, PLAIN.split())
        ]
        return [n for n in found if isinstance(given(self.path, n), Nodes | Edges | Rows | Name)]

    def argument(self, name: str) -> Any:
        value = given(self.path, name)
        if isinstance(value, Nodes | Edges):
            whole = self.w.typed and not self.has_type
            return {value.key: list(value), **value.more} if whole else list(value)
        if isinstance(value, Rows):
            return rows(value)
        if isinstance(value, Name):
            return str(value)
        return value(self.w) if callable(value) else value

    def owner(self) -> tuple[Any, ...]:
        """The object of a method."""
        owner = self.path.rpartition(".")[0]
        if not inspect.isclass(PUBLIC.get(owner)):
            return ()
        if issubclass(PUBLIC[owner], dgl.Graph | DistGraph):
            return (self.w.graph,)
        if is_given(self.path, "self"):
            return (given(self.path, "self")(self.w),)
        return (Call(owner, PUBLIC[owner], self.w).run({}),)

    def run(self, changed: Mapping[str, Any]) -> Any:
        owner = self.owner()
        types = {"ntype", "etype"} if self.w.typed else set()
        arguments = {
            name: changed[name] if name in changed else self.argument(name)
            for name, p in list(self.signature.items())[len(owner) :]
            if name in changed or p.default is p.empty or name in types
        }
        return self.value(*owner, **arguments)

    def __call__(self, changed: Mapping[str, Any]) -> tuple[str, Any]:
        """("result", value), ("error", text), or ("fault", text) for an error that is not ours."""
        self.w.fresh()
        try:
            result = self.used(self.run(changed))
            return "result", (plain(result), plain(self.w.graph))
        except GNNLabError as error:
            return "error", str(error)
        except Exception as error:
            return "fault", f"{type(error).__name__}: {error}"

    def used(self, result: Any) -> Any:
        """What an object that was made does with the graph."""
        g, typed = self.w.graph, self.w.typed
        nodes, edges = ({e.key: e, **e.more} if typed else list(e) for e in (NODES, EDGES))
        if isinstance(result, dgl.BaseTransform):
            return result(g)
        if isinstance(result, Sampler):
            seeds = edges if isinstance(result, EdgePredictionSampler) else nodes
            return DataLoader(g, seeds, result, batch_size=FOLLOWS)
        if isinstance(result, negative_sampler.NegativeSampler):
            return result(g, edges)
        if isinstance(result, NodeCollator):
            return [result.collate(items) for items in [list(result.dataset)] if items]
        return result


def plain(value: Any) -> Any:
    """Numbers, texts and tuples; lists are rows of a tensor."""
    if isinstance(value, dgl.Graph):
        frames = [dict(f) for f in (value.srcdata, value.dstdata, value.edata)]
        sizes = {t: value.num_src_nodes(t) for t in value.srctypes}
        return plain((sizes, {e: value.edges(etype=e) for e in value.canonical_etypes}, *frames))
    if isinstance(value, DistGraph):
        return "DistGraph"
    if isinstance(value, DistTensor):
        value = value[torch.arange(len(value))]
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray | torch.Tensor):
        value = torch.as_tensor(value).detach()
        value = value.to_dense() if value.is_sparse or value.is_sparse_csr else value
        value = value.real if value.is_complex() else value
        return value.double().round(decimals=3).nan_to_num(-77).tolist()
    if isinstance(value, str | type(None)):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Mapping):
        return tuple((str(k), plain(v)) for k, v in value.items())
    return tuple(plain(v) for v in value) if isinstance(value, Iterable) else type(value).__name__


def joined(many: list[Any]) -> Any:
    """Rows of several results, one after the other."""
    if all(isinstance(each, list) for each in many):
        return [row for each in many for row in each]
    if all(isinstance(each, tuple) and len(each) == len(many[0]) for each in many):
        return tuple(joined(list(column)) for column in zip(*many, strict=True))
    return many[0]


# ------------------------------------------------------------------------------- mistakes
MASKS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16]
Mistake = tuple[str, Any, list[Any]]  # what it is, the value, and the results that would be right


def wrong_ids(ids: Any, give: Callable[[Any], Any]) -> Iterator[Mistake]:
    base, ids, bound = give(list(ids)), list(ids), ids.bound
    each = [give([i])[1] for i in (*ids, ids[0])]
    repeated = give([*ids, ids[0]])
    yield "duplicates", [*ids, ids[0]], [base[1], (joined([r[0] for r in each]), base[1][1])]
    mask = torch.zeros(bound, dtype=torch.bool)
    mask[ids] = True
    yield "bool mask", mask, [base[1]]
    for dtype in MASKS:  # where IDs may be repeated, those of the usual dtypes are IDs
        may = repeated[0] == "result" != base and dtype in (torch.int32, torch.int64)
        as_ids = [give(mask.long().tolist())[1]] if may and repeated != base else []
        yield f"mask of {dtype}", mask.to(dtype), [base[1], *as_ids]
    for size in (bound - 1, bound + 1):
        yield f"mask of length {size - bound:+}", torch.ones(size).bool(), []
    yield "IDs of torch.uint16", torch.tensor(ids).to(torch.uint16), [base[1]]
    for dtype in (torch.complex64, torch.float32):
        yield f"IDs of {dtype}", torch.tensor(ids).to(dtype), []
    nothing = give(torch.empty(0, dtype=torch.int64))[1]
    for empty in ([], torch.empty(0), np.array([])):
        yield f"nothing, a {type(empty).__name__}", empty, [nothing]
    yield "no such ID", [bound], []
    yield "negative ID", [-1], []
    yield "text", ["a"], []


def wrong_rows(shape: Rows, give: Callable[[Any], Any]) -> Iterator[Mistake]:
    good = rows(shape)
    base = give(good)[1]
    for label, bad in ("fewer", good[:-1]), ("more", torch.cat([good, good[:1]])), ("no", good[:0]):
        yield f"{label} rows", bad, []
    yield "a number", good.flatten()[0], []
    for dtype in (torch.uint16, torch.int64, torch.complex64):
        yield f"rows of {dtype}", good.to(dtype), [base]
    if isinstance(shape, Types):
        yield "unknown type", good + 90, []


def wrong_names(name: Name, give: Callable[[Any], Any]) -> Iterator[Mistake]:
    for bad in ("no such", 7, ["no such"]):
        yield repr(bad), bad, []


def mistakes(call: Call, name: str) -> Iterator[Mistake]:
    kind = given(call.path, name)
    if isinstance(kind, Rows | Name):
        make = wrong_rows if isinstance(kind, Rows) else wrong_names
        yield from make(kind, lambda value: call({name: value}))  # type: ignore[operator]
        return
    whole = isinstance(call.argument(name), dict)

    def typed(ids: Any) -> Any:
        return {kind.key: ids, **kind.more} if whole else ids

    for label, bad, right in wrong_ids(kind, lambda ids: call({name: typed(ids)})):
        yield label, typed(bad), right
    if whole:
        only = {kind.key: list(kind)}
        yield "one type", only, [call({name: {**only, **{key: [] for key in kind.more}}})[1]]
        yield "unknown type", {"nope": [0]}, []
        yield "no type", list(kind), []


def faults(path: str, value: Any, w: World) -> Iterator[tuple[str, str]]:
    """("function parameter: mistake", what happened) for each mistake that does harm."""
    call = Call(path, value, w)
    for name in call.names():
        kind, found = call({name: call.argument(name)})
        if kind == "fault":
            yield f"{path} {name}: valid", found
        if kind != "result":
            continue  # an error: the function does not take this kind of graph
        words = {name, *getattr(given(path, name), "words", ())}
        for label, bad, right in mistakes(call, name):
            kind, found = call({name: bad})
            if kind == "error":
                texts = [
                    *words,
                    *(repr(each) for each in (bad if isinstance(bad, list) else [bad])),
                ]
                good = any(text in found.lower() for text in texts)
            else:
                good = kind == "result" and found in right
            if not good:
                yield f"{path} {name}: {label}", "a wrong result" if kind == "result" else found


def worlds(path: str) -> list[str]:
    """Kinds of graphs to call a function with."""
    if any(part in path for part in ("DistTensor", "DistEmb", "Book", "Policy")):
        return ["parts"]
    if path.startswith("distributed") or "DistN" in path or "DistE" in path:
        return ["parts", "typed parts"]
    if path.startswith("Block."):
        both_sides = path == "Block.has_nodes"  # counts those of both
        return ["one", "typed", *(() if both_sides else ("typed block",))]
    if path.startswith(("nn", "compat.nn", "ops")):
        return ["block" if path.startswith("ops") or "Conv" in path else "one"]
    return ["one", "typed"]


def one_name_each() -> list[str]:
    """Each function under one name."""
    names = {inspect.unwrap(PUBLIC[path]): path for path in reversed(PUBLIC)}
    return [path for path in names.values() if not matches(path, SKIP)][::-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    methods.unbind()
    return tmp_path_factory.mktemp("parts")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", one_name_each())
def test_wrong_arguments(path: str, folder: Any) -> None:
    """Neither wrong results, nor errors that are not ours or do not name the argument."""
    unknown = [
        p.name
        for p in parameters(PUBLIC[path])
        if {*WATCHED.split()} & {*p.name.split("_")} and not is_given(path, p.name)
        if not matches(p.name, PLAIN.split())
    ]
    assert not unknown, f"say in the tables what {unknown} are"
    found = dict(x for w in worlds(path) for x in faults(path, PUBLIC[path], World(w, folder)))
    wrong = {k: v for k, v in found.items() if not matches(k, EXEMPT)}
    assert not wrong, "\n".join(f"{mistake}: {what[:200]}" for mistake, what in wrong.items())
