"""Weights for many relations, with fewer parameters than a matrix per relation.

Full matrices for hundreds of relations have too many parameters to train. Two remedies: every
matrix is a linear combination of a few *basis* matrices, or every matrix is *block-diagonal*.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.nn.base import check_count
from gnnlab.nn.utils import check_size

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class WeightBasis(nn.Module):
    r"""Many weights as linear combinations of a few basis weights: :math:`W_o = \sum_b c_{ob} V_b`.

    Parameters
    ----------
    shape : tuple of int
        Shape of one weight.
    num_bases, num_outputs : int
        Numbers of basis weights, and of weights to combine from them.

    Examples
    --------
    >>> from gnnlab.nn import WeightBasis
    >>> basis = WeightBasis((4, 5), num_bases=2, num_outputs=3)
    >>> basis().shape
    torch.Size([3, 4, 5])

    References
    ----------
    Schlichtkrull et al.: Modeling Relational Data with Graph Convolutional Networks, ESWC 2018.
    """

    def __init__(self, shape: tuple[int, ...], num_bases: int, num_outputs: int) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.num_bases = num_bases
        self.num_outputs = num_outputs
        self.weight = nn.Parameter(torch.empty(num_bases, *shape))
        self.w_comp = nn.Parameter(torch.empty(num_outputs, num_bases))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize bases and coefficients: Glorot uniform, for ReLU."""
        gain = nn.init.calculate_gain("relu")
        nn.init.xavier_uniform_(self.weight, gain)
        nn.init.xavier_uniform_(self.w_comp, gain)

    def forward(self) -> Tensor:
        """Return the weights, shape ``(num_outputs, *shape)``."""
        return torch.tensordot(self.w_comp, self.weight, dims=1)

    def extra_repr(self) -> str:
        """Show the sizes."""
        return f"shape={self.shape}, num_bases={self.num_bases}, num_outputs={self.num_outputs}"


def check_types(types: Tensor, count: int, num_types: int, name: str = "types") -> None:
    """Raise an error unless there are ``count`` integers in 0 … num_types − 1."""
    if types.dim() != 1 or len(types) != count:
        raise InvalidInput(f"{name} have shape {tuple(types.shape)}, expected ({count},)")
    if types.dtype not in INTEGERS:
        raise InvalidInput(f"{name} have dtype {types.dtype}, expected integers: {name}.long()")
    if count:
        low, high = (int(bound) for bound in types.aminmax())
        if low < 0 or high >= num_types:
            raise OutOfRange(
                f"{name} span {low} to {high}, expected 0 to {num_types - 1}: "
                "check the number of types (num_rels)"
            )


class TypedLinear(nn.Module):
    """A linear layer whose weight depends on the type of the row.

    Parameters
    ----------
    in_size, out_size : int
        Sizes of the input and output rows.
    num_types : int
        Number of types.
    regularizer : {"basis", "bdd"} or None, default None
        None: a full matrix per type. ``"basis"``: combinations of ``num_bases`` matrices.
        ``"bdd"``: block-diagonal matrices with ``num_bases`` blocks.
    num_bases : int, optional
        Number of bases or blocks; ``num_types`` when not given.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.nn import TypedLinear
    >>> layer = TypedLinear(4, 6, num_types=3, regularizer="basis", num_bases=2)
    >>> layer
    TypedLinear(in_size=4, out_size=6, num_types=3, regularizer=basis, num_bases=2)
    >>> layer(torch.ones(5, 4), torch.tensor([0, 2, 1, 0, 2])).shape
    torch.Size([5, 6])

    References
    ----------
    Schlichtkrull et al.: Modeling Relational Data with Graph Convolutional Networks, ESWC 2018.
    """

    def __init__(
        self,
        in_size: int,
        out_size: int,
        num_types: int,
        regularizer: str | None = None,
        num_bases: int | None = None,
    ) -> None:
        super().__init__()
        self.in_size = in_size
        self.out_size = out_size
        self.num_types = num_types
        self.regularizer = regularizer
        self.num_bases = num_types if num_bases is None else num_bases
        if regularizer is None:
            self.W = nn.Parameter(torch.empty(num_types, in_size, out_size))
        elif regularizer == "basis":
            self.W = nn.Parameter(torch.empty(self.num_bases, in_size, out_size))
            self.coeff = nn.Parameter(torch.empty(num_types, self.num_bases))
        elif regularizer == "bdd":
            if in_size % self.num_bases or out_size % self.num_bases:
                raise InvalidInput(
                    f"sizes {in_size} and {out_size} do not divide into {self.num_bases} blocks: "
                    "choose num_bases among their common divisors"
                )
            self.W = nn.Parameter(torch.empty(num_types, in_size * out_size // self.num_bases))
        else:
            raise InvalidInput(
                f"unknown regularizer {regularizer!r}: choose 'basis', 'bdd' or None"
            )
        self.reset_parameters()

    @property
    def num_blocks(self) -> int:
        """Number of blocks on the diagonal of each matrix: 1 when it is full."""
        return self.num_bases if self.regularizer == "bdd" else 1

    def reset_parameters(self) -> None:
        """Initialize the weights, uniform in ±1/√(inputs of a block), and coefficients (Glorot)."""
        bound = math.sqrt(self.num_blocks / self.in_size)
        nn.init.uniform_(self.W, -bound, bound)
        if self.regularizer == "basis":
            nn.init.xavier_uniform_(self.coeff, nn.init.calculate_gain("relu"))

    def get_weight(self) -> Tensor:
        """Return the weight of each type, shape (num_types, in_size, out_size).

        With ``"bdd"`` the blocks only, shape (num_types, in_size · out_size / num_bases).
        """
        if self.regularizer == "basis":
            return torch.tensordot(self.coeff, self.W, dims=1)
        return self.W

    def forward(self, x: Tensor, x_type: Tensor, sorted_by_type: bool = False) -> Tensor:
        """Multiply each row by the weight of its type.

        Parameters
        ----------
        x : Tensor of shape (N, in_size)
        x_type : Tensor of shape (N,), integer
            The type of each row, in 0 … num_types − 1.
        sorted_by_type : bool, default False
            The rows are sorted by type already, which saves two copies.

        Returns
        -------
        Tensor of shape (N, out_size)
        """
        check_types(x_type, len(x) if x.dim() else 0, self.num_types)
        check_count(x, len(x_type), "x", self.W)
        check_size(x, self.in_size, "source")
        if sorted_by_type:
            return self._multiply_runs(x, x_type)
        order = x_type.argsort(stable=True)
        out = self._multiply_runs(x.index_select(0, order), x_type)
        return torch.empty_like(out).index_copy(0, order, out)

    def _multiply_runs(self, rows: Tensor, types: Tensor) -> Tensor:
        """Multiply rows sorted by type: one run of rows, one product per type."""
        blocks = self.num_blocks
        in_block, out_block = self.in_size // blocks, self.out_size // blocks
        weight = self.get_weight().view(self.num_types, blocks, in_block, out_block)
        runs = rows.unflatten(-1, (blocks, in_block)).split(
            torch.bincount(types, minlength=self.num_types).tolist()
        )
        products = [
            torch.einsum("nbi,bio->nbo", run, matrix)
            for run, matrix in zip(runs, weight.unbind(), strict=True)
        ]
        return torch.cat(products).flatten(1)

    def extra_repr(self) -> str:
        """Show the sizes and the regularizer."""
        text = f"in_size={self.in_size}, out_size={self.out_size}, num_types={self.num_types}"
        if self.regularizer is None:
            return text
        return f"{text}, regularizer={self.regularizer}, num_bases={self.num_bases}"
