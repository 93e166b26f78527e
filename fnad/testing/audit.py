"""The audit of a primitive: each of its rules on one sample, against its value, differences, loops and recordings."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, aval_of
from fnad.core.cotangent import Scattered
from fnad.core.graph import evaluate, record
from fnad.core.primitive import Joint, Primitive
from fnad.errors import FnadError, GradientError
from fnad.primitives._families import Elementwise
from fnad.testing.compare import assert_trees_close
from fnad.testing.grads import Case, Settings, check_case, check_vmap
from fnad.transforms.vjp import vjp
from fnad.transforms.vmap import vmap

BATCH = 3
Tolerances: TypeAlias = tuple[float | None, float | None, float | None]
"""atol, rtol, eps"""

_SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))
_WEAK = "write constants as Python numbers, which give way to the dtype of the array, not as NumPy scalars or arrays"


def check_primitive(
    primitive: Primitive,
    args: Sequence[Any],
    params: dict[str, Any] | None = None,
    *,
    fixed: Collection[int] = (),
    through: Callable[..., Sequence[Any]] | None = None,
    order: int = 2,
    smooth: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check every rule of a primitive on one sample.

    `infer` must foretell the value's shape, dtype and weakness, in double and single precision and for Python scalars.
    `vjp` and `jvp` must agree with central differences and with each other, to second order (zero derivatives for a
    `constant` primitive). `batch` must agree with a loop for each choice of batched arguments, for the value and for the
    pullback, and differentiate. A recording must evaluate to the same, likewise. Transposed, reversed, strided, broadcast and
    read-only arguments must give what contiguous ones give, and no argument may be changed. Rules must not compute in double
    precision where the arguments are single.

    Args:
        primitive: The primitive; it need not be registered.
        args: Its arguments, in double precision: arrays and Python scalars. Only floating-point ones are differentiated.
        params: Its parameters.
        fixed: Positions of floating-point arguments that are not differentiated.
        through: A function of the arguments that returns them, applied before the primitive, for those which need
            arguments of a kind that a small step would leave (symmetric matrices). It must be differentiable itself.
        order: The highest order of derivative.
        smooth: Whether the sample is an ordinary point. If not (ties, kinks, infinite slopes), derivatives are compared
            at first order only, where the differences are finite.
        atol: Absolute tolerance of comparisons with differences.
        rtol: Relative tolerance, likewise.
        eps: Step of the differences.

    Raises:
        GradientError: a rule is wrong; the message names the primitive, the rule or mode, and the position.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.core.primitive import REGISTRY
        >>> fnad.testing.check_primitive(REGISTRY["tanh"], (np.linspace(-1.0, 1.0, 3),))
    """
    audit = Audit(primitive, tuple(args), params or {}, fixed, through)
    audit.parameters()
    audit.inferred()
    audit.unchanged()
    audit.derivatives(order if smooth else 1, smooth, (atol, rtol, eps))
    audit.batched()
    mapped = audit.mapped()
    mapped.recorded()
    if smooth:
        mapped.derivatives(1, smooth, (atol, rtol, eps), note=" under vmap")
    audit.recorded()
    audit.layouts()
    audit.single_precision(smooth, (None, None, eps))
    audit.narrow()
    audit.weak()


