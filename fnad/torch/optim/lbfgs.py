"""L-BFGS, which calls the closure several times per step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fnad import optim as pure
from fnad.torch._tensor import make
from fnad.torch.optim.optimizer import Optimizer, closure_loss


class LBFGS(Optimizer):
    """`fnad.optim.lbfgs` as PyTorch's `torch.optim.LBFGS`: one group of parameters, and `step(closure)`.

    Args:
        params: Parameters.
        lr: Step length; with a line search the one that is tried first.
        max_iter: The most iterations of a step.
        max_eval: The most calls of the closure in a step; `5 max_iter / 4` if not given.
        tolerance_grad: Ends a step where no entry of the gradient is larger.
        tolerance_change: Ends a step where no parameter, or the loss, changes by more.
        history_size: How many pairs of steps and differences of gradients to remember.
        line_search_fn: "strong_wolfe", or None.

    Raises:
        ValueError: there is more than one group, or an option is outside its range.
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._options = tuple(options)
        pure.lbfgs(**options)  # type: ignore[arg-type]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Several iterations; `closure` clears the gradients, computes the loss, calls `backward()` and returns the loss.

        Returns:
            The loss before the step.
        """
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that clears gradients, computes the loss and returns it")
        group = self.param_groups[0]
        params = group["params"]
        optimizer = pure.lbfgs(**{name: group[name] for name in self._options})
        first: list[Any] = []

        def evaluate(arrays: list[Any]) -> tuple[Any, list[Any]]:
            for p, a in zip(params, arrays, strict=True):
                np.copyto(p._data, a)
                p._counter[0] += 1
            loss = closure_loss(closure)
            first.append(loss)
            return loss.item(), [np.zeros_like(p._data) if p._grad is None else p._grad._data for p in params]

        entry = self.state[params[0]]
        start = [p._data.copy() for p in params]
        fresh = optimizer.init(start)
        state = type(fresh)(*[entry[f]._data for f in fresh._fields]) if entry else fresh
        updates, state = optimizer.update(None, state, start, closure=evaluate)
        for p, a, u in zip(params, start, updates, strict=True):
            np.add(a, u, out=p._data)
            p._counter[0] += 1
        entry.update({f: make(np.asarray(x)) for f, x in zip(state._fields, state, strict=True)})
        return first[0]
