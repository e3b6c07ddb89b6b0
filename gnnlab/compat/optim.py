"""``dgl.optim``: sparse optimizers of :class:`gnnlab.compat.nn.sparse_emb.NodeEmbedding`.

The update rules are those of distributed embeddings, :mod:`gnnlab.distributed.sparse_rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import distributed as dist

from gnnlab.compat.nn.sparse_emb import NodeEmbedding
from gnnlab.distributed import sparse_rules
from gnnlab.errors import InvalidInput
from gnnlab.parallel.checkpoint import restoring


class SparseGradOptimizer:
    """Base class of the sparse optimizers: ``rule`` is a name in ``sparse_rules.RULES``."""

    def __init__(
        self, params: Iterable[NodeEmbedding], rule: str, options: Mapping[str, float]
    ) -> None:
        self.params = [params] if isinstance(params, NodeEmbedding) else list(params)
        if not self.params or not all(isinstance(emb, NodeEmbedding) for emb in self.params):
            raise InvalidInput(
                "a sparse optimizer takes a list of NodeEmbedding; found "
                f"{sorted({type(emb).__name__ for emb in self.params}) or 'an empty list'}. "
                "Parameters of a model go to an optimizer of torch.optim, DistEmbedding to one of "
                "dgl.distributed.optim"
            )
        if len({id(emb) for emb in self.params}) < len(self.params):
            raise InvalidInput("the list has an embedding twice; its step would be doubled")
        for emb in self.params:
            if emb.weight.dtype not in sparse_rules.DTYPES:
                raise InvalidInput(
                    f"{emb!r} holds {emb.weight.dtype}; sparse optimizers change float32 and "
                    "float64"
                )
        self.rule, self.options = rule, {name: float(value) for name, value in options.items()}
        self._state_names = sparse_rules.RULES[rule][0]
        sparse_rules.check(rule, self.options, len(self._state_names))
        self._steps = [0] * len(self.params)
        for emb in self.params:
            emb.optm_state = tuple(torch.zeros_like(emb.weight) for _ in self._state_names)
        self._states = [emb.optm_state for emb in self.params]

    @property
    def lr(self) -> float:
        """Learning rate."""
        return self.options["lr"]

    @lr.setter
    def lr(self, value: float) -> None:
        self.options["lr"] = float(value)

    @torch.no_grad()
    def step(self) -> None:
        """Apply the gradients since the last step, and discard them.

        Gradients of a row that was looked up several times are summed. With several ranks all must
        call this: their sums are averaged, like the model's gradients, and every rank applies them.
        """
        sparse_rules.check(self.rule, self.options, len(self._state_names))
        for i, given in enumerate(_of_all_ranks([emb.gradients() for emb in self.params])):
            emb = self.params[i]
            parts = [sparse_rules.coalesce(*part) for part in given if part is not None]
            if not parts:
                continue
            for _, grads in parts:
                if not bool(torch.isfinite(grads).all()):
                    raise InvalidInput(
                        f"the gradient of {emb!r} holds NaN or infinite values: the loss diverged"
                    )
            missing = len(given) - len(parts)
            none = torch.empty(0, dtype=torch.int64), parts[0][1][:0]
            rows, grads = sparse_rules.merge([*parts, *[none] * missing])
            self._steps[i] += 1
            how = self._states[i], self.options, self._steps[i]
            sparse_rules.apply(self.rule, emb.weight, rows, grads.to(emb.weight.dtype), *how)
            emb.reset_trace()

    def zero_grad(self) -> None:
        """Discard the gradients since the last step, as :meth:`step` does itself."""
        for emb in self.params:
            emb.reset_trace()

    def state_dict(self) -> dict[str, Any]:
        """Return rule, options, numbers of steps and the state of all rows."""
        states = [dict(zip(self._state_names, each, strict=True)) for each in self._states]
        return {
            "rule": self.rule,
            "options": dict(self.options),
            "steps": list(self._steps),
            "states": states,
        }

    @restoring("a sparse optimizer")
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the state of an optimizer of the same rule and of embeddings of equal shapes."""
        found = state.get("rule"), len(state.get("states", ()))
        if found != (self.rule, len(self.params)):
            raise InvalidInput(
                f"expected the state of an optimizer {self.rule!r} of {len(self.params)} "
                f"embeddings; found {found[0]!r} of {found[1]}"
            )
        for states, saved in zip(self._states, state["states"], strict=True):
            for name, tensor in zip(self._state_names, states, strict=True):
                if saved[name].shape != tensor.shape:
                    raise InvalidInput(
                        f"the state has shape {tuple(saved[name].shape)}, the embedding "
                        f"{tuple(tensor.shape)}"
                    )
                tensor.copy_(saved[name])
        self.options, self._steps = dict(state["options"]), list(state["steps"])


_Gradients = tuple[torch.Tensor, torch.Tensor] | None


def _of_all_ranks(own: list[_Gradients]) -> list[list[_Gradients]]:
    """Return, for each embedding, the gradients of every rank, in the order of ranks."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return [[given] for given in own]
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, own)
    return [list(column) for column in zip(*everyone, strict=True)]


class SparseAdagrad(SparseGradOptimizer):
    """Adagrad for the rows that a batch looked up; equal to :class:`torch.optim.Adagrad`.

    From Duchi, Hazan and Singer, JMLR 2011.
    """

    def __init__(self, params: Iterable[NodeEmbedding], lr: float, eps: float = 1e-10) -> None:
        super().__init__(params, "adagrad", {"lr": lr, "eps": eps})


class SparseAdam(SparseGradOptimizer):
    """Adam for the rows that a batch looked up; equal to :class:`torch.optim.SparseAdam`.

    ``use_uva`` and ``dtype`` have no effect: states are in main memory, of the dtype of the rows.
    From Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.
    """

    def __init__(
        self,
        params: Iterable[NodeEmbedding],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        use_uva: bool | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        options = {"lr": lr, "beta1": betas[0], "beta2": betas[1], "eps": eps}
        super().__init__(params, "adam", options)
