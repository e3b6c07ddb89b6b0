"""Cut a data set into parts, one for each machine.

    python3 partition.py --dataset digits --num_parts 3 --output data

writes ``data/digits.json`` and ``data/part0`` … ``data/part2``. Data sets are those of
``gnnlab.data.load``: digits comes with the package, others are downloaded, products-like is
generated. ``--kind`` says what the graph is to be used for:

plain   nodes with features and labels: train_dist.py, train_dist_transductive.py
links   each link is an edge of type "links" and one of type "linked_by", so that a model which
        predicts links can leave both out of what it looks at: train_dist_link.py
typed   "item" nodes have features and labels, "word" nodes have neither; an item has the words
        that stand out among its features: train_dist_hetero.py
"""

import argparse

import torch

import gnnlab as dgl

NEAR, HAS, IN = ("item", "near", "item"), ("item", "has", "word"), ("word", "in", "item")
LINKS, LINKED_BY = ("node", "links", "node"), ("node", "linked_by", "node")


def with_links(g: dgl.DGLGraph) -> dgl.DGLGraph:
    """Give each direction of a link a type of its own; keep one link of ten for the test."""
    src, dst = g.edges()
    typed = dgl.heterograph({LINKS: (src, dst), LINKED_BY: (dst, src)}, {"node": g.num_nodes()})
    typed.ndata["feat"] = g.ndata["feat"]
    test = torch.rand(len(src), generator=torch.Generator().manual_seed(0)) < 0.1
    for name in ("links", "linked_by"):
        typed.edges[name].data.update(train_mask=~test, test_mask=test)
    return typed


def with_words(g: dgl.DGLGraph, per_item: int = 8) -> dgl.DGLGraph:
    """Add a node for each feature, and join items to those that are largest in them."""
    num_items, num_words = g.ndata["feat"].shape
    items = torch.arange(num_items).repeat_interleave(per_item)
    words = g.ndata["feat"].topk(per_item).indices.flatten()
    typed = dgl.heterograph(
        {NEAR: g.edges(), HAS: (items, words), IN: (words, items)},
        {"item": num_items, "word": num_words},
    )
    typed.nodes["item"].data.update(g.ndata)
    return typed


def option(text: str) -> tuple[str, int]:
    """Read ``name=number``, an option of ``gnnlab.data.load``."""
    name, number = text.split("=")
    return name, int(number)


def main(args: argparse.Namespace) -> None:
    """Load, change, cut and write."""
    dataset = dgl.data.load(
        args.dataset,
        add_reverse_edges=args.kind != "links",
        folder=args.folder,
        **dict(args.options),
    )
    g = dataset[0]
    if args.kind != "plain":
        g = with_links(g) if args.kind == "links" else with_words(g)
    dgl.distributed.partition_graph(
        g,
        args.graph_name or args.dataset.replace("-", "_"),
        args.num_parts,
        args.output,
        part_method=args.part_method,
        balance_ntypes=g.ndata["train_mask"] if args.kind == "plain" else None,
        balance_edges=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--folder", help="where the files of the data set are")
    parser.add_argument("--options", nargs="*", type=option, default=[], metavar="NAME=NUMBER")
    parser.add_argument("--kind", choices=("plain", "links", "typed"), default="plain")
    parser.add_argument("--graph_name", help="default: that of the data set")
    parser.add_argument("--num_parts", type=int, default=2, help="number of machines")
    parser.add_argument("--part_method", default="metis", help="metis, ldg or random")
    parser.add_argument("--output", default="data", help="folder to write to")
    main(parser.parse_args())
