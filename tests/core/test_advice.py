"""What an error about a traced value advises: the line that asked, and what to write there; all of it exists and works."""

from __future__ import annotations

import linecache
import math
import re
import statistics
from math import sin

import numpy as np
import pytest

import fnad
from fnad.core import advice, hints
from fnad.errors import ConcretizationError, FnadError, TracerConversionError, UnknownNameError

PLAIN = np.arange(9.0)
generator = np.random.default_rng(0)


class Holder:
    rng = None

    def __init__(self):
        self.rng = np.random.default_rng(0)


holder = Holder()


def while_statement(x):
    while np.sum(x) < 10.0:
        x = x * 2.0
    return x


def if_statement(x):
    if np.sum(x) > 0:
        return x
    return -x


def elif_statement(x):
    if x.shape == ():
        return x
    elif np.all(x > 0):
        return -x
    return 2.0 * x


def written(source):
    """The function `f` of a source text, as pytest leaves it alone."""
    linecache.cache["written.py"] = (len(source), None, source.splitlines(True), "written.py")
    names = {"np": np}
    exec(compile(source, "written.py", "exec"), names)
    return names["f"]


assertion = written('def f(x):\n    assert np.all(x > 0), "positive"\n    return x\n')


def negated(x):
    if not np.any(x > 0):
        return x
    return -x


def both(x):
    if x.ndim == 1 and x[0] > 0:
        return x
    return -x


def filtered(x):
    return sum(v for v in x if v > 0)


def over_several_lines(x):
    return max(
        x[0],
        x[1],
    )


def stored(x):
    out = np.zeros(3)
    out[1:2] = x[:1]
    return out


