"""Writes docs/supported.md, the table of supported functions, from the dispatch registry: `python docs/generate_supported.py`.

Whether a function is differentiable is not looked up but tried: it is called on forward-mode tracers, and either hands
on a tangent or does not.
"""

from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

import fnad
from fnad import tree
from fnad.core.dispatch import PROVIDERS, REFUSED, ROWS, UFUNC_METHODS, name_of
from fnad.core.primitive import Primitive
from fnad.core.tracer import Tracer
from fnad.primitives._families import Elementwise

PAGE = Path(__file__).with_name("supported.md")
NUMPY = ".".join(np.__version__.split(".")[:2])

HEAD = f"""# Supported functions

<!-- Written by docs/generate_supported.py: do not edit. -->

NumPy functions that accept traced values, generated from fnad's registry with NumPy {NUMPY}. *Differentiable* means that
derivatives pass through the function, *constant* that its result never depends differentiably on its arguments
(comparisons, positions, rounding): its derivative is zero. All of them have NumPy's signature and work in forward and
reverse mode, to any order, and under `vmap`, but for those whose result has a shape that depends on the entries (`np.nonzero`,
`np.unique`, `np.compress` ...). An option that is not supported raises an error.

A function that is not listed raises [UnsupportedError](errors.md#unsupportederror) when it meets a traced value. Most are
easily written with those below; [fnad.implements](adding_a_primitive.md#functions-of-numpy-and-other-libraries) registers
one for good. With plain arrays only, every function works as always.
"""

SECTIONS = {
    "ufuncs": "Ufuncs",
    "elementwise": "Elementwise functions",
    "reductions": "Reductions",
    "statistics": "Order statistics, covariance, counts",
    "shaping": "Shape and layout",
    "padding": "Padding and triangles",
    "joining": "Joining and splitting",
    "creation": "Creation",
    "calculus": "Interpolation, differences, convolution, polynomials",
    "indexing": "Indexing",
    "sorting": "Sorting and searching",
    "algebra": "Products",
    "einsum": "Einstein sums",
    "linalg": "Linear algebra",
    "decompositions": "Decompositions and least squares",
    "fft": "Fourier transforms",
    "metadata": "Questions about shape and dtype",
}


def page() -> str:
    """The text of the page."""
    for name in dir(scipy.special):
        if isinstance(getattr(scipy.special, name), np.ufunc):
            for provider in PROVIDERS:
                provider(getattr(scipy.special, name))
    fnad.numpy.load_all()
    groups: dict[str, list[Any]] = {}
    for function, rule in ROWS.items():
        groups.setdefault(_section(function, rule), []).append(function)
    order = [*SECTIONS, *sorted(set(groups) - set(SECTIONS) - {"scipy.special"})]
    parts = [HEAD]
    parts += [_table(SECTIONS.get(key, key), groups[key]) for key in order if key in groups]
    parts.append(_ufunc_methods())
    parts.append(_array_methods())
    parts.append(_table("Ufuncs of scipy.special", groups["scipy.special"], "They are called as usual: `scipy.special.expit(x)`."))
    parts.append(_own())
    parts.append(_refused())
    return "\n".join(parts)


def _section(function: Any, rule: Any) -> str:
    if isinstance(function, np.ufunc):
        return "ufuncs" if name_of(function).startswith("np.") else "scipy.special"
    if isinstance(rule, Primitive):
        return "elementwise"
    return rule.__module__.rpartition(".")[2]


_ELSEWHERE = {
    "logsumexp": "`torch.logsumexp`", "rnn": "`torch.nn.RNN`", "gru": "`torch.nn.GRU`", "lstm": "`torch.nn.LSTM`",
    "rnn_tanh_cell": "`torch.rnn_tanh_cell`", "rnn_relu_cell": "`torch.rnn_relu_cell`", "gru_cell": "`torch.gru_cell`",
    "lstm_cell": "`torch.lstm_cell`", "sinusoidal_positions": "", "rotary_embedding": "",
}  # fmt: skip
"""What functions of `fnad.nn.functional` correspond to that are not in `torch.nn.functional`."""


