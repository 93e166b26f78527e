"""Derivatives against central differences, forward mode against reverse mode, vmap against a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.errors import ArgumentError, GradientError
from fnad.testing.compare import Difference, Tolerance, assert_trees_close, at, difference, leaf_difference, real_dtype, tolerance
from fnad.transforms._call import check_differentiable, leaf_paths
from fnad.transforms.jvp import jvp
from fnad.transforms.vjp import vjp
from fnad.transforms.vmap import vmap
from fnad.typing import Function, PyTree

ENTRYWISE = 64
"""Up to this many entries the gradient is compared entry by entry, beyond it in random directions."""

_MODES = {"fwd": "forward mode", "rev": "reverse mode"}
_HINT = (
    "a rule of an operation in f is wrong; or f has a kink, a jump or the edge of its domain within the step: "
    "try other arguments, or a smaller eps="
)
_EDGE = "the differences are not finite: choose arguments further from the edge of the domain, or a smaller eps="


@dataclass(frozen=True)
class Case:
    """A function of flat leaves, with the arguments at which it is checked and what they are called."""

    function: Callable[..., list[Any]]
    args: list[Any]
    names: list[str]
    out_names: list[str]
    history: tuple[str, ...] = ()  # the modes that made this function of the user's, outermost last
    precision: float = 0.0  # machine epsilon of the coarsest dtype seen so far


@dataclass(frozen=True)
class Settings:
    """How a check is made."""

    modes: tuple[str, ...]
    atol: float | None
    rtol: float | None
    eps: float | None
    rng: np.random.Generator
    ordinary_only: bool = False  # pass over entries where the differences do not settle (jumps, infinite slopes), instead of failing
    what: str = "check_grads"


def check_grads(
    f: Function,
    args: tuple[PyTree, ...],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    *,
    seed: int = 0,
) -> None:
    """Check the derivatives of a function in both modes, up to an order.

    Forward mode is compared with central differences in a random direction; reverse mode with those of every entry (of
    random directions, where there are more than 64); the two modes with each other. The derivatives are then checked the
    same way as functions of the arguments, up to `order`: all four of forward and reverse over each other at order 2.

    Args:
        f: A function of pytrees of arrays. Outputs that are not floating point are passed over.
        args: A tuple of its arguments; every leaf floating point, real or complex. float32 leaves are widened to float64
            for the differences, not for the derivatives.
        order: The highest order of derivative to check.
        modes: "fwd", "rev", or both.
        atol: Absolute tolerance; the default depends on the dtypes (1e-6 for float64, 1e-3 for float32) and grows with
            the rounding of the differences.
        rtol: Relative tolerance; defaults 1e-6 and 1e-3.
        eps: Step of the differences, relative to entries above 1; by default the cube root of the machine precision.
        seed: Which random directions are drawn.

    Raises:
        GradientError: a derivative is wrong. The message says which mode at which order, names the leaf and the position
            of the worst entry, and shows both values, both errors and both tolerances.
        DTypeError: a leaf is not floating point.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.testing.check_grads(lambda p, x: np.tanh(x @ p["w"]), ({"w": np.ones((2, 3))}, np.ones(2)))
    """
    if isinstance(modes, str):
        modes = (modes,)
    if not modes or any(m not in _MODES for m in modes):
        raise ArgumentError("check_grads: modes are 'fwd', 'rev' or both", got={"modes": repr(modes)})
    if not isinstance(args, tuple | list):
        raise ArgumentError("check_grads: args must be a tuple, one per argument", got={"args": type(args).__name__}, fix="write (x,)")
    case = flat_case(f, tuple(args))
    check_case(case, order, Settings(tuple(modes), atol, rtol, eps, np.random.default_rng(seed)))


def flat_case(f: Function, args: tuple[PyTree, ...]) -> Case:
    """`f` as a function of its leaves, returning the floating-point leaves of its result."""
    leaves, spec = tree.flatten(args)
    names = leaf_paths(spec, [f"argument {n}" for n in range(len(args))])
    leaves = [check_differentiable(x, names.__getitem__, i, "check_grads") for i, x in enumerate(leaves)]

    def function(*flat: Any) -> list[Any]:
        return [o for o in tree.leaves(f(*tree.unflatten(spec, flat))) if aval_of(o).dtype.kind in "fc"]

    outs, out_spec = tree.flatten(f(*args))
    out_names = [f"output{path}" for path, o in zip(tree.paths(out_spec), outs, strict=True) if aval_of(o).dtype.kind in "fc"]
    return Case(function, leaves, names, out_names)


def check_case(case: Case, order: int, settings: Settings) -> None:
    """All checks of a case, and of its derivatives as functions, up to `order`."""
    if not case.args or not case.out_names or order < 1:
        return
    check = _Check(case, settings)
    if "fwd" in settings.modes:
        check.forward()
    if "rev" in settings.modes:
        check.reverse()
    if len(settings.modes) > 1:
        check.duality()
    for mode in settings.modes if order > 1 else ():
        check_case(check.derivative(mode), order - 1, settings)


class _Check:
    """One case with its random directions and cotangents, and what both modes answer for them."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self.case, self.settings = case, settings
        self.wide = [widen(a) for a in case.args]
        with np.errstate(all="ignore"):
            self.outs = [np.asarray(o) for o in case.function(*case.args)]
            self.wide_outs = [np.asarray(o) for o in case.function(*self.wide)]
        precision = max(case.precision, *(float(np.finfo(real_dtype(o.dtype)).eps) for o in self.wide_outs))
        self.precision, self.step = precision, settings.eps or precision ** (1 / 3)
        sizes = [abs(np.asarray(w)) for w in self.wide]
        self.scale = [np.where(s == 0, 1.0, s) if settings.ordinary_only else np.maximum(1.0, s) for s in sizes]
        self.directions = [_narrow(self._draw(w) * s, a) for w, s, a in zip(self.wide, self.scale, case.args, strict=True)]
        self.cotangents = [_narrow(self._draw(o), o) for o in self.outs]
        self.dtypes = [aval_of(a).dtype for a in case.args] + [o.dtype for o in (*self.outs, *self.wide_outs)]
        self.size = sum(np.size(a) for a in case.args)

    def _draw(self, like: Any) -> Any:
        x = self.settings.rng.standard_normal(np.shape(like))
        return x + 1j * self.settings.rng.standard_normal(np.shape(like)) if np.iscomplexobj(like) else x

    # -- the two modes and the differences -----------------------------------------------------------------------

    def push(self, directions: Sequence[Any]) -> list[Any]:
        """Forward mode."""
        values, tangents = jvp(self.case.function, tuple(self.case.args), tuple(directions))
        self.same_values(values, "jvp")
        return [np.asarray(t) for t in tangents]

    def pull(self) -> list[Any]:
        """Reverse mode."""
        values, pullback = vjp(self.case.function, *self.case.args)
        self.same_values(values, "vjp")
        return list(pullback(list(self.cotangents)))

    def same_values(self, values: Sequence[Any], transform: str) -> None:
        """A transform must not change what the function returns (a custom rule may compute something else)."""
        assert_trees_close([np.asarray(v) for v in values], self.outs, what=f"the function's values under {transform} and without it")

    def slopes(self, directions: Sequence[Any], fraction: float = 1.0) -> list[Any]:
        """Central differences of the outputs in a direction."""
        h = self.step * fraction
        with np.errstate(all="ignore"):
            ends = [self.case.function(*[a + s * d for a, d in zip(self.wide, directions, strict=True)]) for s in (h, -h)]
            return [np.asarray((np.asarray(p) - np.asarray(m)) / (2 * h)) for p, m in zip(*ends, strict=True)]

    def weighted(self, values: Sequence[Any], weights: Sequence[Any]) -> tuple[float, float]:
        """The real part of the sum of products, and the sum of their magnitudes."""
        products = [np.asarray(v * w, complex) for v, w in zip(values, weights, strict=True)]
        return sum(float(p.real.sum()) for p in products), sum(float(abs(p).sum()) for p in products)

    def allowed(self, magnitude: float) -> Tolerance:
        """Tolerances of a comparison with differences of values of a magnitude."""
        found = tolerance(self.dtypes, self.settings.atol, self.settings.rtol, numeric=True)
        rounding = 4 * self.precision * magnitude / self.step
        return found if self.settings.atol is not None or not np.isfinite(rounding) else found._replace(atol=found.atol + rounding)

    # -- the checks ----------------------------------------------------------------------------------------------

    def forward(self) -> None:
        tangents, slopes = self.push(self.directions), self.slopes(self.directions)
        for k, (got, want, value) in enumerate(zip(tangents, slopes, self.wide_outs, strict=True)):
            if got.shape != value.shape or got.dtype != self.outs[k].dtype:
                self.fail_type("fwd", self.case.out_names[k], got, self.outs[k])
            if self.settings.ordinary_only:
                want = np.where(self.settled(self.slopes(self.directions, 0.5)[k], want), want, got)
            allowed = self.allowed(float(np.max(abs(value), initial=0.0)))
            found = difference(got, want, allowed)
            if found is not None:
                place, k = found.position, k

                def off(directions: Sequence[Any], k: int = k, place: tuple[int, ...] = place) -> float:
                    return float(abs(self.push(directions)[k][place] - self.slopes(directions)[k][place]))

                leaf, position = self.culprit(off) if self.size else (0, ())
                extra = {"in the direction of": at(self.case.names[leaf], position)}
                self.fail("fwd", at(self.case.out_names[k], place), found, "central differences", extra)

    def reverse(self) -> None:
        grads = self.pull()
        for name, g, a in zip(self.case.names, grads, self.case.args, strict=True):
            if np.shape(g) != np.shape(a) or np.asarray(g).dtype != aval_of(a).dtype:
                self.fail_type("rev", name, g, a)
        if self.size > ENTRYWISE:
            self.reverse_directions(grads)
            return
        for leaf, g in enumerate(grads):
            want = np.zeros(np.shape(g), np.result_type(np.asarray(g).dtype, np.float64))
            for position in np.ndindex(*np.shape(g)):
                want[position] = self.entry(leaf, position)
                if self.settings.ordinary_only and not self.settled(self.entry(leaf, position, 0.5), want[position]):
                    want[position] = g[position] if position else g
            found = difference(g, want, self.allowed(self.magnitude()))
            if found is not None:
                self.fail("rev", at(self.case.names[leaf], found.position), found, "central differences")

    def reverse_directions(self, grads: list[Any]) -> None:
        """Reverse mode of many entries: two random directions, and a search for the entry at fault if one of them fails."""
        for directions in (self.directions, [self._draw(w) * s for w, s in zip(self.wide, self.scale, strict=True)]):
            got, size = self.weighted(grads, directions)
            want, _ = self.weighted(self.slopes(directions), self.cotangents)
            found = difference(got, want, self.allowed(self.magnitude()), scale=size / max(1.0, self.size**0.5))
            if found is None:
                continue

            def off(part: Sequence[Any]) -> float:
                return abs(self.weighted(grads, part)[0] - self.weighted(self.slopes(part), self.cotangents)[0])

            leaf, position = self.culprit(off, directions)
            g = np.asarray(grads[leaf])[position]
            single = difference(g, self.entry(leaf, position), self.allowed(self.magnitude()))
            if single is not None:
                single = replace(single, outside=1, entries=1)
                self.fail("rev", at(self.case.names[leaf], position), single, "central differences")
            self.fail("rev", "a random direction of all arguments", found, "central differences")

    def duality(self) -> None:
        """sum(cotangent * jvp(direction)) must equal sum(vjp(cotangent) * direction)."""
        grads = self.pull()

        def sides(directions: Sequence[Any]) -> tuple[float, float, float]:
            (a, size_a), (b, size_b) = self.weighted(self.push(directions), self.cotangents), self.weighted(grads, directions)
            return a, b, max(size_a, size_b)

        with np.errstate(all="ignore"):
            a, b, size = sides(self.directions)
        if not (np.isfinite(a) and np.isfinite(b)):
            return
        found = difference(a, b, tolerance(self.dtypes, self.settings.atol, self.settings.rtol), scale=size)
        if found is not None:
            leaf, position = self.culprit(lambda part: abs(sides(part)[0] - sides(part)[1]))
            self.fail("fwd", f"the derivative by {at(self.case.names[leaf], position)}, summed over outputs", found, "reverse mode")

    def settled(self, half: Any, full: Any) -> Any:
        """Where the differences for half the step and for the full one agree, so that there is a slope to compare with."""
        with np.errstate(all="ignore"):
            return abs(half - full) <= 1e-2 * (1 + abs(full))

    def entry(self, leaf: int, position: tuple[int, ...], fraction: float = 1.0) -> Any:
        """Central difference of the weighted outputs by one entry (for a complex one: d/dx - i d/dy)."""
        parts = []
        for unit in (1.0, 1j) if np.iscomplexobj(self.wide[leaf]) else (1.0,):
            size = self.scale[leaf][position] if position else float(self.scale[leaf])
            directions = [np.zeros_like(w) if isinstance(w, np.ndarray) else w * 0 for w in self.wide]
            if position:
                directions[leaf][position] = unit * size
            else:
                directions[leaf] = directions[leaf] + unit * size
            parts.append(self.weighted(self.slopes(directions, fraction), self.cotangents)[0] / size)
        return parts[0] if len(parts) == 1 else parts[0] - 1j * parts[1]

    def magnitude(self) -> float:
        return self.weighted(self.wide_outs, self.cotangents)[1]

    def culprit(self, off: Callable[[Sequence[Any]], float], directions: Sequence[Any] | None = None) -> tuple[int, tuple[int, ...]]:
        """The entry of the arguments to which a discrepancy is due: halve the direction, keep the half that is further off."""
        full = [np.asarray(d) for d in (self.directions if directions is None else directions)]
        entries = [(leaf, position) for leaf, d in enumerate(full) for position in np.ndindex(*d.shape)]
        while len(entries) > 1:
            halves = entries[: len(entries) // 2], entries[len(entries) // 2 :]
            with np.errstate(all="ignore"):
                a, b = (off(self._only(full, half)) for half in halves)
            entries = halves[0] if not a < b else halves[1]
        return entries[0]

    def _only(self, full: list[Any], entries: list[tuple[int, tuple[int, ...]]]) -> list[Any]:
        part = [np.zeros_like(d) for d in full]
        for leaf, position in entries:
            part[leaf][position] = full[leaf][position]
        return [p if isinstance(a, np.ndarray) else _narrow(p, a) for p, a in zip(part, self.case.args, strict=True)]

    def derivative(self, mode: str) -> Case:
        """The derivative as a function of the arguments and the directions (or cotangents)."""
        case, n = self.case, len(self.case.args)

        def forward(*flat: Any) -> list[Any]:
            return list(jvp(case.function, flat[:n], flat[n:])[1])

        def reverse(*flat: Any) -> list[Any]:
            return list(vjp(case.function, *flat[:n])[1](list(flat[n:])))

        history = (*case.history, mode)
        if mode == "fwd":
            names, outs = [f"direction of {name}" for name in case.names], [f"tangent of {name}" for name in case.out_names]
            return Case(forward, case.args + self.directions, case.names + names, outs, history, self.precision)
        names, outs = [f"cotangent of {name}" for name in case.out_names], [f"gradient of {name}" for name in case.names]
        return Case(reverse, case.args + self.cotangents, case.names + names, outs, history, self.precision)

    # -- reports -------------------------------------------------------------------------------------------------

    def order(self, mode: str) -> str:
        chain = " of ".join(_MODES[m] for m in (mode, *reversed(self.case.history)))
        return f"{len(self.case.history) + 1} ({chain})"

    def fail(self, mode: str, place: str, found: Difference, other: str, extra: dict[str, str] | None = None) -> NoReturn:
        raise GradientError(
            f"{self.settings.what}: {_MODES[mode]} disagrees with {other}",
            got={"order": self.order(mode), "at": place, **(extra or {}), **found.report((_MODES[mode], other))},
            fix=_HINT if np.isfinite(found.want) else _EDGE,
        )

    def fail_type(self, mode: str, place: str, got: Any, like: Any) -> NoReturn:
        raise GradientError(
            f"{self.settings.what}: the derivative must have the shape and dtype of what it belongs to",
            got={"order": self.order(mode), "at": place, _MODES[mode]: aval_of(got), "belongs to": aval_of(like)},
            fix="a rule of an operation in f changes the shape or the dtype",
        )


def widen(x: Any) -> Any:
    """A leaf in double precision, for differences; Python scalars stay."""
    if not isinstance(x, np.ndarray | np.generic):
        return x
    return np.array(x, np.result_type(x.dtype, np.float64))


def _narrow(x: Any, like: Any) -> Any:
    """A direction in the dtype, and of the kind (Python or NumPy scalar, array), of the leaf it belongs to."""
    if not isinstance(like, np.ndarray | np.generic):
        return type(like)(x)
    return np.asarray(x).astype(like.dtype)


def check_vmap(
    f: Function, args: tuple[PyTree, ...], in_axes: PyTree = 0, out_axes: PyTree = 0, atol: float | None = None, rtol: float | None = None
) -> None:
    """Check that `fnad.vmap(f)` equals a loop over the examples whose results are stacked.

    Args:
        f: A function of pytrees of arrays.
        args: A tuple of the batched arguments.
        in_axes: As for `fnad.vmap`.
        out_axes: As for `fnad.vmap`.
        atol: Absolute tolerance; the default depends on the dtype: 1e-10 for float64, 1e-5 for float32.
        rtol: Relative tolerance; defaults likewise.

    Raises:
        GradientError: they differ. The message names the output's path and the position of the worst entry, the example,
            and shows both values, both errors and both tolerances.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.testing.check_vmap(lambda x, w: np.tanh(x @ w), (np.ones((4, 3)), np.ones((3, 2))), in_axes=(0, None))
    """
    if not isinstance(args, tuple | list):
        raise ArgumentError("check_vmap: args must be a tuple, one per argument", got={"args": type(args).__name__}, fix="write (x,)")
    got, got_spec = tree.flatten(vmap(f, in_axes, out_axes)(*args))
    leaves, spec = tree.flatten(tuple(args))
    axes = tree.flatten_prefix(tuple(in_axes) if isinstance(in_axes, list) else in_axes, spec, "in_axes")
    size = next(np.shape(x)[a] for x, a in zip(leaves, axes, strict=True) if a is not None)
    rows = []
    for i in range(size):
        example = [x if a is None else np.take(x, i, axis=a) for x, a in zip(leaves, axes, strict=True)]
        rows.append(tree.flatten_as(got_spec, f(*tree.unflatten(spec, example)), "the loop's output", "vmap's output"))
    for k, (value, axis, path) in enumerate(
        zip(got, tree.flatten_prefix(out_axes, got_spec, "out_axes"), tree.paths(got_spec), strict=True)
    ):
        if not rows:
            continue
        want = rows[0][k] if axis is None else np.stack([row[k] for row in rows], axis=axis)
        names = ("vmap", "loop")
        found = leaf_difference(value, want, atol, rtol, True, names)
        if found is not None:
            where, lines = found
            position = where[1:-1].split(", ") if where else []
            lines = {"example": position[axis], **lines} if position and axis is not None else lines
            raise GradientError(
                "check_vmap: vmap disagrees with a loop",
                got={"at": f"output{path}{where}", **lines},
                fix="the batch rule of an operation in f is wrong; or f depends on more than its arguments",
            )
