"""Transforms that weigh edges, diffuse along them, and scale features.

Matrices of ``PPR``, ``HeatKernel`` and ``GDC`` are dense, of N² numbers. Their row is the
destination, their column the source of an edge, and A has the weights of the edges, 1 without
``eweight_name``; put :class:`GCNNorm` before them.

References
----------
Gasteiger, Weißenberger and Günnemann, "Diffusion Improves Graph Learning", NeurIPS 2019; Frasca et
al., "SIGN: Scalable Inception Graph Neural Networks", 2020.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch

from gnnlab import ops
from gnnlab.compat.transforms.checks import frames_having
from gnnlab.errors import InvalidInput
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.graph.transform import feature_names
from gnnlab.ops.checks import check_choice
from gnnlab.transforms.base import BaseTransform


def _weights(g: Graph, name: str | None, etype: EdgeType | None = None) -> torch.Tensor:
    """Return the weight of each edge, (E,): the feature of this name if there is one, or 1."""
    frame = g.edge_frames[g.to_canonical_etype(etype)]
    if name is None or name not in frame:
        return torch.ones(g.num_edges(etype), device=g.device)
    return frame[name].reshape(-1)


def _received(g: Graph, weights: torch.Tensor, etype: EdgeType | None = None) -> torch.Tensor:
    """Return the sum of the weights of each node's in-edges, (N,)."""
    return ops.spmm(g.relation(etype), "copy_rhs", "sum", None, weights)


def _symmetric(g: Graph, weights: torch.Tensor, etype: EdgeType | None = None) -> torch.Tensor:
    """Return D^(−1/2) A D^(−1/2) by edge, where D has the sums of the in-edges' weights."""
    sums = _received(g, weights, etype)
    scale = torch.where(sums > 0, sums, torch.inf).rsqrt()
    src, dst = (end.long() for end in g.edges(etype=etype))
    return scale[src] * weights * scale[dst]


class GCNNorm(BaseTransform):
    """Scale edge weights as GraphConv does: by 1 / √(sum at the source · sum at the destination).

    ``eweight_name`` is read, if it exists, and written, in the graph that is given. Sums are those
    of the in-edges. Types whose source and destination types differ are left out.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.GCNNorm()(dgl.graph(([0, 1, 1], [1, 1, 0]))).edata["w"]
    tensor([0.7071, 0.5000, 0.7071])
    """

    def __init__(self, eweight_name: str = "w") -> None:
        self.eweight_name = eweight_name

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with weights."""
        for etype in g.canonical_etypes:
            if etype[0] == etype[2]:
                weights = _weights(g, self.eweight_name, etype)
                g.edge_frames[etype][self.eweight_name] = _symmetric(g, weights, etype)
        return g


class _Diffusion(BaseTransform):
    """Replace the edges by the largest entries of a matrix made from the adjacency matrix."""

    def __init__(
        self, eweight_name: str = "w", eps: float | None = None, avg_degree: int = 5
    ) -> None:
        self.eweight_name = eweight_name
        self.eps = eps
        self.avg_degree = avg_degree

    @abstractmethod
    def matrix(self, adjacency: torch.Tensor) -> torch.Tensor: ...

    def __call__(self, g: Graph) -> Graph:
        """Return the graph of the entries that are large enough, with them as weights."""
        count = g.num_nodes()
        src, dst = (end.long() for end in g.edges())
        weights = _weights(g, self.eweight_name).float()
        adjacency = weights.new_zeros(count, count).index_put((dst, src), weights, True)
        diffused = self.matrix(adjacency)
        least, kept = self.eps, count * self.avg_degree
        if least is None:
            values = diffused.flatten().sort(descending=True).values
            least = float(values[kept - 1]) if 0 < kept < len(values) else -torch.inf
        dst, src = (diffused >= least).nonzero(as_tuple=True)
        made = graph((src, dst), num_nodes=count, idtype=g.idtype)
        made.ndata.update(g.ndata)
        made.edata[self.eweight_name] = diffused[dst, src]
        return made


class PPR(_Diffusion):
    r"""Diffuse by personalized PageRank: :math:`\alpha (I - (1 - \alpha) A)^{-1}`.

    Its entries below ``eps``, or all but the ``avg_degree * N`` largest, are dropped; the others
    are edges of weight ``eweight_name``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.PPR(alpha=0.5)(dgl.graph(([0], [1]))).edata["w"]
    tensor([0.5000, 0.0000, 0.2500, 0.5000])
    """

    def __init__(
        self,
        alpha: float = 0.15,
        eweight_name: str = "w",
        eps: float | None = None,
        avg_degree: int = 5,
    ) -> None:
        super().__init__(eweight_name, eps, avg_degree)
        self.alpha = alpha

    def matrix(self, adjacency: torch.Tensor) -> torch.Tensor:
        """Return the dense matrix."""
        identity = torch.eye(len(adjacency), device=adjacency.device)
        return self.alpha * torch.linalg.inv(identity - (1 - self.alpha) * adjacency)


class HeatKernel(_Diffusion):
    r"""Diffuse by the heat kernel :math:`\exp(t (A - I))`; see :class:`PPR`.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.HeatKernel(t=1.0)(dgl.graph(([0], [1]))).edata["w"]
    tensor([0.3679, 0.0000, 0.3679, 0.3679])
    """

    def __init__(
        self, t: float = 2.0, eweight_name: str = "w", eps: float | None = None, avg_degree: int = 5
    ) -> None:
        super().__init__(eweight_name, eps, avg_degree)
        self.t = t

    def matrix(self, adjacency: torch.Tensor) -> torch.Tensor:
        """Return the dense matrix."""
        identity = torch.eye(len(adjacency), device=adjacency.device)
        return torch.linalg.matrix_exp(self.t * (adjacency - identity))


class GDC(_Diffusion):
    r"""Diffuse by a polynomial with ``coefs`` θ, :math:`\sum_k \theta_k A^k`; see :class:`PPR`.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.GDC([0.3, 0.2])(dgl.graph(([0], [1]))).edata["w"]
    tensor([0.3000, 0.0000, 0.2000, 0.3000])
    """

    def __init__(
        self,
        coefs: Sequence[float],
        eweight_name: str = "w",
        eps: float | None = None,
        avg_degree: int = 5,
    ) -> None:
        super().__init__(eweight_name, eps, avg_degree)
        self.coefs = list(coefs)

    def matrix(self, adjacency: torch.Tensor) -> torch.Tensor:
        """Return the dense matrix."""
        power = torch.eye(len(adjacency), dtype=adjacency.dtype, device=adjacency.device)
        total = 0 * adjacency
        for coef in self.coefs:
            total, power = total + coef * power, power @ adjacency
        return total


class RowFeatNormalizer(BaseTransform):
    """Divide each row of a feature by its sum, which counts as 1 at least.

    Features of the given names are changed, in the graph that is given and in all types that have
    them; ``subtract_min`` subtracts the smallest number of the feature first.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph(([0], [1]))
    >>> g.ndata["h"] = torch.tensor([[1.0, 3.0], [0.0, 0.5]])
    >>> dgl.RowFeatNormalizer(node_feat_names=["h"])(g).ndata["h"]
    tensor([[0.2500, 0.7500],
            [0.0000, 0.5000]])
    """

    def __init__(
        self,
        subtract_min: bool = False,
        node_feat_names: Sequence[str] | None = None,
        edge_feat_names: Sequence[str] | None = None,
    ) -> None:
        self.subtract_min = subtract_min
        self.node_feat_names = feature_names(node_feat_names or ())
        self.edge_feat_names = feature_names(edge_feat_names or ())

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with scaled features."""
        places = [(g.node_frames(), name, "node") for name in self.node_feat_names]
        places += [(g.edge_frames, name, "edge") for name in self.edge_feat_names]
        for frames, name, what in places:
            for frame in frames_having(frames.values(), name, what, "RowFeatNormalizer"):
                value = frame[name]
                value = value - value.min() if self.subtract_min else value
                frame[name] = value / value.sum(-1, keepdim=True).clamp(min=1)
        return g