def _table(title: str, functions: Iterable[Any], text: str = "") -> str:
    lines = [f"## {title}", "", *([text, ""] if text else []), "| function | derivative | notes |", "|---|---|---|"]
    lines += [f"| {_code(_names(f))} | {_kind(f)} | {_notes(f)} |" for f in sorted(functions, key=lambda f: _names(f)[0])]
    return "\n".join(lines) + "\n"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _names(function: Any) -> list[str]:
    """All names of a function, the one that bears its own name first."""
    if function is operator.getitem:
        return ["x[...]"]
    first = name_of(function)
    found = [first]
    for module, prefix in ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft"), (scipy.special, "scipy.special")):
        found += [f"{prefix}.{n}" for n in dir(module) if not n.startswith("_") and getattr(module, n, None) is function]
    return [first, *sorted(set(found) - {first})]


# -- differentiable or not ----------------------------------------------------------------------------------------------

_SQUARE = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.3, 0.1, 1.8]])
_MASK = np.array([[True, False, True], [False, True, False], [True, True, False]])

PROBES: list[Callable[[Any, Any], Any]] = [
    lambda f, t: f(t),
    lambda f, t: f(t[0]),
    lambda f, t: f(t[0, 0]),
    lambda f, t: f(t, t),
    lambda f, t: f(t, t[0]),
    lambda f, t: f(t[0], t),
    lambda f, t: f(t[0], t[0]),
    lambda f, t: f(t[0, 0], t[0, 1]),
    lambda f, t: f(t, 1),
    lambda f, t: f(t, 0),
    lambda f, t: f(t, 3),
    lambda f, t: f(t, (3, 3)),
    lambda f, t: f(t, 0, 1),
    lambda f, t: f(t, "float64"),
    lambda f, t: f([t, t]),
    lambda f, t: f([t[0], t[0]]),
    lambda f, t: f([t[0], t[0]], 0),
    lambda f, t: f(_MASK, t),
    lambda f, t: f(_MASK, t, t),
    lambda f, t: f(_MASK[0], t[0]),
    lambda f, t: f([_MASK, ~_MASK], [t, t]),
    lambda f, t: f(t, 0.5, 2.0),
    lambda f, t: f(t, np.array([0, 1]), 0),
    lambda f, t: f(t, np.zeros((3, 3), int), 0),
    lambda f, t: f(np.array([0, 1, 2]), [t[0], t[1], t[2]]),
    lambda f, t: f("ij->i", t),
    lambda f, t: f(t, t, t),
    lambda f, t: f((t[0], t[0])),
    lambda f, t: f(t[0], t[0], t[0]),
    lambda f, t: f(t[0], t[1], t[2]),
    lambda f, t: f((np.array([0]), t.astype(int)[0, :1]), (3, 3)),
    lambda f, t: f(t.astype(int), (9, 9)),
    lambda f, t: f(t, [0], 9.0),
    lambda f, t: f(3, t[0]),
    lambda f, t: f(t, t, 1, 0, 0),
    lambda f, t: f(2, t),
    lambda f, t: f(t[:, :, None], 1),
    lambda f, t: f(t, 0.5),
    lambda f, t: f(t[0], t[1], 1),
    lambda f, t: f(np.array([0, 1, 2]), t[0]),
    lambda f, t: f(t, [_MASK], [lambda x: x]),
]


def _kind(function: Any) -> str:
    rule = ROWS[function]
    if isinstance(rule, Primitive):
        return "constant" if rule.constant else "differentiable"
    if rule.__module__ == "fnad.numpy.metadata":
        return "a plain answer"
    return "differentiable" if _differentiable(name_of(function), ROWS[function]) else "constant"


def _differentiable(name: str, rule: Callable[..., Any]) -> bool:
    answered = False
    for probe in PROBES:
        found: list[bool] = []

        def run(t: Any, probe: Callable[[Any, Any], Any] = probe, found: list[bool] = found) -> Any:
            out = probe(rule, t)
            found.append(any(isinstance(x, Tracer) for x in tree.leaves(list(out) if isinstance(out, tuple) else out)))
            return 0.0

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for point in (_SQUARE, _SQUARE + 0.5j):
                try:
                    fnad.jvp(run, (point,), (np.ones_like(point),))
                except Exception:  # the arguments do not suit the function
                    continue
                answered = True
        if any(found):
            return True
    if not answered:
        raise LookupError(f"no probe of docs/generate_supported.py suits {name}: add one")
    return False


