"""Captured training: the kernels of a step are recorded once and launched together.

A step on a sampled batch is some seventy short kernels. For each, Python and torch work about ten
times as long as the GPU. A CUDA graph records the kernels of one step; one launch then repeats all
of them. They read the same memory each time, in the same shapes, while each batch has its own. So a
batch is copied into blocks of fixed sizes, which are a little larger than any batch so far::

    source rows        real rows ............  padding
    destination rows   real rows ....  padding
    edges              real edges ..............  padding edges

Padding edges go from the last source row, which is always padding, to the padding destinations. So
no real row depends on a padding row; if the loss reads none either, padding changes no gradient.

References
----------
"Accelerating PyTorch with CUDA Graphs", pytorch.org, 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from gnnlab.dataloading.loader import DataLoader
from gnnlab.dataloading.sampler import simplify
from gnnlab.errors import InvalidInput
from gnnlab.graph.block import Block
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import NID
from gnnlab.graph.relation import Adjacency, Relation
from gnnlab.system import accelerators

_ORDINARY = 3  # steps before the first capture: torch and the optimizer allocate what they keep
_SPARE = 64  # rows and edges of padding, besides the slack

_Sizes = dict[tuple[Any, ...], int]


class CapturedTraining:
    """Train on the mini-batches of a loader, with steps that are recorded in a CUDA graph.

    Iterating trains one epoch and yields the loss of each step. The first steps and mini-batches
    that are not full are trained as usual; one larger than the padded blocks makes them grow, and
    the step is recorded again. Without CUDA all steps run as usual, on padded blocks.

    Parameters
    ----------
    loader : DataLoader
        Yields ``(input_nodes, output_nodes, blocks)`` on one device; the seeds are of one type.
    loss : callable
        ``loss(input_nodes, output_nodes, blocks)`` returns the loss, a tensor of one number. The
        blocks have padding rows after the real ones, also the last block, so take the first
        ``len(output_nodes)`` rows of the model's result and of the labels. It is Python code that
        runs once per capture: it must not read values of tensors (``.item()``, ``print``), nor
        branch on them. Tensors that it reads, such as class weights, must stay the same objects.
    optimizer : torch.optim.Optimizer
        Those of the Adam family need ``capturable=True``. A learning rate that changes is a new
        capture, unless it is given as a tensor on the device.
    slack : float
        Part by which the padded blocks are larger than the largest mini-batch so far.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> import torch.nn.functional as F
    >>> g = dgl.rand_graph(200, 2000)
    >>> g.ndata["x"], g.ndata["y"] = torch.randn(200, 8), torch.arange(200) % 3
    >>> sampler = dgl.dataloading.NeighborSampler([4])
    >>> loader = dgl.dataloading.DataLoader(g, range(200), sampler, batch_size=50)
    >>> model = dgl.nn.SAGEConv(8, 3, "mean")
    >>> def loss(input_nodes, output_nodes, blocks):
    ...     count = len(output_nodes)
    ...     scores = model(blocks[0], blocks[0].srcdata["x"])[:count]
    ...     return F.cross_entropy(scores, blocks[0].dstdata["y"][:count])
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
    >>> training = dgl.dataloading.CapturedTraining(loader, loss, optimizer)
    >>> for epoch in range(2):
    ...     losses = torch.stack(list(training))
    >>> losses.shape
    torch.Size([4])
    """

    def __init__(
        self,
        loader: DataLoader,
        loss: Callable[[Any, Any, list[Block]], torch.Tensor],
        optimizer: torch.optim.Optimizer,
        slack: float = 0.02,
    ) -> None:
        if not isinstance(loader, DataLoader):
            raise InvalidInput(f"expected a DataLoader of nodes; found {type(loader).__name__}")
        if loader.use_ddp:
            raise InvalidInput("captured training is for one process; found a loader with use_ddp")
        self.records = accelerators.can_record(loader.device)
        name = type(optimizer).__name__
        if self.records and not all(x.get("capturable", True) for x in optimizer.param_groups):
            raise InvalidInput(f"write {name}(…, capturable=True) for captured training")
        self.loader, self.loss, self.optimizer = loader, loss, optimizer
        self.slack = slack
        self._largest: _Sizes = {}
        self._steps = 0
        self._padded: _PaddedBlocks | None = None
        self._settings: Any = None  # of the optimizer, as they were recorded
        self._launch: Callable[[], torch.Tensor] = self._train_padded

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[torch.Tensor]:
        for batch in self.loader:
            if len(batch) != 3 or not isinstance(batch[1], torch.Tensor | Mapping):
                found = ", ".join(type(part).__name__ for part in batch)
                raise InvalidInput(
                    "captured training is for loaders that yield (input_nodes, output_nodes, "
                    f"blocks); found ({found})"
                )
            yield self._train(*batch)

    def _train(self, input_nodes: Any, output_nodes: Any, blocks: list[Block]) -> torch.Tensor:
        is_full = _count(output_nodes) == self.loader.batch_size
        sizes = _sizes_of(blocks)
        self._largest = {key: max(n, self._largest.get(key, 0)) for key, n in sizes.items()}
        self._steps += 1
        if self._steps <= _ORDINARY or not is_full:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(input_nodes, output_nodes, blocks)
            loss.backward()
            self.optimizer.step()
            return loss.detach()
        if self._padded is None or not self._padded.fit(sizes):
            room = {key: int(n * (1 + self.slack)) + _SPARE for key, n in self._largest.items()}
            self._padded = _PaddedBlocks(blocks, room, output_nodes)
            self._settings = None
        self._padded.fill(blocks, sizes)
        if self._settings != (settings := self._settings_now()):
            self._settings = None  # an error leaves nothing half recorded
            self._check(self._padded)
            self.optimizer.zero_grad(set_to_none=True)  # so that a backward pass writes gradients
            try:
                self._launch = accelerators.recorded(self._train_padded, self.loader.device)
            except RuntimeError as error:
                raise InvalidInput(
                    "this step cannot be captured: the loss or the optimizer reads values of "
                    "tensors, makes tensors whose size depends on values, or uses the CPU. Layers "
                    "that check their input take allow_zero_in_degree=True; the error above says "
                    "which line it was"
                ) from error
            self._settings = settings
        return self._launch().clone()

    def _train_padded(self) -> torch.Tensor:
        assert self._padded is not None
        loss = self.loss(*self._padded.batch())
        if not self.records:
            self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def _settings_now(self) -> Any:
        return [
            {k: v for k, v in group.items() if k != "params" and not isinstance(v, torch.Tensor)}
            for group in self.optimizer.param_groups
        ]

    def _check(self, padded: _PaddedBlocks) -> None:
        """Raise InvalidInput if a captured step would not do what an ordinary one does."""
        device = self.loader.device
        for state in self.optimizer.state.values() if self.records else ():
            for name, value in state.items():
                if isinstance(value, int | float) or getattr(value, "is_cpu", False):
                    raise InvalidInput(
                        f"{type(self.optimizer).__name__} keeps {name!r} in main memory, so its "
                        "steps cannot be captured; take SGD, or Adam(…, capturable=True)"
                    )
        devices = [] if device.type == "cpu" else [device]
        with torch.random.fork_rng(devices, device_type=device.type):
            self.loss(*padded.batch())  # reads all columns that it needs
            read = {key: x for key, x in padded.columns.items() if x.is_floating_point()}
            with_grad = [x.requires_grad_() for x in read.values()]
            loss = self.loss(*padded.batch())
        padded.is_known = True
        grads = torch.autograd.grad(loss, with_grad, allow_unused=True) if read else ()
        for (key, x), grad in zip(read.items(), grads, strict=True):
            x.requires_grad_(False)
            if grad is not None and bool(grad[padded.rows(key) :].any()):
                raise InvalidInput(
                    f"the loss depends on padding rows of feature {key[-1]!r}: take the first "
                    "len(output_nodes) rows of the model's result, as in "
                    "model(blocks, x)[: len(output_nodes)], and use no layer that mixes the rows "
                    "of a batch, such as BatchNorm"
                )


class _PaddedBlocks:
    """Blocks of fixed sizes, into which mini-batches are copied.

    Sizes are those of :func:`_sizes_of`. Columns of the blocks are copied if they have been read.
    """

    def __init__(self, like: list[Block], room: _Sizes, seeds: Any) -> None:
        self.like, self.room, self.seeds = like, room, seeds
        self.columns: dict[tuple[Any, ...], torch.Tensor] = {}
        self._sizes: _Sizes = {}
        self._places = {key: place for place, key in enumerate(room)}
        self._on_device = torch.zeros(len(room), dtype=torch.int64, device=like[0].device)
        self.is_known = False  # whether all columns that the loss reads have been read
        self._edges: dict[tuple[int, Any], tuple[torch.Tensor, torch.Tensor, Any]] = {}
        for layer, block in enumerate(like):
            for etype, relation in block.relations.items():
                csc = relation.csc()
                count, groups = room[layer, etype], room[layer + 1, etype[2]]
                self._edges[layer, etype] = (
                    csc.indptr.new_zeros(groups + 1),
                    csc.indices.new_zeros(count),
                    None if csc.ordered else csc.eids.new_zeros(count),
                )

    def fit(self, sizes: _Sizes) -> bool:
        """Whether there is room for blocks of these sizes, and for padding besides."""
        return sizes.keys() == self.room.keys() and all(
            n < self.room[key] for key, n in sizes.items()
        )

    def fill(self, blocks: list[Block], sizes: _Sizes) -> None:
        """Copy a mini-batch."""
        self.like, self._sizes = blocks, sizes
        self._on_device.copy_(torch.tensor(list(sizes.values())), non_blocking=True)
        for (layer, etype), buffers in self._edges.items():
            csc = blocks[layer].relations[etype].csc()
            values = (csc.indptr, csc.indices, *([] if buffers[2] is None else [csc.eids]))
            for buffer, value in zip(buffers, values, strict=False):
                buffer[: len(value)].copy_(value)
        for key in self.columns:
            self._copy(key)

    def rows(self, key: tuple[Any, ...]) -> int:
        """Number of real rows of a column."""
        layer, side, kind, _ = key
        return self._sizes[layer + (side == "dst_frames"), kind]

    def _copy(self, key: tuple[Any, ...]) -> None:
        layer, side, kind, name = key
        values = getattr(self.like[layer], side)[kind][name]
        if key not in self.columns:
            shape = (self.room[layer + (side == "dst_frames"), kind], *values.shape[1:])
            # Padding rows are like real ones, so that a gradient passes through them.
            self.columns[key] = (
                values[:1].expand(shape).clone() if len(values) else values.new_zeros(shape)
            )
        self.columns[key].detach()[: len(values)].copy_(values)

    def _column(self, key: tuple[Any, ...]) -> torch.Tensor:
        if key not in self.columns:
            if self.is_known:
                raise InvalidInput(f"the loss reads feature {key[-1]!r} in some steps only")
            self._copy(key)
        return self.columns[key]

    def batch(self) -> tuple[Any, Any, list[Block]]:
        """Return ``(input_nodes, output_nodes, blocks)``; blocks are new, over the same memory."""
        blocks = [self._block(layer) for layer in range(len(self.like))]
        inputs = {t: frame[NID] for t, frame in blocks[0].src_frames.items()}
        outputs = {t: frame[NID] for t, frame in blocks[-1].dst_frames.items()}
        if isinstance(self.seeds, Mapping):
            found: Any = {t: outputs[t][: len(x)] for t, x in self.seeds.items()}
        else:
            found = simplify(outputs)[: len(self.seeds)]
        return simplify(inputs), found, blocks

    def _block(self, layer: int) -> Block:
        like = self.like[layer]
        sides = ("src_frames", "dst_frames", "edge_frames")
        src, dst, edges = (self._frames(layer, side) for side in sides)
        num_src, num_dst = ({t: frame.num_rows for t, frame in f.items()} for f in (src, dst))
        relations = {etype: self._relation(layer, etype) for etype in like.relations}
        return Block(num_src, num_dst, relations, src, dst, edges, like.idtype, like.device)

    def _frames(self, layer: int, side: str) -> dict[Any, Frame]:
        frames = {}
        for kind, like in getattr(self.like[layer], side).items():
            count = self.room[layer + (side == "dst_frames"), kind]
            frames[kind] = Frame(count, None, self.like[layer].device, like.what)
            for name in like:
                frames[kind].defer(name, partial(self._column, (layer, side, kind, name)))
        return frames

    def _relation(self, layer: int, etype: Any) -> Relation:
        """Return the edges of a block, padding edges spread evenly over the last padding rows.

        The last row always has one. So the last source of a block depends on the last source of
        the block before, which real rows do not: see :meth:`CapturedTraining._check`.
        """
        indptr, indices, eids = self._edges[layer, etype]
        num_src, num_dst = self.room[layer, etype[0]], self.room[layer + 1, etype[2]]
        num_edges = self.room[layer, etype]
        real_rows = self._on_device[self._places[layer + 1, etype[2]]]
        real_edges = self._on_device[self._places[layer, etype]]
        device = indices.device
        row = torch.arange(num_dst + 1, device=device)
        each = (num_edges - real_edges) // (num_dst - real_rows) + 1
        after = torch.maximum(real_edges, num_edges - (num_dst - row) * each)
        slot = torch.arange(num_edges, device=device)
        if eids is not None:
            eids = torch.where(slot < real_edges, eids, slot).to(eids.dtype)
        csc = Adjacency(
            torch.where(row <= real_rows, indptr, after),
            torch.where(slot < real_edges, indices, num_src - 1).to(indices.dtype),
            eids,
        )
        return Relation(num_src, num_dst, csc=csc)


def _sizes_of(blocks: list[Block]) -> _Sizes:
    """Return the number of edges of each block, as (layer, edge type), and of nodes.

    The sources of block i are (i, node type), its destinations (i + 1, node type).
    """
    sizes: _Sizes = {}
    for layer, block in enumerate(blocks):
        for kinds, at in (
            (block.src_frames, layer),
            (block.dst_frames, layer + 1),
            (block.edge_frames, layer),
        ):
            for kind, frame in kinds.items():
                if sizes.setdefault((at, kind), frame.num_rows) != frame.num_rows:
                    raise InvalidInput(
                        f"the destinations of block {layer - 1} must be the sources of block "
                        f"{layer}; of type {kind!r} they are {sizes[at, kind]} and {frame.num_rows}"
                    )
    return sizes


def _count(output_nodes: Any) -> int:
    if not isinstance(output_nodes, Mapping):
        return len(output_nodes)
    counts = [len(ids) for ids in output_nodes.values() if len(ids)]
    if len(counts) > 1:
        raise InvalidInput("captured training takes seeds of one node type; found several")
    return counts[0] if counts else 0