class Audit:
    """One primitive on one sample."""

    def __init__(
        self,
        primitive: Primitive,
        args: tuple[Any, ...],
        params: dict[str, Any],
        fixed: Collection[int] = (),
        through: Callable[..., Sequence[Any]] | None = None,
    ) -> None:
        self.primitive, self.args, self.params, self.fixed, self.through = primitive, args, params, fixed, through
        self.call: Callable[..., Any] = self._apply
        self.what = f"audit of {primitive.name}"
        self.floating = [i for i, a in enumerate(args) if aval_of(a).dtype.kind in "fc" and i not in fixed]

    def _apply(self, *args: Any) -> Any:
        """The primitive as a function of its arguments alone."""
        return self.primitive(*(args if self.through is None else self.through(*args)), **self.params)

    def outputs(self, *args: Any) -> tuple[Any, ...]:
        out = self.call(*args)
        return tuple(out) if self.primitive.multiple else (out,)

    def pullback(self, *args: Any, times: int = 1) -> list[Any]:
        """The gradients by all floating-point arguments, for a fixed cotangent of ones; differentiable and batchable."""

        def function(*floating: Any) -> list[Any]:
            given = list(args)
            for i, x in zip(self.floating, floating, strict=True):
                given[i] = x
            return [o for o in self.outputs(*given) if aval_of(o).dtype.kind in "fc"]

        outs, pull = vjp(function, *(args[i] for i in self.floating))
        cotangents = [np.ones(aval_of(o).shape, aval_of(o).dtype) for o in outs]
        for _ in range(times - 1):
            pull(cotangents)
        return list(pull(cotangents))

    # -- the checks ----------------------------------------------------------------------------------------------

    def parameters(self) -> None:
        """Parameters are hashable, so that a recording can be looked up."""
        for name, value in self.params.items():
            try:
                hash(value)
            except TypeError:
                rule = f"{self.what}: parameters must be hashable"
                raise GradientError(rule, got={name: repr(value)}, fix="use tuples, not lists") from None

    def inferred(self, args: tuple[Any, ...] | None = None, note: str = "") -> None:
        """`infer` foretells shape, dtype and weakness of the value."""
        args = self.args if args is None else args
        if self.through is not None:
            args = tuple(self.through(*args))
        with np.errstate(all="ignore"):
            out = self.primitive(*args, **self.params)
        want = tuple(map(aval_of, out)) if self.primitive.multiple else (aval_of(out),)
        answer = self.primitive.infer(*map(aval_of, args), **self.params)
        got = tuple(answer) if self.primitive.multiple else (answer,)
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            if a != b:
                raise GradientError(
                    f"{self.what}: infer must foretell what impl returns{note}",
                    got={"output": k, "infer": a, "impl": b, "arguments": ", ".join(str(aval_of(x)) for x in args)},
                    fix=f"correct {type(self.primitive).__name__}.infer",
                )

    def unchanged(self) -> None:
        """Neither the value nor the pullback writes into the arguments, and a pullback called again answers the same."""
        before = [np.array(a) for a in self.args]
        frozen = [_read_only(a) for a in self.args]
        with np.errstate(all="ignore"):
            self.call(*frozen)
            if self.floating and not self.primitive.constant:
                once, twice = self.pullback(*self.args), self.pullback(*self.args, times=2)
                names = ("second call", "first call")
                assert_trees_close(twice, once, atol=0, rtol=0, what=f"{self.what}: the pullback's answers", names=names)
        for i, (a, b) in enumerate(zip(self.args, before, strict=True)):
            assert_trees_close(np.asarray(a), b, atol=0, rtol=0, what=f"{self.what}: argument {i}", names=("after the call", "before it"))

    def derivatives(self, order: int, smooth: bool, tolerances: Tolerances, args: tuple[Any, ...] | None = None, note: str = "") -> None:
        """Both modes against central differences, against each other, and their derivatives likewise."""
        args = self.args if args is None else args
        if not self.floating:
            return

        def function(*floating: Any) -> list[Any]:
            given = list(args)
            for i, x in zip(self.floating, floating, strict=True):
                given[i] = x
            return [o for o in self.outputs(*given) if aval_of(o).dtype.kind in "fc"]

        with np.errstate(all="ignore"):
            outs = self.outputs(*args)
            names = [f"output {k}" for k, o in enumerate(outs) if aval_of(o).dtype.kind in "fc"]
            case = Case(function, [args[i] for i in self.floating], [f"argument {i}" for i in self.floating], names)
            rng = np.random.default_rng(0)
            settings = Settings(("fwd", "rev"), *tolerances, rng, ordinary_only=not smooth, what=f"{self.what}{note}")
            check_case(case, order, settings)

    def batched(self) -> None:
        """`batch` against a loop, with each choice of batched arguments: the value and the gradient."""
        for chosen in _subsets(len(self.args)):
            stacks = [self.stack(i) if i in chosen else a for i, a in enumerate(self.args)]
            axes = tuple(0 if i in chosen else None for i in range(len(self.args)))
            with np.errstate(all="ignore"):
                self._batched(self.call, stacks, axes, "value")
                if self.floating and not self.primitive.constant:
                    self._batched(self.pullback, stacks, axes, "gradient")

    def stack(self, i: int) -> Any:
        """A batch of examples like argument i, all in its domain: scaled down a little, or rolled if that is safe."""
        a = np.asarray(self.args[i])
        scaled = a.dtype.kind in "fc" and i not in self.fixed
        rolled = not scaled or isinstance(self.primitive, Elementwise)
        rows = [np.roll(a, k) if rolled else a for k in range(BATCH)]
        return np.stack([row * np.asarray(1 - 0.03 * k, a.real.dtype) if scaled else row for k, row in enumerate(rows)])

    def mapped(self) -> Audit:
        """The audit of the same primitive mapped over a batch: its batch rule must differentiate and record as well."""
        other = copy.copy(self)
        other.args, other.call = tuple(map(self.stack, range(len(self.args)))), vmap(self._apply)
        return other

    def _batched(self, function: Callable[..., Any], stacks: list[Any], axes: tuple[int | None, ...], what: str) -> None:
        try:
            check_vmap(function, tuple(stacks), axes)
            empty = [s if axis is None else s[:0] for s, axis in zip(stacks, axes, strict=True)]
            vmap(function, axes)(*empty)
        except GradientError as e:
            rule = f"{self.what}: vmap of the {what} disagrees with a loop"
            raise GradientError(rule, got={"in_axes": axes, **e.got}, fix=f"correct {type(self.primitive).__name__}.batch") from e

    def recorded(self) -> None:
        """The value and the gradient, recorded from shapes and dtypes and then evaluated, equal the eager ones."""
        functions = [(self.outputs, "value")]
        if self.floating and not self.primitive.constant:
            functions.append((lambda *args: tuple(self.pullback(*args)), "gradient"))
        for function, what in functions:
            with np.errstate(all="ignore"):
                want = function(*self.args)
                graph = record(function, [aval_of(a) for a in self.args], self.primitive)
                got = tuple(evaluate(graph, list(self.args)))
            names = ("evaluated graph", "eager")
            assert_trees_close(got, tuple(want), what=f"{self.what}: recorded {what}", names=names)

    def layouts(self) -> None:
        """Arguments that are not contiguous, and broadcast ones, give what contiguous ones give."""
        functions = [(self.outputs, "value")]
        if self.floating and not self.primitive.constant:
            functions.append((lambda *args: tuple(self.pullback(*args)), "gradient"))
        for i, a in enumerate(self.args):
            if not isinstance(a, np.ndarray) or a.ndim == 0 or a.size == 0:
                continue
            for kind, odd in _layouts(a):
                given, plain = list(self.args), list(self.args)
                given[i], plain[i] = odd, np.array(odd, order="C")
                for function, what in functions:
                    try:
                        with np.errstate(all="ignore"):
                            want, got = function(*plain), function(*given)
                    except np.linalg.LinAlgError:  # repeated rows are singular
                        continue
                    what = f"{self.what}: with argument {i} {kind}, the {what}"
                    assert_trees_close(got, want, what=what, names=(kind, "contiguous"))

    def single_precision(self, smooth: bool, tolerances: Tolerances) -> None:
        """float32 arguments give what `infer` says, about the same value, and derivatives of their own dtype."""
        if not self.floating:
            return
        single = tuple(_single(a) for a in self.args)
        self.inferred(single, " for float32")
        self.derivatives(1, smooth, tolerances, single, " in float32")

    def narrow(self) -> None:
        """Rules do not compute in double precision where value and arguments are single (the tape would round it off again)."""
        args = tuple(map(_single, self.args if self.through is None else self.through(*self.args)))
        if self.primitive.constant or not self.floating:
            return
        with np.errstate(all="ignore"):
            out, pulls = self.primitive.forward(list(args), self.params)
            outs = tuple(out) if self.primitive.multiple else (out,)
            if any(aval_of(o).dtype not in _SINGLE for o in outs):
                return
            ones = [np.ones(aval_of(o).shape, aval_of(o).dtype)[()] for o in outs]
            g = tuple(ones) if self.primitive.multiple else ones[0]
            if isinstance(pulls, Joint):
                answers = list(pulls.pull(g))
            else:
                answers = [pull(g) if pull is not None and i in self.floating else None for i, pull in enumerate(pulls)]
            found = [("vjp", f"argument {i}", answers[i]) for i in self.floating]
            if self.primitive.has_rule("jvp"):
                tangents = [_one(a) if i in self.floating else None for i, a in enumerate(args)]
                answer = self.primitive.jvp(out, args, tangents, **self.params)
                found += [("jvp", f"output {k}", t) for k, t in enumerate(answer if self.primitive.multiple else (answer,))]
        for rule, place, value in found:
            dtype = value.dtype if isinstance(value, Scattered) else aval_of(value).dtype if value is not None else None
            if dtype is not None and dtype not in _SINGLE:
                raise GradientError(f"{self.what}: {rule} computes in {dtype} for float32", got={"at": place}, fix=_WEAK)

    def weak(self) -> None:
        """0-d arguments given as Python scalars: each choice of them."""
        scalars = [i for i, a in enumerate(self.args) if isinstance(a, np.ndarray | np.generic) and np.ndim(a) == 0]
        for chosen in _subsets(len(scalars)):
            picked = [scalars[k] for k in chosen]
            given = tuple(a.item() if i in picked else a for i, a in enumerate(self.args))
            note = f" for Python scalars as arguments {picked}"
            self.inferred(given, note)
            if any(given[i].__class__ not in PYTHON_SCALARS for i in range(len(given))):
                self.inferred(tuple(_single(a) for a in given), note + " and float32")
            self.derivatives(1, False, (None, None, None), given, note)


