"""Modules with a set of parameters per node type or relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from gnnlab.errors import NotFound
from gnnlab.graph.ids import read_ids
from gnnlab.nn.hetero import AGGREGATES
from gnnlab.nn.hetero import HeteroGraphConv as HeteroGraphConv
from gnnlab.nn.utils import check_dtype, check_size
from gnnlab.ops.checks import check_choice

Key = str | tuple[str, str, str]


def get_aggregate_fn(agg: str) -> Callable[[list[Tensor], str], Tensor]:
    """Return the function of results and node type by which HeteroGraphConv combines results."""
    check_choice(agg, AGGREGATES, "aggregate", NotFound)
    return AGGREGATES[agg]


class _PerKey(nn.Module):
    """A dict of modules, one for each type; the names of torch modules are texts."""

    def _module(self, modules: nn.ModuleDict, key: Key) -> nn.Module:
        if str(key) not in modules:
            raise NotFound(f"no parameters for {key!r}, only for {list(modules)}")
        return modules[str(key)]


class HeteroLinear(_PerKey):
    """A linear layer per node or edge type, from its ``in_size[type]`` to ``out_size``.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.HeteroLinear({"user": 1, ("user", "follows", "user"): 2}, 3)
    >>> rows = {"user": torch.ones(2, 1), ("user", "follows", "user"): torch.ones(3, 2)}
    >>> [tuple(out.shape) for out in layer(rows).values()]
    [(2, 3), (3, 3)]
    """

    def __init__(self, in_size: Mapping[Key, int], out_size: int, bias: bool = True) -> None:
        super().__init__()
        self.linears = nn.ModuleDict(
            {str(key): nn.Linear(size, out_size, bias=bias) for key, size in in_size.items()}
        )

    def forward(self, feat: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
        """Map the rows of each type, shape (N, in_size), to shape (N, out_size)."""
        return {key: self._mapped(key, rows) for key, rows in feat.items()}

    def _mapped(self, key: Key, rows: Tensor) -> Tensor:
        linear: nn.Linear = self._module(self.linears, key)  # type: ignore[assignment]
        check_size(rows, linear.in_features, repr(key))
        check_dtype(rows, linear.weight.dtype, repr(key))
        return linear(rows)


class HeteroEmbedding(_PerKey):
    """A table of ``num_embeddings[type]`` rows per type.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.HeteroEmbedding({"user": 4, "item": 2}, 3)
    >>> layer({"user": torch.tensor([0, 3])})["user"].shape
    torch.Size([2, 3])
    """

    def __init__(self, num_embeddings: Mapping[Key, int], embedding_dim: int) -> None:
        super().__init__()
        self.raw_keys = {str(key): key for key in num_embeddings}
        self.embeds = nn.ModuleDict(
            {str(key): nn.Embedding(rows, embedding_dim) for key, rows in num_embeddings.items()}
        )

    @property
    def weight(self) -> dict[Key, nn.Parameter]:
        """The whole table of each type, shape (num_embeddings, embedding_dim)."""
        weights = dict(self.embeds.named_parameters())
        return {key: weights[f"{name}.weight"] for name, key in self.raw_keys.items()}

    def reset_parameters(self) -> None:
        """Initialize the tables: standard normal."""
        for table in self.weight.values():
            nn.init.normal_(table)

    def forward(self, input_ids: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
        """Look up the IDs of each type, shape (N,): rows of shape (N, embedding_dim)."""
        return {key: self._looked_up(key, ids) for key, ids in input_ids.items()}

    def _looked_up(self, key: Key, ids: Tensor) -> Tensor:
        table: nn.Embedding = self._module(self.embeds, key)  # type: ignore[assignment]
        return table(read_ids(ids, table.num_embeddings, "row", table.weight.device))
