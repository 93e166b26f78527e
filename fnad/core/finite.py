"""debug_nans: looks at results, and says which operation made the first nan or inf.

An operation is to blame if its result holds a nan and no argument does, or an inf and all arguments are finite. In a backward
pass that is asked of whole pullbacks, not of the operations inside: a slope may well be infinite where its cotangent is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fnad._config import CHANGED, option, scoped
from fnad.core.aval import aval_of
from fnad.core.place import PLACE, Place, here
from fnad.core.tracer import Tracer, ValueTracer
from fnad.errors import NonFiniteError

if TYPE_CHECKING:
    from fnad.core.primitive import Primitive

GRAPHS = "graphs"
"""The value of `debug_nans` inside operations whose result is looked at as a whole: only recorded graphs are looked into."""
FINITE, INF, NAN = range(3)
_AWAY = {
    "divide": "a / np.where(b == 0, 1, b)",
    "sqrt": "np.sqrt(np.where(x > 0, x, 1))",
    "power": "np.where(x > 0, x, 1) ** p",
    "exp": "np.exp(np.minimum(x, 700))",
}
_PASS = "what is meant passes under fnad.config(debug_nans=False)"


def _fix(name: str) -> str:
    """What to write, for an operation."""
    return f"keep the arguments away from there, as in {_AWAY.get(name, 'np.log(np.where(x > 0, x, 1))')}; {_PASS}"


def plain(x: Any) -> Any:
    """The value of a tracer that knows it, made dense; None where there is none."""
    while isinstance(x, ValueTracer):
        x = x.value
    if isinstance(x, Tracer):
        return None
    return x.dense() if hasattr(x, "dense") else x


def level(x: Any) -> int:
    """The worst entry of a value."""
    x = plain(x)
    if x is None or aval_of(x).dtype.kind not in "fc" or np.isfinite(x).all():
        return FINITE
    return NAN if np.isnan(x).any() else INF


def worst(xs: Sequence[Any]) -> int:
    return max(map(level, xs), default=FINITE)


def watch(primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Any) -> None:
    """Look at the result of an operation."""
    mode = option("debug_nans")
    if not mode or (mode == GRAPHS and not primitive.holds_graph(params)):
        return
    outs = out if primitive.multiple else (out,)
    if worst(outs) > worst(args):
        with scoped(debug_nans=True):
            primitive.examine(*map(plain, args), **params)
        raise made(primitive.name, args, outs, here())


def watched(primitive: Primitive, params: dict[str, Any], values: Sequence[Any], rule: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
    """What a rule answers (`forward`, `push`): a result, which is looked at, and something else."""
    if option("debug_nans") is not True:
        return rule()
    with scoped(debug_nans=GRAPHS):
        found = rule()
    watch(primitive, values, params, found[0])
    return found


def watch_tangents(primitive: Primitive, values: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]) -> None:
    """Look at the tangents of results; None is zero."""
    given = [*values, *(t for t in tangents if t is not None)]
    dots = [t for t in outs if t is not None]
    if option("debug_nans") is True and worst(dots) > worst(given):
        raise made(f"the tangent of {primitive.name}", given, dots, here())


class Origin:
    """What a tape notes of an entry: the operation, its place, and the worst of what its pullbacks may read."""

    __slots__ = ("level", "name", "place")

    def __init__(self, primitive: Primitive, values: Sequence[Any]) -> None:
        place = here()
        self.name = primitive.name
        self.level = worst(values) if CHANGED.get() and option("debug_nans") else FINITE
        if place is not None and place.backward_of:
            self.name += f" (in the backward pass of {place.backward_of})"
        self.place = None if place is None else Place(place.code, place.line, self.name)

    def noted(self, pull: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The pullback, on behalf of the operation's place; its answers are looked at."""

        def of_place(g: Any) -> Any:
            token = PLACE.set(self.place)
            try:
                return self._looked_at(pull, g) if CHANGED.get() and option("debug_nans") else pull(g)
            finally:
                PLACE.reset(token)

        return of_place

    def _looked_at(self, pull: Callable[[Any], Any], g: Any) -> Any:
        with scoped(debug_nans=GRAPHS):
            answer = pull(g)
        given, answers = ([c for c in (x if isinstance(x, tuple | list) else [x]) if c is not None] for x in (g, answer))
        if worst(answers) > max(worst(given), self.level):
            raise made(f"the backward pass of {self.name}", given, answers, self.place, "cotangent")
        return answer


def made(what: str, args: Sequence[Any], outs: Sequence[Any], place: Place | None, given: str = "arguments") -> NonFiniteError:
    """The error for an operation that made what is not finite."""
    bad = max(range(len(outs)), key=lambda k: level(outs[k]))
    values = [v for v in map(plain, args) if v is not None]
    out = np.asarray(plain(outs[bad]))
    kind, from_ = ("a nan", "infinities") if level(out) == NAN else ("an inf", "finite numbers")
    flaws = np.isnan(out) if level(out) == NAN else ~np.isfinite(out)
    first = np.unravel_index(int(np.argmax(flaws)), out.shape)
    where = f"[{', '.join(map(str, first))}]" if first else ""
    number = f" {bad}" if len(outs) > 1 else ""
    got = {
        f"result{number}": f"{aval_of(out)}, {np.count_nonzero(flaws)} of {out.size} entries",
        "first of them": f"result{number}{where} = {out[first]}",
        given: ", ".join(map(str, map(aval_of, values))) or "none",
        **_entries(given, values, out.shape, first),
        "at": place or "unknown",
    }
    return NonFiniteError(
        f"{what} made {kind} from {from_ if worst(values) else 'finite numbers'}", got=got, fix=_fix(what.rsplit(" ", 1)[-1])
    )


def _entries(given: str, values: Sequence[Any], shape: tuple[int, ...], index: tuple[Any, ...]) -> dict[str, str]:
    """What an elementwise operation was given at an entry."""
    try:
        if not values or np.broadcast_shapes(*map(np.shape, values)) != shape:
            return {}
        return {f"{given} there": ", ".join(str(np.broadcast_to(v, shape)[index]) for v in values)}
    except ValueError:
        return {}