X = np.array([3.0, 1.0, 2.0])
CASES = {
    # statements and operators on truth values
    "if": (if_statement, (X,), r"np\.where\(condition, a, b\)(.|\n)*fnad\.cond"),
    "elif": (elif_statement, (X,), r"np\.where\(condition, a, b\)(.|\n)*fnad\.cond"),
    "if else": (lambda x: x if x[0] > 0 else -x, (X,), r"np\.where\(condition, a, b\)(.|\n)*fnad\.cond"),
    "if of a call": (lambda x: x if np.any(x > 0) else -x, (X,), r"np\.where\(condition, a, b\)(.|\n)*fnad\.cond"),
    "if of a method": (lambda x: x if (x > 0).any() else -x, (X,), r"np\.where\(condition, a, b\)(.|\n)*fnad\.cond"),
    "while": (while_statement, (X,), r"fnad\.while_loop"),
    "assert": (assertion, (X,), r"before the call"),
    "not": (negated, (X,), r"~ instead of"),
    "and": (both, (X,), r"& \(b > 0\)"),
    "or": (lambda x: x[0] > 0 or x[1] > 0, (X,), r"& \(b > 0\)"),
    "chain": (lambda x: x if 0 < x[0] < 1 else -x, (X,), r"\(a < x\) & \(x < b\)"),
    "in": (lambda x: 1.0 in x, (X,), r"np\.any\(x == v\)"),
    "not in": (lambda x: 1.0 not in x, (X,), r"np\.any\(x == v\)"),
    "filter of a comprehension": (filtered, (X,), r"np\.where"),
    # functions of Python's
    "max(a, b)": (lambda x: max(x[0], 0.0), (X,), r"np\.maximum\(x\[0\], 0\.0\) instead of max"),
    "max(x)": (lambda x: max(x), (X,), r"np\.max\(x\) instead of max"),
    "min(a, b)": (lambda x: min(x[0], x[1]), (X,), r"np\.minimum\(x\[0\], x\[1\]\)"),
    "several lines": (over_several_lines, (X,), r"np\.maximum\(x\[0\], x\[1\]\)"),
    "sorted": (lambda x: sorted(x), (X,), r"np\.sort\(x\)"),
    "any": (lambda x: any(x > 0), (X,), r"np\.any\(x > 0\)"),
    "all": (lambda x: all(x > 0), (X,), r"np\.all\(x > 0\)"),
    "bool": (lambda x: bool(x[0]), (X,), r"np\.not_equal\(x\[0\], 0\)(.|\n)*static_argnames"),
    "float": (lambda x: float(x[0]), (X,), r"np\.astype\(x\[0\], float\)(.|\n)*static_argnames"),
    "int": (lambda x: int(x[0]), (X,), r"np\.astype\(x\[0\], int\)(.|\n)*static_argnames"),
    "int of an integer": (lambda n: int(n), (3,), r"np\.astype\(n, int\)(.|\n)*static_argnames"),
    "complex": (lambda x: complex(x[0]), (X,), r"np\.astype\(x\[0\], complex\)"),
    "round": (lambda x: round(x[0]), (X,), r"np\.round\(x\[0\]\)"),
    "range(n)": (lambda n: list(range(n)), (3,), r"fnad\.fori_loop\(0, n, body, init\)(.|\n)*static_argnames"),
    "range(a, b)": (lambda n: list(range(1, n)), (3,), r"fnad\.fori_loop\(lower, upper"),
    "math.sin": (lambda x: math.sin(x[0]), (X,), r"np\.sin\(x\[0\]\) instead of math\.sin"),
    "sin": (lambda x: sin(x[0]), (X,), r"np\.sin\(x\[0\]\) instead of sin"),
    "math.pow": (lambda x: math.pow(x[0], 2), (X,), r"np\.power\(x\[0\], 2\)"),
    "math.gamma": (lambda x: math.gamma(x[0]), (X,), r"scipy\.special"),
    # formatting
    "f-string": (lambda x: f"{x[0]:.3f}", (X,), r"after the call"),
    "%": (lambda x: "%.3f" % x[0], (X,), r"after the call"),  # noqa: UP031
    "format": (lambda x: "{:.3f}".format(x[0]), (X,), r"after the call"),  # noqa: UP032
    "item": (lambda x: x[0].item(), (X,), r"after the call"),
    "tolist": (lambda x: x.tolist(), (X,), r"list\(x\)"),
    # NumPy's functions that need plain values
    "np.zeros(n)": (lambda n: np.zeros(n), (3,), r"x\.shape(.|\n)*static_argnames"),
    "np.ones(n)": (lambda n: np.ones(n), (3,), r"x\.shape(.|\n)*static_argnames"),
    "np.zeros((n, 2))": (lambda n: np.zeros((n, 2)), (3,), r"x\.shape(.|\n)*static_argnames"),
    "np.eye(n)": (lambda n: np.eye(n), (3,), r"x\.shape(.|\n)*static_argnames"),
    "np.arange(n)": (lambda n: np.arange(n), (3,), r"x\.shape(.|\n)*static_argnames"),
    "np.full(n, 1)": (lambda n: np.full(n, 1.0), (3,), r"x\.shape(.|\n)*static_argnames"),
    "np.full(3, x)": (lambda v: np.full(3, v), (3.0,), r"np\.broadcast_to\(x, shape\)"),
    "x.reshape(n, -1)": (lambda x, n: x.reshape(n, -1), (X, 3), r"x\.shape(.|\n)*static_argnames"),
    "np.repeat(x, n)": (lambda x, n: np.repeat(x, n), (X, 3), r"x\.shape(.|\n)*static_argnames"),
    "np.sum(x, n)": (lambda x, n: np.sum(x, axis=n), (X, 0), r"x\.shape(.|\n)*static_argnames"),
    "np.float32(x)": (lambda x: np.float32(x), (X,), r"x\.astype\(np\.float32\)"),
    "np.array([a, b])": (lambda x: np.array([x[0], x[1]]), (X,), r"np\.stack\(\[a, b\]\)"),
    # indices
    "x[t:t + 3]": (
        lambda x, t: x[t : t + 3],
        (PLAIN, 2),
        r"x\[t \+ np\.arange\(3\)\] with(.|\n)*fnad\.at\(\.\.\.\)\[t \+ np\.arange\(3\)\]\.set",
    ),
    "x[:, t:t + 2]": (lambda x, t: x[:, t : t + 2], (np.ones((2, 5)), 2), r"x\[:, t \+ np\.arange\(2\)\] with"),
    "x[:n]": (lambda x, n: x[:n], (PLAIN, 2), r"x\[i \+ np\.arange\(n\)\] with"),
    "plain[t:t + 3]": (lambda t: PLAIN[t : t + 3], (2,), r"fnad\.at\(PLAIN\)\[t \+ np\.arange\(3\)\]\.get\(\)"),
    "plain[t]": (lambda t: PLAIN[t], (2,), r"fnad\.at\(plain\)\[t\]\.get\(\)"),
    "items[t]": (lambda t: [1.0, 2.0][t], (1,), r"fnad\.at\(np\.stack\(items\)\)\[i\]\.get\(\)"),
    "a[i] = x": (stored, (X,), r"fnad\.at\(a\)\[i\]\.set\(x\)"),
    "{x: 1}": (lambda x: {x: 1}, (X,), r"plain Python keys"),
    "x.size()": (lambda x: x.size(), (X,), r"x\.shape"),
    "x.shape()": (lambda x: x.ndim(), (X,), r"x\.ndim"),
    # random numbers
    "rng.normal(x)": (lambda x: generator.normal(x), (X,), r"before the call(.|\n)*mean \+ scale \* z"),
    "rng.normal(0, x)": (lambda x: generator.normal(0.0, x), (X,), r"before the call"),
    "rng.normal(size=n)": (lambda n: generator.normal(size=n), (3,), r"static_argnames|before the call"),
    "np.random.normal(x)": (lambda x: np.random.normal(x), (X,), r"before the call"),
    "np.random.default_rng(0).normal(x)": (lambda x: np.random.default_rng(0).normal(x), (X,), r"fnad\.at|np\.stack"),
    "self.rng.normal(x)": (lambda x: holder.rng.normal(x), (X,), r"before the call"),
}


