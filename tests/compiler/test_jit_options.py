"""fnad.jit as a decorator: options, static arguments, methods, names, pickling; and what it says of wrong arguments."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, DTypeError


def power(x, n=2, how="sum"):
    """The sum of powers."""
    return getattr(np, how)(x**n)


@fnad.jit(static_argnames=("n",))
def decorated(x, n):
    """Powers."""
    return x**n


class Layer:
    """A class that jit knows nothing of."""

    def __init__(self, w):
        self.w = w

    @fnad.jit
    def traced(self, x):
        return x * self.w

    @fnad.jit(static_argnums=0)
    def static(self, x):
        return x * self.w

    @classmethod
    @fnad.jit(static_argnames="cls")
    def of_class(cls, x):
        return x * (3 if cls is Layer else 4)

    @staticmethod
    @fnad.jit
    def of_none(x):
        return x * 5


@dataclasses.dataclass
class Scale:
    w: object

    @fnad.jit
    def apply(self, x):
        return x * self.w

    @fnad.jit(static_argnames="n")
    def power(self, x, n):
        return x * self.w**n


def programs(f):
    return len(f._entries)


# -- decorators ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnames": ("n", "how")},
        {"static_argnums": (1, 2)},
        {"static_argnames": "how", "static_argnums": 1},
        {"static_argnums": [-2, -1]},
    ],
    ids=str,
)
def test_options_as_a_decorator_and_as_arguments_mean_the_same(options):
    x = np.arange(3.0)
    for f in (fnad.jit(**options)(power), fnad.jit(power, **options), functools.partial(fnad.jit, **options)(power)):
        assert f(x, 3, "max") == 8
        assert f(x, n=3, how="max") == 8
        assert f(x, 3, how="max") == 8


def test_a_decorator_without_options():
    assert fnad.jit()(power)(np.arange(3.0)) == 5
    assert decorated(np.arange(3.0), 2)[2] == 4


def test_a_static_value_by_position_or_by_keyword_is_one_program():
    f = fnad.jit(static_argnames=("n", "how"))(power)
    x = np.arange(3.0)
    for _ in range(2):
        for value in (f(x, 3, "max"), f(x, n=3, how="max"), f(x, 3, how="max"), f(x, how="max", n=3)):
            assert value == 8
    assert programs(f) == 1
    assert f(x, 2, "max") == 4
    assert programs(f) == 2


def test_an_argument_given_twice_is_a_mistake_in_every_call():
    f = fnad.jit(lambda x, n: x * n, static_argnames="n")
    f(1.0, 2)
    for _ in range(2):
        with pytest.raises(TypeError, match="multiple values"):
            f(1.0, 2, n=2)


def test_parameters_of_one_name_that_are_not_the_same():
    f = fnad.jit(lambda n, /, **more: n * more["n"], static_argnames="n", static_argnums=0)
    assert f(2, n=3) == 6
    assert f(3, n=2) == 6
    assert f(5, n=2) == 10


def test_static_arguments_among_any_number():
    f = fnad.jit(lambda *xs: xs[0] * (2 if xs[1] == "double" else 1) + xs[2], static_argnums=1)
    assert f(1.0, "double", 3.0) == 5
    assert f(1.0, "single", 3.0) == 4


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"static_argnames": "m"}, r"static_argnames: 'm'(.|\n)*x, n, how"),
        ({"static_argnums": 3}, r"static_argnums: 3"),
        ({"static_argnums": -4}, r"static_argnums: -4"),
        ({"donate_argnums": 3}, r"donate_argnums: 3"),
        ({"static_argnums": 1.5}, None),
        ({"static_argnames": (1,)}, r"static_argnames: 1"),
        ({"static_argnums": ("n",)}, r"static_argnums: 'n'"),
        ({"static_argnames": "n", "donate_argnums": (0, 1)}, r"donate_argnums: 1"),
    ],
)
def test_an_option_that_names_no_argument(options, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        fnad.jit(power, **options)


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentError, match="takes a function"):
        fnad.jit("n")
    with pytest.raises(ArgumentError, match="takes a function"):
        fnad.jit(3.0)


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, {1, 2}, np.ones(2)], ids=["list", "dict", "set", "array"])
def test_static_values_must_be_hashable(value):
    f = fnad.jit(lambda x, n: x, static_argnames="n")
    for call in (lambda: f(1.0, value), lambda: f(1.0, n=value)):
        with pytest.raises(ArgumentError, match=rf"argument n: {type(value).__name__}(.|\n)*tuple"):
            call()


def test_static_objects_are_told_apart_by_hash_and_equality():
    @dataclasses.dataclass(frozen=True)
    class Config:
        n: int

    f = fnad.jit(lambda x, c: x * c.n, static_argnames="c")
    assert [float(f(1.0, c)) for c in (Config(2), Config(3), Config(2))] == [2, 3, 2]
    assert programs(f) == 2

    class Mutable:
        n = 2

    m = Mutable()
    assert f(1.0, m) == 2
    m.n = 5
    assert f(1.0, m) == 2  # the same object: its program is not made again


# -- methods ------------------------------------------------------------------------------------------------------------


def test_a_method_of_a_pytree_follows_its_leaves():
    s = Scale(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(s.apply(np.ones(2)), [1, 2])
    s.w = np.array([3.0, 4.0])
    np.testing.assert_array_equal(s.apply(np.ones(2)), [3, 4])
    np.testing.assert_array_equal(s.power(np.ones(2), 2), [9, 16])
    np.testing.assert_array_equal(s.power(np.ones(2), n=3), [27, 64])
    g = fnad.grad(lambda s: np.sum(s.apply(np.ones(2)) ** 2))(s)
    np.testing.assert_array_equal(g.w, [6, 8])


def test_a_method_of_another_class_says_what_to_do():
    with pytest.raises(
        DTypeError, match=r"argument self: Layer(.|\n)*dataclass(.|\n)*fnad\.tree\.register\(Layer(.|\n)*static_argnames='self'"
    ):
        Layer(2.0).traced(1.0)


def test_a_method_with_static_self_is_recorded_for_each_object():
    a, b = Layer(2.0), Layer(3.0)
    assert [float(m.static(1.0)) for m in (a, b, a)] == [2, 3, 2]
    a.w = 7.0
    assert a.static(1.0) == 2
    a.w = np.array([1.0, 2.0])


def test_methods_of_classes_and_static_methods():
    class Other(Layer):
        pass

    assert Layer.of_class(1.0) == 3
    assert Other.of_class(1.0) == 4
    assert Layer.of_none(1.0) == 5
    assert Layer(1.0).of_none(1.0) == 5


def test_a_bound_method_can_be_compiled():
    layer = Layer(np.full(2, 3.0))
    f = fnad.jit(layer.traced.__func__.function.__get__(layer))
    np.testing.assert_array_equal(f(np.ones(2)), [3, 3])
    layer.w[:] = 4
    np.testing.assert_array_equal(f(np.ones(2)), [4, 4])


# -- names --------------------------------------------------------------------------------------------------------------


def test_metadata_is_that_of_the_function():
    f = fnad.jit(power)
    assert (f.__name__, f.__doc__, f.__module__, f.__wrapped__) == ("power", "The sum of powers.", power.__module__, power)
    assert inspect.signature(f) == inspect.signature(power)
    assert f.function is power
    assert list(inspect.signature(Layer(1.0).static).parameters) == ["x"]


def test_repr_tells_function_place_options_and_programs():
    f = fnad.jit(power, static_argnums=1, static_argnames="how", donate_argnums=0)
    line = power.__code__.co_firstlineno
    assert repr(f) == (
        f"<fnad.jit of power at {__file__}:{line}, static_argnums=(1,), static_argnames=('how',), donate_argnums=(0,), 0 programs>"
    )
    f(np.ones(3), 2)
    assert repr(f).endswith(", 1 program>")
    assert repr(fnad.jit(np.sin)) == "<fnad.jit of sin, 0 programs>"
    assert "grad" in repr(fnad.jit(fnad.grad(power))) or "power" in repr(fnad.jit(fnad.grad(power)))


@pytest.mark.parametrize("f", [fnad.jit(np.sin), fnad.jit(functools.partial(np.power, 2.0)), fnad.jit(fnad.grad(np.sum))], ids=repr)
def test_a_compiled_function_pickles_with_the_function_inside_it(f):
    x = np.array([0.5, 1.0])
    want = f(x)
    for again in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), copy.copy(f)):
        np.testing.assert_array_equal(again(x), want)


def test_pickling_keeps_options(monkeypatch):
    import sys

    module = type(sys)("made_for_this_test")
    module.power, power_here = power, power
    monkeypatch.setitem(sys.modules, "made_for_this_test", module)
    monkeypatch.setattr(power_here, "__module__", "made_for_this_test")
    f = fnad.jit(power_here, static_argnames=("n", "how"))
    f(np.arange(3.0), 3)
    again = pickle.loads(pickle.dumps(f))
    assert again(np.arange(3.0), 3, how="max") == 8
    assert repr(again).startswith("<fnad.jit of power")
    module.power = again  # as a decorator leaves it: pickled by its name
    again.__module__ = "made_for_this_test"
    assert pickle.loads(pickle.dumps(again)) is again


# -- arguments that are no arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: fnad.jit(lambda x, mode: x)(1.0, "train"), r"argument mode: str(.|\n)*static_argnames='mode'"),
        (lambda: fnad.jit(lambda x, mode: x)(1.0, mode="train"), r"argument mode: str(.|\n)*static_argnames='mode'"),
        (lambda: fnad.jit(lambda p: 1.0)({"a": {"b": "text"}}), r"argument p\['a'\]\['b'\]: str(.|\n)*static field"),
        (lambda: fnad.jit(lambda p, *rest: 1.0)(1.0, 2.0, ["text"]), r"argument rest\[1\]\[0\]: str"),
        (lambda: fnad.jit(lambda n, p: 1.0, static_argnums=0)(1, [1.0, print]), r"argument p\[1\]: builtin_function"),
        (lambda: fnad.jit(lambda d: d)(np.array(["a"])), r"argument d: <U1 array(.|\n)*astype"),
        (lambda: fnad.jit(lambda d: d)(np.array("2020", "M8[Y]")), r"argument d: datetime64"),
        (lambda: fnad.jit(lambda x, rng: x)(1.0, np.random.default_rng(0)), r"argument rng: Generator(.|\n)*before the call"),
        (lambda: fnad.jit(np.sin)("text"), r"argument .*0.*: str"),
    ],
)
def test_an_argument_that_is_no_array_is_named(call, named):
    with pytest.raises(DTypeError, match=named):
        call()


CALLS = [((2, 3.0), {}), ((2,), {"x": 3.0}), ((), {"n": 2, "x": 3.0}), ((), {"x": 3.0, "n": 2})]


@pytest.mark.parametrize("static", [{}, {"static_argnums": 0}, {"static_argnames": "n"}])
def test_how_a_call_is_written_makes_no_difference(static):
    f = fnad.jit(lambda n, x, *, k=1.0: n * x + k, **static)
    for _ in range(2):
        for args, kwargs in CALLS:
            assert f(*args, **kwargs) == 7.0
    assert "1 program>" in repr(f)
    assert f(2, k=5.0, x=3.0) == 11.0
    assert fnad.grad(f, 1)(2, 3.0) == 2.0


def test_a_wrapper_gets_its_arguments_as_they_were_given():
    """Its signature says what it wraps, not what it takes."""

    def plain(x, scale):
        return x * scale

    @functools.wraps(plain)
    def wrapper(*args, **kwargs):
        return plain(*args, scale=kwargs["scale"])

    assert fnad.jit(wrapper)(2.0, scale=3.0) == 6.0
    assert fnad.jit(functools.partial(plain, scale=4.0))(x=2.0) == 8.0


def test_parameters_that_are_left_out_end_the_positions():
    f = fnad.jit(lambda a, b=2.0, c=3.0: (a, b * 10.0, c * 100.0))
    assert f(1.0, c=5.0) == (1.0, 20.0, 500.0)
    assert f(c=5.0, a=1.0) == (1.0, 20.0, 500.0)
    assert f(b=5.0, a=1.0) == (1.0, 50.0, 300.0)
    with pytest.raises(TypeError, match="missing"):
        f(b=5.0)


@pytest.mark.parametrize("options", [{"donate_argnames": ("b", "c")}, {"donate_argnums": 1, "donate_argnames": "c"}])
def test_donated_by_name(options):
    f = fnad.jit(lambda a, b, *, c: (a + 1.0, b + 1.0, c + 1.0), **options)
    for call in (lambda a, b, c: f(a, b, c=c), lambda a, b, c: f(c=c, b=b, a=a)):
        for _ in range(2):
            a, b, c = (np.zeros(3) for _ in range(3))
            out = call(a, b, c)
            assert [x is y for x, y in zip(out, (a, b, c), strict=True)] == [False, True, True]
            assert np.array_equal(out[1:], np.ones((2, 3)))


@pytest.mark.parametrize("options", [{"donate_argnames": "d"}, {"donate_argnames": "b", "static_argnames": "b"}])
def test_donated_names_must_be_those_of_arrays(options):
    with pytest.raises(ArgumentError, match="donate_argnames"):
        fnad.jit(lambda a, *, b: a, **options)


SCRIPT = """
import numpy as np, fnad, pickle, sys

@fnad.jit
def double(x):
    return 2 * x

@fnad.jit(static_argnames="n")
def power(x, n):
    return power(x, n=-n) if n < 0 else double(x) ** n

if __name__ == "__main__":
    import cloudpickle
    assert pickle.loads(pickle.dumps(power)) is power
    sys.stdout.buffer.write(cloudpickle.dumps(power))
"""


def test_functions_of_a_script_are_sent_by_value_to_who_has_not_its_names(tmp_path):
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    sent = subprocess.run([sys.executable, script], env=env, capture_output=True, check=True).stdout
    power = pickle.loads(sent)
    assert power(3.0, n=2) == power(3.0, n=-2) == 36.0
    assert "static_argnames=('n',)" in repr(power)
