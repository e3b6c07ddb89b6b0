"""Sparse optimizers: the owners of embedding rows receive their gradients and apply them.

The owner of a row also stores its optimizer state (:mod:`gnnlab.distributed.sparse_rules`), so a
step transfers only the gradients of the rows that a batch looked up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from gnnlab.distributed import context, sparse_rules
from gnnlab.distributed.embedding import DistEmbedding, rows_by_original, write_by_original
from gnnlab.distributed.tensor import DistTensor
from gnnlab.errors import InvalidInput
from gnnlab.graph.names import describe
from gnnlab.parallel.checkpoint import read_state, restoring, write_state

__all__ = ["SparseAdagrad", "SparseAdam", "SparseOptimizer"]

_FORMAT = "gnnlab.sparse-optimizer/1"


class SparseOptimizer:
    """Base class of sparse optimizers, which differ in the rule that owners apply.

    Parameters
    ----------
    params : iterable of DistEmbedding
    rule : str
        A name in :data:`gnnlab.distributed.sparse_rules.RULES`.
    options : dict
        Hyperparameters of the rule, such as ``options["lr"]``; may be changed between steps.

    Attributes
    ----------
    states : list of tuple of DistTensor
        For each embedding, the rule's state of its rows.
    """

    def __init__(
        self, params: Iterable[DistEmbedding], rule: str, options: Mapping[str, float]
    ) -> None:
        self.params = [params] if isinstance(params, DistEmbedding) else list(params)
        strange = {type(p).__name__ for p in self.params if not isinstance(p, DistEmbedding)}
        if strange or not self.params:
            raise InvalidInput(
                f"a sparse optimizer takes a list of DistEmbedding; found "
                f"{describe(strange) if strange else 'an empty list'}. Parameters of a model go to "
                "an optimizer of torch.optim"
            )
        for emb in self.params:
            if emb.weight.dtype not in sparse_rules.DTYPES:
                raise InvalidInput(
                    f"{emb!r} holds {emb.weight.dtype}; sparse optimizers change float32 and "
                    "float64. Set the default dtype back before it is made"
                )
        if len({emb.weight.name for emb in self.params}) < len(self.params):
            raise InvalidInput("the list has an embedding twice; its step would be doubled")
        self.rule, self.options = rule, dict(options)
        self._state_names, _ = sparse_rules.RULES[rule]
        sparse_rules.check(rule, self.options, len(self._state_names))
        self._steps = [0] * len(self.params)
        # Each optimizer has a state of its own; ``optm_state`` is that of the newest.
        self.states = [
            tuple(
                DistTensor(w.shape, w.dtype, part_policy=w.part_policy, is_gdata=False)
                for _ in self._state_names
            )
            for w in (emb.weight for emb in self.params)
        ]
        for emb, states in zip(self.params, self.states, strict=True):
            emb._optm_state = states

    @property
    def lr(self) -> float:
        """Learning rate."""
        return self.options["lr"]

    @lr.setter
    def lr(self, value: float) -> None:
        self.options["lr"] = value

    @torch.no_grad()
    def step(self) -> None:
        """Apply the gradients since the last step, and discard them.

        Gradients of a row that was looked up several times are summed. With several trainers, all
        must call this: their sums are averaged, like the model's gradients.
        """
        options = self._numbers()
        rank, num_ranks = context.rank(), context.num_trainers()
        gradients = [self._read_gradients(emb) for emb in self.params]
        used = self._by_any_rank([given is not None for given in gradients], num_ranks)
        for i, (emb, given) in enumerate(zip(self.params, gradients, strict=True)):
            if not used[i]:
                continue
            self._steps[i] += 1
            emb.weight.client.update(
                emb.part_policy,
                emb.weight.name,
                *(given or _nothing(emb.weight)),
                self.rule,
                options,
                tuple(state.name for state in self.states[i]),
                rank,
                num_ranks,
                self._steps[i],
            )
            emb.reset_trace()
        self._wait()  # no trainer reads rows before all are updated

    def _numbers(self) -> dict[str, float]:
        """Return the validated options as floats: messages and checkpoints take no numpy types."""
        sparse_rules.check(self.rule, self.options, len(self._state_names))
        return {name: float(value) for name, value in self.options.items()}

    def _read_gradients(self, emb: DistEmbedding) -> tuple[torch.Tensor, torch.Tensor] | None:
        given = emb.gradients()
        if given is None:
            return None
        if not bool(torch.isfinite(given[1]).all()):
            raise InvalidInput(
                f"the gradient of {emb!r} holds NaN or infinite values: the loss diverged. No "
                "embedding has changed; lower the learning rate, or look at the inputs"
            )
        return sparse_rules.coalesce(*given)

    def zero_grad(self) -> None:
        """Discard the gradients since the last step.

        :meth:`step` does this itself. Lookups without a backward pass yet are not affected, so it
        may be called between the forward and the backward pass.
        """
        for emb in self.params:
            emb.reset_trace()

    # ------------------------------------------------------------------- state
    def progress(self) -> dict[str, Any]:
        """Return the state without the rows: rule, options and numbers of steps."""
        return {"rule": self.rule, "options": self._numbers(), "steps": list(self._steps)}

    @restoring("a sparse optimizer")
    def load_progress(self, state: Mapping[str, Any]) -> None:
        """Load the :meth:`progress` of an optimizer with the same rule."""
        self._check_kind(state, "steps")
        self.options, self._steps = dict(state["options"]), list(state["steps"])

    def state_dict(self) -> dict[str, Any]:
        """Return the rule, and its state of all rows of all embeddings by original IDs."""
        return {
            "rule": self.rule,
            "options": self._numbers(),
            "embeddings": [
                {
                    "step": step,
                    "states": {
                        name: rows_by_original(state)
                        for name, state in zip(self._state_names, states, strict=True)
                    },
                }
                for step, states in zip(self._steps, self.states, strict=True)
            ],
        }

    @restoring("a sparse optimizer")
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the state of an optimizer of the same rule and embeddings."""
        self._check_kind(state, "embeddings")
        sparse_rules.check(self.rule, state["options"], len(self._state_names))
        self.options = dict(state["options"])
        for i, saved in enumerate(state["embeddings"]):
            self._steps[i] = int(saved["step"])
            for name, tensor in zip(self._state_names, self.states[i], strict=True):
                write_by_original(tensor, saved["states"][name])

    def _check_kind(self, state: Mapping[str, Any], entries: str) -> None:
        found = state.get("rule"), len(state.get(entries, ()))
        if found != (self.rule, len(self.params)):
            raise InvalidInput(
                f"expected the state of an optimizer {self.rule!r} of {len(self.params)} "
                f"embeddings; found {found[0]!r} of {found[1]}"
            )

    def save(self, f: str | os.PathLike[str]) -> None:
        """Write the state to a file atomically; with several trainers, rank 0 does.

        The rows of the embeddings are not included; ``emb.state_dict()`` has them.
        """
        if context.rank() == 0:
            write_state(f, {"format": _FORMAT, **self.state_dict()})
        self._wait()

    def load(self, f: str | os.PathLike[str]) -> None:
        """Read the state that :meth:`save` wrote."""
        fields = {"rule": str, "options": dict, "embeddings": list}
        self.load_state_dict(read_state(f, _FORMAT, f"{type(self).__name__}.save", fields))
        self._wait()

    def _wait(self) -> None:
        if context.num_trainers() > 1:
            self.params[0].weight.client.barrier()

    def _by_any_rank(self, used: list[bool], num_ranks: int) -> list[bool]:
        """Return, per embedding, whether any trainer has gradients for it in this step."""
        if num_ranks == 1:
            return used
        transport: Any = self.params[0].weight.client.transport
        flags = transport.meet("step of a sparse optimizer", "".join("01"[flag] for flag in used))
        return ["1" in of_all for of_all in zip(*flags, strict=True)]