@pytest.mark.parametrize("case", CASES)
def test_under_jit_the_line_and_what_to_write_are_named(case):
    f, args, remedy = CASES[case]
    with pytest.raises(FnadError, match=remedy) as caught:
        fnad.jit(f)(*args)
    message = str(caught.value)
    assert "stop_gradient" not in message  # which would be as unknown
    assert re.search(rf"at: ({re.escape(__file__)}|written\.py):\d+ in ", message)


@pytest.mark.parametrize(
    ("written", "args", "want"),
    [
        (lambda x, t: x[t + np.arange(3)], (PLAIN, 2), PLAIN[2:5]),
        (lambda x, t: x[:, t + np.arange(2)], (PLAIN.reshape(3, 3), 1), PLAIN.reshape(3, 3)[:, 1:3]),
        (lambda t: fnad.at(PLAIN)[t + np.arange(3)].get(), (2,), PLAIN[2:5]),
        (lambda x, t: fnad.at(x)[t + np.arange(3)].set(0.0)[t + np.arange(3)], (PLAIN, 2), np.zeros(3)),
        (lambda t: fnad.at(PLAIN)[t].get(), (2,), 2.0),
        (lambda t: fnad.at(np.stack([1.0, 2.0]))[t].get(), (1,), 2.0),
        (lambda x: np.astype(x[0], int), (X,), 3),
        (lambda x: x.astype(np.float32), (X,), X.astype(np.float32)),
        (lambda x: np.not_equal(x[0], 0), (X,), True),
        (lambda n: fnad.fori_loop(0, n, lambda i, c: c + 1.0, 0.0), (3,), 3.0),
        (lambda v: np.broadcast_to(v, (3,)), (3.0,), np.full(3, 3.0)),
        (lambda x: np.maximum(x[0], 0.0), (X,), 3.0),
        (lambda x: np.any(x == 1.0), (X,), True),
        (lambda x: np.where((x > 0) & (x < 2.5), x, 0.0), (X,), np.array([0.0, 1.0, 2.0])),
        (lambda x: np.stack(list(x)), (X,), X),
    ],
)
def test_what_is_advised_works_under_jit(written, args, want):
    got = fnad.jit(written)(*args)
    np.testing.assert_array_equal(got, want)
    assert np.asarray(got).dtype == np.asarray(want).dtype or np.asarray(want).ndim == 0


def test_where_values_are_known_the_plain_value_is_offered():
    for f in (lambda x: float(x[0]), lambda x: math.sin(x[0]), lambda x: np.float32(x)):
        with pytest.raises(TracerConversionError, match=r"stop_gradient\(x\) gives the plain value"):
            fnad.grad(f)(X)
        with pytest.raises(TracerConversionError, match=r"(?s)\A(?!.*stop_gradient)"):
            fnad.jit(fnad.grad(f))(X)
        with pytest.raises(TracerConversionError, match=r"(?s)\A(?!.*stop_gradient)"):
            fnad.vmap(fnad.grad(f))(np.stack([X, X]))
    assert np.isnan(fnad.grad(lambda x: x * float(fnad.stop_gradient(x)))(np.nan))


