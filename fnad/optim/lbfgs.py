"""L-BFGS with a strong Wolfe line search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.errors import ArgumentError, ConcretizationError
from fnad.optim.base import Number, Optimizer, check_numbers, check_state, is_traced
from fnad.optim.wolfe import strong_wolfe
from fnad.optim.wrapper import Wrapper
from fnad.typing import Array, PyTree


class LBFGSState(NamedTuple):
    """State of `lbfgs`. All leaves of params are one vector of `n` entries, in the dtype that their dtypes promote to."""

    func_evals: Any
    """Calls of the closure so far: int64, shape ()."""
    n_iter: Any
    """Iterations so far: int64, shape ()."""
    d: Array
    """The last direction: (n,)."""
    t: Any
    """The last step length: shape ()."""
    old_dirs: Array
    """The last differences of gradients, the oldest first: (m, n), m at most history_size."""
    old_stps: Array
    """The steps that belong to them: (m, n)."""
    ro: Array
    """The inverse of the products of the two: (m,)."""
    H_diag: Any
    """The scale of the first inverse Hessian: shape ()."""
    prev_flat_grad: Array
    """The gradient before the last iteration: (n,)."""
    prev_loss: Any
    """The loss before the last iteration: shape ()."""
    loss: Any
    """The loss at the parameters of the last update, before its iterations: shape ()."""


def lbfgs(
    lr: Number = 1,
    max_iter: int = 20,
    max_eval: int | None = None,
    tolerance_grad: float = 1e-7,
    tolerance_change: float = 1e-9,
    history_size: int = 100,
    line_search_fn: str | None = None,
) -> Optimizer:
    r"""L-BFGS, exactly as `torch.optim.LBFGS`: each update makes up to `max_iter` iterations.

    The direction of an iteration is `-H g`, where the inverse Hessian `H` is made of the last `history_size` pairs of steps `s` and
    differences of gradients `y`:

        H = (1 - ro s y') H (1 - ro y s') + ro s s'     for each pair, the oldest first, with ro = 1 / (y s); first H = (y s) / (y y)

    Args:
        lr: Step length; with a line search the one that is tried first. Or a function of the number of iterations so far.
        max_iter: The most iterations of one update.
        max_eval: The most calls of the closure; `5 max_iter / 4` if not given.
        tolerance_grad: Ends where no entry of the gradient is larger.
        tolerance_change: Ends where no parameter, or the loss, changes by more.
        history_size: How many pairs to remember.
        line_search_fn: "strong_wolfe", or None for a fixed step length.

    Returns:
        `Optimizer(init, update)` with the state `LBFGSState`. `update(None, state, params, closure=f)` with
        `f(params) -> (loss, gradients)`, such as `fnad.value_and_grad(loss)`, calls `f` several times; a first argument other
        than None is not looked at. It is the sum of the steps that comes back.

    Raises:
        ArgumentError: a hyperparameter is outside its range; (by update) params or the closure are missing.
        ConcretizationError: (by update) a parameter is traced. Values decide how often the closure is called, so compile the
            closure, not the update.

    Example:
        >>> import numpy as np, fnad
        >>> def rosenbrock(p):
        ...     return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        >>> opt = fnad.optim.lbfgs(max_iter=100, line_search_fn="strong_wolfe")
        >>> p = np.array([-1.2, 1.0])
        >>> updates, state = opt.update(None, opt.init(p), p, closure=fnad.value_and_grad(rosenbrock))
        >>> fnad.optim.apply_updates(p, updates).round(4)
        array([1., 1.])

    Reference: Nocedal & Wright, Numerical optimization, 2006, algorithms 7.4, 3.5 and 3.6; `torch.optim.LBFGS` of PyTorch 2.13.
    """
    check_numbers({"learning rate": lr, "tolerance_grad value": tolerance_grad, "tolerance_change value": tolerance_change})
    if line_search_fn not in (None, "strong_wolfe"):
        raise ArgumentError("only 'strong_wolfe' is supported", got={"line_search_fn": repr(line_search_fn)})
    if max_iter < 1 or history_size < 1:
        raise ArgumentError(
            "there is at least one iteration, and one pair of steps", got={"max_iter": max_iter, "history_size": history_size}
        )
    evaluations = max_iter * 5 // 4 if max_eval is None else max_eval
    return _LBFGS(lr, max_iter, evaluations, tolerance_grad, tolerance_change, history_size, line_search_fn is not None).pair()


@dataclass(frozen=True)
class _LBFGS(Wrapper):
    lr: Any
    max_iter: int
    max_eval: int
    tolerance_grad: float
    tolerance_change: float
    history_size: int
    search: bool

    def init(self, params: PyTree) -> LBFGSState:
        x, _ = _flatten(params)
        none, zero = np.zeros((0, x.size), x.dtype), np.zeros((), x.dtype)
        count = np.zeros((), np.int64)
        return LBFGSState(
            count, count.copy(), np.zeros_like(x), zero, none, none.copy(), np.zeros(0, x.dtype), np.ones((), x.dtype),
            np.zeros_like(x), np.zeros(()), np.zeros(()),
        )  # fmt: skip

    def update(self, grads: PyTree, state: LBFGSState, params: PyTree = None, closure: Any = None, **extra: Any) -> tuple[PyTree, Any]:
        if params is None or closure is None:
            raise ArgumentError(
                "lbfgs evaluates loss and gradient itself", fix="call opt.update(None, state, params, closure=fnad.value_and_grad(loss))"
            )
        check_state("lbfgs", state, LBFGSState)
        if any(is_traced(x) for x in tree.leaves((params, state))):
            raise ConcretizationError(
                "lbfgs goes on for as long as values tell it to", fix="compile the closure, fnad.jit(fnad.value_and_grad(loss))"
            )
        start, rebuild = _flatten(params)

        def evaluate(x: Array) -> tuple[float, Array]:
            loss, gradients = closure(rebuild(x))
            g, _ = _flatten(gradients, params)
            return float(loss), g.astype(start.dtype, copy=False)

        run = _Run(self, state, evaluate, start)
        x, new = run.iterate()
        return rebuild(x - start), new


class _Run:
    """One update: the iterations from one point."""

    def __init__(self, options: _LBFGS, state: LBFGSState, evaluate: Callable[[Array], tuple[float, Array]], x: Array) -> None:
        self.o, self.evaluate, self.x = options, evaluate, x
        self.loss, self.g = evaluate(x)
        self.evals, self.state = 1, state._replace(loss=np.array(self.loss), func_evals=np.array(state.func_evals + 1))

    @property
    def optimal(self) -> bool:
        return not self.g.size or bool(np.abs(self.g).max() <= self.o.tolerance_grad)

    def iterate(self) -> tuple[Array, LBFGSState]:
        done = 0
        while done < self.o.max_iter and not (done == 0 and self.optimal):
            done += 1
            s = self.state = self._direct()
            slope = self.g @ s.d
            if slope > -self.o.tolerance_change:
                break
            moved = self._move(s, slope, done < self.o.max_iter)
            before = float(s.prev_loss)
            if done == self.o.max_iter or self.evals >= self.o.max_eval or self.optimal:
                break
            if moved <= self.o.tolerance_change or abs(self.loss - before) < self.o.tolerance_change:
                break
        return self.x, LBFGSState(*[np.array(entry) for entry in self.state])

    def _direct(self) -> LBFGSState:
        """The state with the next direction and the first step length along it."""
        s = self.state
        rate = s.t.dtype.type(self.o.lr(np.int64(s.n_iter)) if callable(self.o.lr) else self.o.lr)
        count = np.array(s.n_iter + 1)
        if count == 1:
            d, t = -self.g, min(1.0, 1.0 / np.abs(self.g).sum()) * rate
        else:
            y, step = self.g - s.prev_flat_grad, s.d * s.t
            ys = y @ step
            if ys > 1e-10:
                keep = slice(1, None) if len(s.ro) == self.o.history_size else slice(None)
                dirs, stps = np.vstack([s.old_dirs[keep], y]), np.vstack([s.old_stps[keep], step])
                s = s._replace(old_dirs=dirs, old_stps=stps, ro=np.append(s.ro[keep], 1 / ys), H_diag=ys / (y @ y))
            d, t = _two_loops(s, self.g), rate
        return s._replace(n_iter=count, d=d, t=t, prev_flat_grad=self.g, prev_loss=np.array(self.loss))

    def _move(self, s: LBFGSState, slope: Any, again: bool) -> Any:
        """Go along the direction; the largest change of an entry."""
        used, t = 0, s.t
        if self.o.search:

            def along(length: Any) -> Any:
                return self.evaluate(self.x + length * s.d)

            wolfe = strong_wolfe(along, t, s.d, self.loss, self.g, slope, self.o.tolerance_change, self.o.max_eval - self.evals)
            self.loss, self.g, t, used = wolfe
            self.x = self.x + t * s.d
        else:
            self.x = self.x + t * s.d
            if again:  # after the last iteration nobody asks
                (self.loss, self.g), used = self.evaluate(self.x), 1
        self.evals += used
        self.state = s._replace(t=np.asarray(t, s.d.dtype), func_evals=np.array(s.func_evals + used))
        return np.abs(s.d * t).max()


def _two_loops(s: LBFGSState, g: Array) -> Array:
    """`-H g`, from the pairs of steps and differences."""
    q, shares = -g, np.zeros(len(s.ro), g.dtype)
    for i in reversed(range(len(s.ro))):
        shares[i] = s.old_stps[i] @ q * s.ro[i]
        q = q - shares[i] * s.old_dirs[i]
    r = q * s.H_diag
    for i in range(len(s.ro)):
        r = r + s.old_stps[i] * (shares[i] - s.old_dirs[i] @ r * s.ro[i])
    return r


def _flatten(given: PyTree, like: PyTree = None) -> tuple[Array, Callable[[Array], PyTree]]:
    """The leaves as one vector, and the way back, to arrays of their dtypes."""
    leaves, spec = tree.flatten(given)
    if like is not None:
        leaves = tree.flatten_as(tree.structure(like), given, "the gradients of the closure", "params")
    avals = [aval_of(p) for p in leaves]
    dtype = np.result_type(*[a.dtype for a in avals]) if avals else np.dtype(np.float64)
    ends = np.cumsum([a.size for a in avals], dtype=int)

    def rebuild(x: Array) -> PyTree:
        parts = np.split(x, ends[:-1]) if avals else []
        return tree.unflatten(spec, [part.reshape(a.shape).astype(a.dtype) for part, a in zip(parts, avals, strict=True)])

    return np.concatenate([np.zeros(0, dtype), *(np.asarray(p, dtype).reshape(-1) for p in leaves)]), rebuild