class SIGNDiffusion(BaseTransform):
    r"""Write node features after 1, …, k steps of a diffusion: ``out_feat_1``, ….

    A step of ``diffuse_op`` multiplies ``in_feat_name``, (N, D), by A ("raw"), by A with rows of
    sum 1 ("rw"), by :math:`D^{-1/2} A D^{-1/2}` ("gcn"), or is
    :math:`(1 - \alpha) D^{-1/2} A D^{-1/2} X + \alpha X_0` ("ppr").

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 2]))
    >>> g.ndata["feat"] = torch.tensor([[1.0], [2.0], [4.0]])
    >>> dgl.SIGNDiffusion(k=2)(g).ndata["out_feat_2"].flatten()
    tensor([0., 0., 1.])
    """

    def __init__(
        self,
        k: int,
        in_feat_name: str = "feat",
        out_feat_name: str = "out_feat",
        eweight_name: str | None = None,
        diffuse_op: str = "raw",
        alpha: float = 0.2,
    ) -> None:
        check_choice(diffuse_op, ("raw", "rw", "gcn", "ppr"), "diffuse_op")
        self.k = k
        self.in_feat_name = in_feat_name
        self.out_feat_name = out_feat_name
        self.eweight_name = eweight_name
        self.diffuse_op = diffuse_op
        self.alpha = alpha

    def __call__(self, g: Graph) -> Graph:
        """Return the graph that is given, with the diffused features."""
        if self.eweight_name is not None and self.eweight_name not in g.edata:
            raise InvalidInput(
                f"SIGNDiffusion: the graph has no edge feature {self.eweight_name!r}"
            )
        weights = _weights(g, self.eweight_name)
        if self.diffuse_op == "rw":
            sums = _received(g, weights)
            weights = weights / torch.where(sums > 0, sums, 1)[g.edges()[1].long()]
        elif self.diffuse_op != "raw":
            weights = _symmetric(g, weights)
        first = rows = g.ndata[self.in_feat_name]
        for step in range(1, self.k + 1):
            rows = ops.spmm(g.relation(), "mul", "sum", rows, weights[:, None])
            if self.diffuse_op == "ppr":
                rows = (1 - self.alpha) * rows + self.alpha * first
            g.ndata[f"{self.out_feat_name}_{step}"] = rows
        return g