def test_under_vmap_the_way_out_is_in_axes():
    with pytest.raises(FnadError, match="in_axes"):
        fnad.vmap(lambda x: float(x))(X)
    with pytest.raises(ConcretizationError, match=r"np\.maximum\(x, 0\.0\)"):
        fnad.vmap(lambda x: max(x, 0.0))(X)


def test_code_without_source_gets_general_advice():
    names = {"np": np}
    exec("def f(x):\n    return x if x[0] > 0 else -x", names)
    with pytest.raises(ConcretizationError, match=r"np\.where(.|\n)*fnad\.while_loop"):
        fnad.jit(names["f"])(X)
    with pytest.raises(TracerConversionError, match=r"a function of NumPy"):
        fnad.jit(statistics.fmean)(X)


def test_source_that_has_changed_since_does_no_harm(tmp_path, monkeypatch):
    code = compile("def f(x):\n    return float(x[0])\n", "changed.py", "exec")
    names = {}
    exec(code, names)
    for source in ("", "x = 1\n", "def f(:\n", "def f(x):\n    return 1\n\n\n", "é\n" * 5):
        monkeypatch.setitem(linecache.cache, "changed.py", (len(source), None, source.splitlines(True), "changed.py"))
        with pytest.raises(TracerConversionError, match="static_argnames"):
            fnad.jit(names["f"])(X)


def test_errors_of_the_users_own_are_left_alone():
    def f(x):
        raise TypeError("expected a sequence of integers or a single integer, got 'text'")

    for wrong in (f, lambda x: x + "a", lambda x: len(3), lambda x: X()):
        with pytest.raises(TypeError) as plain:
            fnad.jit(wrong)(X)
        assert not isinstance(plain.value, ConcretizationError)


def test_len_iteration_and_print_work(capsys):
    def f(x):
        print(x, f"{x}", str(x[0]))
        return len(x) * sum(v for v in x) + x.shape[0]

    assert fnad.jit(f)(X) == 21
    assert capsys.readouterr().out == "<recording tracer float64[3]> <recording tracer float64[3]> <recording tracer float64[]>\n"


# -- names of other libraries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [fnad.grad, fnad.jit, fnad.vmap])
@pytest.mark.parametrize(
    ("use", "remedy"),
    [
        (lambda x: x.at[0].set(1.0), r"fnad\.at\(x\)\[i\]\.set\(v\)"),
        (lambda x: x.unsqueeze(0), r"np\.expand_dims"),
        (lambda x: x.view(-1), r"x\.reshape"),
        (lambda x: x.permute(0), r"np\.transpose"),
        (lambda x: x.detach(), r"fnad\.stop_gradient\(x\)"),
        (lambda x: x.numpy(), r"x itself"),
        (lambda x: x.dim(), r"x\.ndim"),
        (lambda x: x.t(), r"x\.T"),
        (lambda x: x.backward(), r"fnad\.grad"),
        (lambda x: x.cpu(), r"plain NumPy arrays"),
        (lambda x: x.float(), r"x\.astype\(np\.float32\)"),
        (lambda x: x.exp(), r"np\.exp\(x\)"),
        (lambda x: x.add_(1.0), r"x = np\.add\(x, \.\.\.\), a new array"),
        (lambda x: x.zero_(), r"a new array"),
        (lambda x: x.flags, r"owns no memory"),
    ],
)
def test_attributes_of_other_libraries(transform, use, remedy):
    argument = X if transform is not fnad.vmap else np.stack([X, X])
    with pytest.raises(UnknownNameError, match=remedy) as caught:
        transform(use)(argument)
    assert isinstance(caught.value, AttributeError)
    assert __file__ in str(caught.value)


def test_unknown_attributes_are_plain_attribute_errors():
    def f(x):
        assert not hasattr(x, "unheard_of")
        assert not hasattr(x, "__array_interface__")
        assert getattr(x, "at", None) is None
        return x

    fnad.jit(f)(X)
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
        fnad.jit(lambda x: x.unheard_of)(X)