# -- notes ---------------------------------------------------------------------------------------------------------------


def _notes(function: Any) -> str:
    rule = ROWS[function]
    if isinstance(rule, Elementwise):
        return "; ".join(_of_elementwise(rule, function))
    return "" if isinstance(rule, Primitive) else _first_line(rule)


def _of_elementwise(rule: Elementwise, function: Any) -> Iterable[str]:
    if rule.constant:
        return
    for text, belongs in (("constant in", lambda s: s is None), ("an error if differentiated by", _refuses)):
        which = [name for name, slope in zip(("first", "second", "third"), rule.slopes, strict=False) if belongs(slope)]
        if which:
            yield f"{text} the {' and '.join(which)} argument"
    if "c" in rule.kinds:
        yield "real and complex"


def _refuses(slope: Any) -> bool:
    if not callable(slope) or isinstance(slope, np.ufunc) or inspect.signature(slope).parameters:
        return False
    try:
        slope()
    except fnad.errors.UnsupportedError:
        return True
    return False


def _first_line(rule: Any) -> str:
    text = (rule.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


# -- the rest of the page ------------------------------------------------------------------------------------------------


def _ufunc_methods() -> str:
    return f"## Methods of ufuncs\n\n{_code(sorted(f'np.{u.__name__}.{m}' for u, m in UFUNC_METHODS))}\n"


def _array_methods() -> str:
    """Methods and attributes of traced arrays that work, found by asking which of ndarray's a tracer has."""
    named = [n for n in dir(np.ndarray) if not n.startswith("_") and hasattr(Tracer, n)]
    refused: list[str] = []
    works: list[str] = []
    for n in named:
        function = getattr(np, n, None)
        method = getattr(Tracer, n)
        inherited = getattr(method, "__doc__", None) == f"`np.{n}` of this array."
        if inherited and function not in ROWS:
            continue
        (refused if n in _REFUSED_METHODS else works).append(n if isinstance(method, property) else f"{n}()")
    lines = ["## Methods and attributes of arrays", "", "Traced arrays have these, with the meaning they have for `ndarray`:", ""]
    lines += [_code(works) + "."]
    lines += ["", "These raise, because they change the array or leave it for plain Python:", ""]
    lines += [_code(refused) + "."]
    lines += ["", "Operators (`+ - * / // % ** @ < <= == != > >= & | ^ ~ << >>`), `abs`, `len`, iteration and unpacking work."]
    return "\n".join(lines) + "\n"


_REFUSED_METHODS = {"fill", "item", "partition", "put", "resize", "sort", "tobytes", "tolist"}


def _own() -> str:
    """Functions of fnad's own for what NumPy's protocols cannot reach."""
    lines = ["## Functions of fnad", "", "| function | in place of |", "|---|---|"]
    lines.append("| `fnad.at(x)[index].set(v)`, `add`, `multiply`, `divide`, `power`, `max`, `min`, `get` | `x[index] = v` and so on |")
    for module in (fnad.scipy.linalg, fnad.scipy.special):
        for name in sorted(n for n in vars(module) if inspect.isfunction(getattr(module, n)) and not n.startswith("_")):
            if getattr(module, name).__module__.startswith(module.__name__):
                ours, theirs = f"{module.__name__}.{name}", f"scipy.{module.__name__.split('.')[-1]}.{name}"
                lines.append(f"| [`{ours}`](api.md#{ours}) | `{theirs}`, which is no ufunc |")
    for name in sorted(n for n in dir(fnad.nn.functional) if n[0] != "_" and inspect.isfunction(getattr(fnad.nn.functional, n))):
        theirs = _ELSEWHERE.get(name, f"`torch.nn.functional.{name}`")
        lines.append(f"| [`fnad.nn.functional.{name}`](api.md#fnad.nn.functional.{name}) | {theirs} |")
    return "\n".join(lines) + "\n"


def _refused() -> str:
    advice: dict[str, list[str]] = {}
    for function, text in REFUSED.items():
        advice.setdefault(text, []).append(name_of(function))
    lines = ["## Refused", "", "These can never be traced:", "", "| function | what to do |", "|---|---|"]
    lines += [f"| {_code(sorted(names))} | {text} |" for text, names in sorted(advice.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