def _subsets(n: int) -> Iterator[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(1, n + 1))


def _single(a: Any) -> Any:
    if not isinstance(a, np.ndarray | np.generic) or a.dtype.kind not in "fc":
        return a
    return a.astype(np.complex64 if a.dtype.kind == "c" else np.float32)


def _one(a: Any) -> Any:
    return a.__class__(1) if a.__class__ in PYTHON_SCALARS else np.ones_like(a)[()]


def _read_only(a: Any) -> Any:
    if not isinstance(a, np.ndarray):
        return a
    a = a.copy()
    a.flags.writeable = False
    return a


def _layouts(a: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The entries of `a` in other memory layouts, and `a` with its first entry along each axis repeated by broadcasting."""
    flip = (slice(None, None, -1),) * a.ndim
    yield "of negative strides", a[flip].copy()[flip]
    yield "in Fortran order", np.asfortranarray(a)
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    yield "strided", wide[..., ::2]
    for axis in range(a.ndim):
        yield f"broadcast along axis {axis}", np.broadcast_to(np.take(a, [0], axis=axis), a.shape)


def foretells(primitive: Primitive, *args: Any, **params: Any) -> None:
    """Require that `infer` agrees with `impl` on arguments of any dtypes, both in what they accept and in what they return.

    Raises:
        GradientError: they disagree.
    """
    try:
        with np.errstate(all="ignore"):
            primitive.impl(*args, **params)
    except FnadError:
        raise
    except TypeError:
        return
    Audit(primitive, args, params).inferred()