def test_an_update_without_an_index():
    for x in (X, None):
        update = (lambda x: fnad.at(x).set(0.0)) if x is None else (lambda _, x=x: fnad.at(x).set(0.0))
        with pytest.raises(UnknownNameError, match=r"fnad\.at\(x\)\[\.\.\.\]\.set"):
            fnad.jit(update)(X)
    with pytest.raises(AttributeError, match="no attribute 'sort'"):
        _ = fnad.at(X).sort


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("njit", r"fnad\.jit"), ("pmap", r"fnad\.vmap"), ("jacobian", r"fnad\.jacrev"), ("make_jaxpr", r"fnad\.make_graph"),
     ("no_grad", r"fnad\.stop_gradient"), ("tensor", r"np\.array"), ("where", r"np\.where"), ("jacref", r"fnad\.jacrev"),
     ("tree_map", r"fnad\.tree\.map")],
)  # fmt: skip
def test_names_of_other_libraries(name, remedy):
    if not hasattr(fnad, name):
        with pytest.raises(UnknownNameError, match=remedy):
            getattr(fnad, name)


def test_names_that_mean_nothing():
    with pytest.raises(AttributeError, match="has no attribute 'qqqqq'"):
        _ = fnad.qqqqq
    assert not hasattr(fnad, "__wrapped__")


def resolves(expression):
    root, *parts = expression.split(".")
    found = {"fnad": fnad, "np": np}[root]
    for part in parts:
        found = getattr(found, part)
    return True


TEXTS = [*hints.ATTRIBUTES.values(), *hints.CALLED.values(), *hints.NAMES.values(), *advice.TESTS.values(), *advice.METHODS.values()]
TEXTS += [text for pair in advice.CALLS.values() for text in pair]


def test_what_is_advised_exists():
    """Every function of fnad and NumPy that a table names."""
    found = {m.rstrip(".") for text in TEXTS for m in re.findall(r"\b(?:fnad|np)\.[\w.]*\w", text)}
    assert len(found) > 50
    for expression in found:
        assert resolves(expression), expression
    methods = {m for text in hints.ATTRIBUTES.values() for m in re.findall(r"\bx\.(\w+)", text)}
    seen = []
    fnad.make_graph(lambda x: seen.append([m for m in methods if not hasattr(x, m)]) or x)(X)
    assert seen == [[]]


def test_no_name_is_said_to_be_missing_that_exists():
    present = [name for name in hints.NAMES if name in dir(fnad)]
    assert not present
    seen = []
    fnad.make_graph(lambda x: seen.append([m for m in hints.ATTRIBUTES if hasattr(x, m)]) or x)(X)
    assert seen == [[]]


@pytest.mark.parametrize(
    ("module", "name", "fix"),
    [
        (fnad.optim, "SGD", "fnad.optim.sgd"),
        (fnad.optim, "AdamW", "fnad.optim.adamw"),
        (fnad.optim, "clip", "fnad.optim.clip_by_value"),
        (fnad.optim, "clip_by_globalnorm", "fnad.optim.clip_by_global_norm"),
        (fnad.optim.schedules, "StepLR", "fnad.optim.schedules.step_lr"),
        (fnad.optim.schedules, "ReduceLROnPlateau", "fnad.optim.schedules.reduce_lr_on_plateau"),
        (fnad.random, "randn", "fnad.random.normal(key, shape)"),
        (fnad.nn.functional, "kaiser", None),
        (fnad.nn.functional, "crossentropy", "fnad.nn.functional.cross_entropy"),
    ],
)
def test_names_that_modules_lack(module, name, fix):
    with pytest.raises(UnknownNameError, match=f"module '{module.__name__}' has no attribute '{name}'") as found:
        getattr(module, name)
    assert (f"fix: {fix}" in str(found.value)) == (fix is not None)


def test_what_hints_of_modules_name_exists():
    for module, table in ((fnad.optim, hints.OPTIM), (fnad.random, hints.RANDOM)):
        for name, text in table.items():
            assert name not in vars(module)
            thing = module
            for part in re.match(r"[\w.]+", text)[0].split("."):
                thing = getattr(thing, part)
