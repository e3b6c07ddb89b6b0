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
from typing import Any

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
        args.graph_name or args.dataset,
        args.num_parts,
        args.output,
        part_method=args.part_method,
        balance_ntypes=g.ndata["train_mask"] if args.kind == "plain" else None,
        balance_edges=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])

    def add(name: str, **about: Any) -> None:
        """Add an option whose name may be spelt with dashes too."""
        parser.add_argument(*dict.fromkeys([name, name.replace("_", "-")]), **about)

    add("--dataset", default="digits")
    add("--folder", help="where the files of the data set are")
    add("--options", nargs="*", type=option, default=[], metavar="NAME=NUMBER")
    add("--kind", choices=("plain", "links", "typed"), default="plain")
    add("--graph_name", help="default: that of the data set")
    add("--num_parts", type=int, default=2, help="number of machines")
    add("--part_method", help="metis, ldg or random (metis if pymetis is installed, else ldg)")
    add("--output", default="data", help="folder to write to")
    main(parser.parse_args())