class SparseAdagrad(SparseOptimizer):
    """Adagrad for the rows that a batch looked up; equal to :class:`torch.optim.Adagrad` on these.

    Parameters
    ----------
    params : list of DistEmbedding

    Examples
    --------
    >>> import gnnlab as dgl, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = dgl.graph(([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
    >>> dgl.distributed.partition_graph(path, "path", 2, folder, part_method="random")
    path: ...
    >>> dgl.distributed.initialize()
    >>> g = dgl.distributed.DistGraph("path", part_config=f"{folder}/path.json")
    >>> emb = dgl.distributed.DistEmbedding(g.num_nodes(), 1)
    >>> optimizer = dgl.distributed.SparseAdagrad([emb], lr=0.1)
    >>> (3 * emb([4])).sum().backward()
    >>> optimizer.step()
    >>> emb.weight[4], emb.optm_state[0][4]
    (tensor([[-0.1000]]), tensor([[9.]]))

    References
    ----------
    Duchi, Hazan and Singer, JMLR 2011. DGL user guide, chapter 7.2.
    """

    def __init__(self, params: Iterable[DistEmbedding], lr: float, eps: float = 1e-10) -> None:
        super().__init__(params, "adagrad", {"lr": lr, "eps": eps})


class SparseAdam(SparseOptimizer):
    """Adam for the rows that a batch looked up; equal to :class:`torch.optim.SparseAdam`.

    Used as :class:`SparseAdagrad`.

    Parameters
    ----------
    params : list of DistEmbedding
    betas : (float, float)
        Decay of the running means of gradients and of their squares.

    References
    ----------
    Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.
    """

    def __init__(
        self,
        params: Iterable[DistEmbedding],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        beta1, beta2 = betas
        super().__init__(params, "adam", {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps})


def _nothing(weight: DistTensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(0, dtype=torch.int64), torch.empty(0, *weight.shape[1:], dtype=weight.dtype)
