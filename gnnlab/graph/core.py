"""The base class of graphs: types, counts, features, and deriving a graph from another.

A graph stores structure (:class:`~gnnlab.graph.relation.Relation`, one per edge type) separately
from features (:class:`~gnnlab.graph.frame.Frame`, one per type). The other modules of this package
are functions of a :class:`GraphCore`; ``graph.py`` binds them to :class:`Graph` as methods. They
make their results by :meth:`GraphCore.derive`, so a result has the class of the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self, TypeVar

import torch

from gnnlab.errors import InvalidInput, no_graph
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import EdgeType, complete_etype, complete_ntype, listing
from gnnlab.graph.relation import Relation
from gnnlab.graph.views import NodeView, by_side, frame_view, two_sides

GraphT = TypeVar("GraphT", bound="GraphCore")

METHODS: dict[str, Any] = {}
"""Name -> function of a graph, or property, that graphs have besides the members of their class.

A package above this one adds its own when it is imported; see ``gnnlab/compat/methods.py``.
"""

_MOST = {dtype: torch.iinfo(dtype).max for dtype in (torch.int32, torch.int64)}


def check_counts(counts: Iterable[int], idtype: torch.dtype, what: str) -> None:
    """Raise InvalidInput unless the numbers of nodes or edges of each type fit into a dtype."""
    if (most := max(counts, default=0)) > _MOST.get(idtype, 0):
        more = (
            "" if idtype is torch.int64 else "; int64 holds more: idtype=torch.int64, or g.long()"
        )
        raise InvalidInput(f"{most} {what} do not fit into IDs of {idtype}{more}")


def refuse_block(g: GraphCore, what: str) -> None:
    """Raise InvalidInput if a function for graphs was called with a block, or with no graph."""
    if not isinstance(g, GraphCore):
        no_graph(g, what)
    if g.is_block:
        raise InvalidInput(
            f"{what} needs a graph, found a block, whose source and destination nodes are numbered "
            "apart; change the graph before it is cut into blocks"
        )


def copied_node_frames(g: GraphCore, copy: bool = True) -> dict[str, Frame] | None:
    """Return frames for a graph with the same nodes, or None without ``copy``."""
    return {name: frame.copy() for name, frame in g.node_frames().items()} if copy else None


def _check_initializer(initializer: Any) -> None:
    if not callable(initializer):
        raise InvalidInput(
            "an initializer is a function of shape, dtype, device and a slice of IDs; found "
            f"{initializer!r}"
        )


class GraphCore:
    """Types, counts and features; base class of :class:`~gnnlab.graph.graph.Graph`."""

    is_block = False
    #: What a sampler has named for a loader to gather: (sides, names of features), any number of
    #: times. A part of the graph, so that a worker process returns it too.
    named_to_prefetch: tuple[tuple[tuple[str, ...], Any], ...] = ()

    def __init__(
        self,
        num_nodes: Mapping[str, int],
        relations: Mapping[EdgeType, Relation],
        node_frames: Mapping[str, Frame] | None = None,
        edge_frames: Mapping[EdgeType, Frame] | None = None,
        idtype: torch.dtype = torch.int64,
        device: torch.device | None = None,
    ) -> None:
        #: Edge type -> its edges.
        self.relations = dict(relations)
        self._idtype = idtype
        self._device = device or next(
            (relation.device for relation in self.relations.values()), torch.device("cpu")
        )
        frames = self._frames(num_nodes, node_frames, "node")
        self._ntypes = list(frames)
        #: Node type -> features of sources, and of destinations: one dict unless this is a block.
        self.src_frames, self.dst_frames = two_sides(frames, self.relations)
        num_edges = {etype: relation.num_edges for etype, relation in self.relations.items()}
        #: Edge type -> features.
        self.edge_frames = self._frames(num_edges, edge_frames, "edge")
        self._formats: list[str] | None = None
        self._batch: Any = None

    if not TYPE_CHECKING:  # mypy should find what is no attribute

        def __getattr__(self, name: str) -> Any:
            if name in METHODS:
                return METHODS[name].__get__(self, type(self))
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *METHODS})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # torch.load(…, map_location="cpu") reads tensors to another device than they were on.
        place = next((relation.device for relation in self.relations.values()), self._device)
        if place != self._device:
            self._device = place
            self._change_frames(lambda frame: frame.to(place))

    def _frames(
        self, sizes: Mapping[Any, int], given: Mapping[Any, Frame] | None, what: str
    ) -> dict[Any, Frame]:
        given = given or {}
        check_counts(sizes.values(), self._idtype, f"{what}s")
        return {
            name: given[name] if name in given else Frame(size, None, self._device, what)
            for name, size in sizes.items()
        }

    def derive(
        self,
        relations: Mapping[EdgeType, Relation],
        num_nodes: Mapping[str, int] | None = None,
        node_frames: Mapping[str, Frame] | None = None,
        edge_frames: Mapping[EdgeType, Frame] | None = None,
    ) -> Self:
        """Make a graph with the node types of this one and other edges; features only as given."""
        sizes = num_nodes or {name: frame.num_rows for name, frame in self.node_frames().items()}
        return type(self)(sizes, relations, node_frames, edge_frames, self._idtype, self._device)

    # ------------------------------------------------------------------ types
    @property
    def ntypes(self) -> list[str]:
        """Node types, in the order of their type IDs."""
        return list(self._ntypes)

    def node_frames(self) -> dict[str, Frame]:
        """Frames of both sides by type."""
        if self.dst_frames is self.src_frames:
            return self.src_frames
        both = {**self.src_frames, **self.dst_frames}
        return {ntype: both[ntype] for ntype in self._ntypes}

    @property
    def srctypes(self) -> list[str]:
        """Node types on the source side."""
        return list(self.src_frames)

    @property
    def dsttypes(self) -> list[str]:
        """Node types on the destination side."""
        return list(self.dst_frames)

    @property
    def etypes(self) -> list[str]:
        """Relation names, in the order of their type IDs; a name may occur twice."""
        return [etype[1] for etype in self.relations]

    @property
    def canonical_etypes(self) -> list[EdgeType]:
        """Triples (source type, relation, destination type), in the order of their type IDs."""
        return list(self.relations)

    @property
    def is_homogeneous(self) -> bool:
        """Whether there is one node type and one edge type."""
        return len(self.node_frames()) == 1 and len(self.relations) == 1

    def to_canonical_etype(self, etype: str | EdgeType | None) -> EdgeType:
        """Complete a relation name to its triple; None is the only edge type.

        Raises NotFound, or InvalidInput if several edge types fit.
        """
        return complete_etype(etype, self.relations)

    def resolve_ntype(self, ntype: str | None, frames: Mapping[str, Frame] | None = None) -> str:
        """Return the name of a node type; None is the only one. A wrong one raises NotFound."""
        if frames is None:
            known = self.node_frames()
            if isinstance(ntype, str) and ntype not in known and ntype in self._sides():
                return ntype.partition("/")[2]
            return complete_ntype(ntype, known)
        return complete_ntype(ntype, frames, "this side of the graph")

    def get_ntype_id(self, ntype: str | None) -> int:
        """Return the position of a node type in :attr:`ntypes`."""
        return self.ntypes.index(self.resolve_ntype(ntype))

    def get_etype_id(self, etype: str | EdgeType | None) -> int:
        """Return the position of an edge type in :attr:`canonical_etypes`."""
        return self.canonical_etypes.index(self.to_canonical_etype(etype))

    def relation(self, etype: str | EdgeType | None = None) -> Relation:
        """Return the structure of one edge type."""
        return self.relations[self.to_canonical_etype(etype)]

    # ----------------------------------------------------------------- counts
    def num_nodes(self, ntype: str | None = None) -> int:
        """Number of nodes of a type, of all types without one."""
        if ntype is None:
            return sum(frame.num_rows for frame in self.node_frames().values())
        return self.node_frames()[self.resolve_ntype(ntype)].num_rows

    def num_src_nodes(self, ntype: str | None = None) -> int:
        """Number of nodes on the source side."""
        if ntype is None:
            return sum(frame.num_rows for frame in self.src_frames.values())
        return self.src_frames[self.resolve_ntype(ntype, self.src_frames)].num_rows

    def num_dst_nodes(self, ntype: str | None = None) -> int:
        """Number of nodes on the destination side."""
        if ntype is None:
            return sum(frame.num_rows for frame in self.dst_frames.values())
        return self.dst_frames[self.resolve_ntype(ntype, self.dst_frames)].num_rows

    def num_edges(self, etype: str | EdgeType | None = None) -> int:
        """Number of edges of a type, of all types without one."""
        if etype is None:
            return sum(relation.num_edges for relation in self.relations.values())
        return self.relation(etype).num_edges

    number_of_nodes = num_nodes
    number_of_src_nodes = num_src_nodes
    number_of_dst_nodes = num_dst_nodes
    number_of_edges = num_edges

    # --------------------------------------------------------------- features
    @property
    def ndata(self) -> Any:
        """Node features: name → tensor, or name → {type: tensor} where there are several types."""
        return frame_view(self.node_frames())

    @ndata.setter
    def ndata(self, values: Mapping[str, Any]) -> None:
        self.ndata.update(values)

    @property
    def srcdata(self) -> Any:
        """Features of the source side."""
        return frame_view(self.src_frames)

    @property
    def dstdata(self) -> Any:
        """Features of the destination side."""
        return frame_view(self.dst_frames)

    @property
    def edata(self) -> Any:
        """Edge features: name → tensor, or name → {type: tensor} where there are several types."""
        return frame_view(self.edge_frames)

    @property
    def nodes(self) -> NodeView:
        """``g.nodes()`` gives the IDs, ``g.nodes[ntype].data`` the features."""
        return NodeView(self.node_frames(), self._idtype, self._device, self._sides)

    def _sides(self) -> dict[str, Frame]:
        return by_side(self.src_frames, self.dst_frames)

    @property
    def srcnodes(self) -> NodeView:
        """The same for the source side."""
        return NodeView(self.src_frames, self._idtype, self._device)

    @property
    def dstnodes(self) -> NodeView:
        """The same for the destination side."""
        return NodeView(self.dst_frames, self._idtype, self._device)

    def set_n_initializer(
        self,
        initializer: Callable[..., torch.Tensor],
        field: str | None = None,
        ntype: str | None = None,
    ) -> None:
        """Choose the function that makes rows of node features which nobody wrote.

        These are rows of nodes that ``add_nodes`` adds, and the other rows of a feature that is
        first written for some nodes only. Without a function, they are zeros.

        Parameters
        ----------
        initializer : callable
            Called with shape, dtype, device and the slice of IDs; returns a tensor.
        field : str, optional
            The feature; by default all that have no function of their own.
        ntype : str, optional
            The node type, where there are several.

        Examples
        --------
        >>> import gnnlab as dgl, torch
        >>> g = dgl.graph(([0, 1], [1, 0]))
        >>> g.set_n_initializer(lambda shape, dtype, device, ids: torch.ones(shape, dtype=dtype))
        >>> g.apply_nodes(lambda nodes: {"h": torch.tensor([5.0])}, v=[0])
        >>> g.ndata["h"]
        tensor([5., 1.])
        """
        _check_initializer(initializer)
        name = self.resolve_ntype(ntype)
        for side in (self.src_frames, self.dst_frames):
            if name in side:
                side[name].initializers[field] = initializer

    def set_e_initializer(
        self,
        initializer: Callable[..., torch.Tensor],
        field: str | None = None,
        etype: str | EdgeType | None = None,
    ) -> None:
        """Choose the function that makes rows of edge features which nobody wrote.

        As :meth:`set_n_initializer` for edges: those that ``add_edges`` adds, and the other rows
        of a feature that is first written for some edges only.
        """
        _check_initializer(initializer)
        self.edge_frames[self.to_canonical_etype(etype)].initializers[field] = initializer

    @contextmanager
    def local_scope(self) -> Iterator[None]:
        """Undo at the end of the ``with`` block all settings of features inside.

        Examples
        --------
        >>> import gnnlab as dgl, torch
        >>> g = dgl.graph(([0, 1], [1, 0]))
        >>> with g.local_scope():
        ...     g.ndata["h"] = torch.ones(2)
        >>> "h" in g.ndata
        False
        """
        saved = dict(self.__dict__)
        self._change_frames(Frame.copy)
        try:
            yield
        finally:
            self.__dict__.update(saved)

    def _change_frames(self, change: Callable[[Frame], Frame]) -> None:
        """Replace every frame; if both sides share one dictionary of frames, they still do."""
        sources = {name: change(frame) for name, frame in self.src_frames.items()}
        if self.dst_frames is self.src_frames:
            self.dst_frames = sources
        else:
            self.dst_frames = {name: change(frame) for name, frame in self.dst_frames.items()}
        self.src_frames = sources
        self.edge_frames = {name: change(frame) for name, frame in self.edge_frames.items()}

    def local_var(self) -> Self:
        """Return the same graph with feature dictionaries of its own (tensors are shared)."""
        twin = self._shallow()
        twin._change_frames(Frame.copy)
        return twin

    clone = local_var

    def _shallow(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    # -------------------------------------------------------- dtype and device
    @property
    def idtype(self) -> torch.dtype:
        """dtype of all IDs that the graph returns: int64 or int32."""
        return self._idtype

    @property
    def device(self) -> torch.device:
        """Device of structure and features."""
        return self._device

    def as_ids(self, ids: torch.Tensor) -> torch.Tensor:
        """Return IDs in the dtype that the graph returns."""
        return ids.to(self._idtype)

    # ------------------------------------------------------ indexing and repr
    def __getitem__(self, etype: str | EdgeType) -> Self:
        """Return the part of the graph with one edge type; features are shared with this graph."""
        name = self.to_canonical_etype(etype)
        twin = self._shallow()
        twin.relations = {name: self.relations[name]}
        twin.edge_frames = {name: self.edge_frames[name]}
        twin.src_frames = {name[0]: self.src_frames[name[0]]}
        twin.dst_frames = {name[2]: self.dst_frames[name[2]]}
        if name[0] == name[2] and not self.is_block:
            twin.dst_frames = twin.src_frames
        twin._ntypes = list(dict.fromkeys((name[0], name[2])))
        return twin

    def __repr__(self) -> str:
        if self.is_homogeneous:
            return (
                f"Graph(num_nodes={self.num_nodes()}, num_edges={self.num_edges()},\n"
                f"      ndata_schemes={self.ndata.scheme(20)}\n"
                f"      edata_schemes={self.edata.scheme(20)})"
            )
        nodes = listing((f"{n!r}: {f.num_rows}" for n, f in self.node_frames().items()), 16)
        return f"Graph(num_nodes={nodes},\n      {self._repr_edges()})"

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        sizes = {name: frame.num_rows for name, frame in self.node_frames().items()}
        first = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
        edges = []
        if sum(sizes.values()) <= cells.MOST_NODES:
            for (src, _, dst), relation in self.relations.items():
                ends = (side.tolist() for side in relation.coo())
                edges += [(first[src] + u, first[dst] + v) for u, v in zip(*ends, strict=True)]
        return self._html({"ntype": self.node_frames()}, cells.circle(sizes, edges))

    def _html(self, sides: Mapping[str, Mapping[str, Frame]], drawing: str) -> str:
        """Return HTML: counts and features of each type, and a drawing."""
        from gnnlab.system import cells

        tables = [cells.features(side, "num_nodes", frames) for side, frames in sides.items()]
        tables.append(cells.features("canonical_etype", "num_edges", self.edge_frames))
        values = {"idtype": str(self.idtype).removeprefix("torch."), "device": self.device}
        return cells.page(type(self).__name__, values, *tables, drawing)

    def _repr_edges(self) -> str:
        edges = (f"{name!r}: {relation.num_edges}" for name, relation in self.relations.items())
        # grouped by the two ends, as networkx lists the edges of a graph of types
        ends = list(dict.fromkeys((src, dst) for src, _, dst in self.relations))
        ends.sort(key=lambda pair: self.ntypes.index(pair[0]))
        meta = [(u, v, r) for u, v in ends for s, r, d in self.relations if (s, d) == (u, v)]
        triples = listing(map(repr, meta), 16, "[]")
        return f"num_edges={listing(edges, 16)},\n      metagraph={triples}"

    def __copy__(self) -> Self:
        return self.local_var()
