"""A node classification data set as plain arrays: what readers return and graphs are made of.

So the content of a file can be inspected with numpy alone, before a graph is built.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gnnlab.errors import InvalidInput, OutOfRange


@dataclass(frozen=True, eq=False)
class RawDataset:
    """Edges, features, labels and split of one graph with N nodes and E directed edges.

    Parameters
    ----------
    name : str
        Short name, as in ``gnnlab.data.DATASETS``.
    src, dst : numpy.ndarray
        Shape (E,), int32 or int64: edge i goes from node ``src[i]`` to node ``dst[i]``.
    feat : numpy.ndarray
        Shape (N, D), float32.
    label : numpy.ndarray
        Shape (N,), int64, classes 0 … C−1.
    train_idx, val_idx, test_idx : numpy.ndarray
        Node IDs, int64, shapes (N_train,), (N_val,), (N_test,); no node is in two of them.
    num_classes : int
        C.

    Examples
    --------
    >>> from gnnlab.data.digits import read_digits
    >>> raw = read_digits()
    >>> raw.num_nodes, raw.num_edges, raw.feat.shape, raw.num_classes
    (1797, 9929, (1797, 64), 10)
    """

    name: str
    src: np.ndarray
    dst: np.ndarray
    feat: np.ndarray
    label: np.ndarray
    train_idx: np.ndarray
    val_idx: np.ndarray
    test_idx: np.ndarray
    num_classes: int

    def __post_init__(self) -> None:
        if self.src.shape != self.dst.shape or self.src.ndim != 1:
            raise InvalidInput(
                f"{self.name}: src and dst must be two arrays of one length; "
                f"found shapes {self.src.shape} and {self.dst.shape}"
            )
        if self.feat.ndim != 2 or self.label.shape != self.feat.shape[:1]:
            raise InvalidInput(
                f"{self.name}: feat must be (nodes, features) and label (nodes,); "
                f"found shapes {self.feat.shape} and {self.label.shape}"
            )
        for what, ids in self._ids().items():
            if len(ids) and not 0 <= ids.min() <= ids.max() < self.num_nodes:
                raise OutOfRange(
                    f"{self.name}: {what} must hold IDs 0 … {self.num_nodes - 1}; "
                    f"found {ids.min()} … {ids.max()}"
                )

    def _ids(self) -> dict[str, np.ndarray]:
        names = ("src", "dst", "train_idx", "val_idx", "test_idx")
        return {name: getattr(self, name) for name in names}

    @property
    def num_nodes(self) -> int:
        """Number of nodes, N."""
        return len(self.feat)

    @property
    def num_edges(self) -> int:
        """Number of directed edges, E."""
        return len(self.src)

    def with_reverse_edges(self) -> RawDataset:
        """Append the edge v → u for each edge u → v, in the same order, except for self-loops.

        Returns
        -------
        RawDataset
            The first E edges are those of this data set.

        Examples
        --------
        >>> from gnnlab.data.digits import read_digits
        >>> read_digits().with_reverse_edges().num_edges
        19858
        """
        no_loop = self.src != self.dst
        chosen = slice(None) if no_loop.all() else no_loop
        return replace(
            self,
            src=np.concatenate([self.src, self.dst[chosen]]),
            dst=np.concatenate([self.dst, self.src[chosen]]),
        )
