"""What the front end refuses: an error of the right class, with the user's line, a caret under the expression, and a remedy."""

# ruff: noqa: F821, F841, RET503, RET504  (they are written as users write)
import math

import numpy as np
import pytest

from fnad.errors import ArgumentError, DTypeError, FnadError, ShapeError, UnsupportedError
from fnad.loops.frontend import Static, build
from tests.loops.functions import TABLE, helper
from tests.loops.machine import ir_type

V = np.ones(3)
M = np.ones((2, 3))
CASES = []


def refused(error, rule, marked, *args):
    """The error of a function, a part of its first line, and the text that the caret marks."""

    def register(f):
        CASES.append(pytest.param(f, args, error, rule, marked, id=f.__name__))
        return f

    return register


def plain_function(x):
    return x


@helper
def countdown(n):
    if n == 0:
        return 0.0
    return countdown(n - 1) + 1.0


@helper
def takes_two(x, y):
    return x + y


@refused(UnsupportedError, "plain_function cannot be differentiated", "plain_function(x)", 1.0)
def call_of_a_plain_function(x):
    return 2 * plain_function(x)


@refused(UnsupportedError, "calls itself", "countdown(n - 1)", 3)
def recursion(n):
    return countdown(n)


@refused(ArgumentError, "misses its argument y", "takes_two(x)", 1.0)
def too_few_arguments(x):
    return takes_two(x)


@refused(ArgumentError, "takes 2 arguments", "takes_two(x, x, x)", 1.0)
def too_many_arguments(x):
    return takes_two(x, x, x)


@refused(ArgumentError, "no parameter z", "takes_two(x, 1, z=2)", 1.0)
def unknown_keyword(x):
    return takes_two(x, 1, z=2)


@refused(UnsupportedError, "`else` of a loop", "x += 2", 1.0)
def else_of_a_loop(x):
    for _ in range(3):
        x *= 2
    else:
        x += 2
    return x


@refused(UnsupportedError, "`try`", None, 1.0)
def try_statement(x):
    try:
        x = x + 1
    except ValueError:
        x = 0.0
    return x


@refused(UnsupportedError, "`with`", None, 1.0)
def with_statement(x):
    with open("file") as f:
        x += f
    return x


@refused(UnsupportedError, "`Dict`", "{'a': x}", 1.0)
def dictionary(x):
    d = {'a': x}  # fmt: skip
    return d


@refused(UnsupportedError, "`NamedExpr`", "y := x", 1.0)
def walrus(x):
    if (y := x) > 2:
        return y
    return x


@refused(UnsupportedError, "`GeneratorExp`", "(v for v in x)", V)
def generator_expression(x):
    return sum(v for v in x)


@refused(DTypeError, "values of different kinds", "y", 1.0)
def number_or_array(x):
    if x > 0:
        y = np.zeros(3)
    else:
        y = x
    return y * 2


@refused(DTypeError, "values of different kinds", "y", M)
def arrays_of_different_ranks(x):
    y = x
    for i in range(2):
        y = y[i]
    return y


@refused(DTypeError, "two sides of a conditional", "V if x > 0 else x", 1.0)
def sides_of_a_conditional(x):
    return V if x > 0 else x


@refused(UnsupportedError, "before is not defined", "before", V)
def read_before_assignment(x):
    s = 0.0
    for i in range(x.size):
        s += x[i]
    if s > 3:
        s = s - before
    before = s
    return before


@refused(UnsupportedError, "misspelt is not defined", "misspelt", 1.0)
def unknown_name(x):
    return x + misspelt


@refused(UnsupportedError, "a constant and cannot be written", "TABLE[0]", 1.0)
def write_into_a_global(x):
    TABLE[0] = x
    return x


@refused(UnsupportedError, "a constant and cannot be written", "y += x", 1.0)
def write_into_a_view_of_a_global(x):
    y = TABLE[1:]
    for _ in range(2):
        y += x
    return x


@refused(DTypeError, "index must be an integer", "x[1.0]", V)
def float_index(x):
    return x[1.0]


@refused(ShapeError, "3 indices for an array of rank 2", "x[0, 1, 2]", M)
def too_many_indices(x):
    return x[0, 1, 2]


@refused(DTypeError, "truth of an array", "x > 0", V)
def truth_of_an_array(x):
    if x > 0:
        return 1.0
    return 0.0


@refused(UnsupportedError, "chain of comparisons", "0 < x < 1", V)
def chain_of_arrays(x):
    return 0 < x < 1


@refused(DTypeError, "complex number cannot become a real", "float(z)", 1j)
def complex_to_float(z):
    return float(z)


@refused(DTypeError, "complex number cannot become a real", "y[0]", 1j)
def complex_into_a_real_array(z):
    y = np.zeros(2)
    y[0] = z
    return y


@refused(DTypeError, "bounds of a range are integers", "range(x)", 2.0)
def float_range(x):
    s = 0.0
    for i in range(x):
        s += i
    return s


@refused(UnsupportedError, "step of a range", "range(0, 5, 0)", 2.0)
def range_without_a_step(x):
    for _ in range(0, 5, 0):
        x += 1
    return x


@refused(UnsupportedError, "index of a tuple must be", "t[n]", (1.0, V), 1)
def tuple_of_mixed_things(t, n):
    return t[n]


@refused(UnsupportedError, "sort cannot be differentiated", "np.sort(x)", V)
def numpy_function_without_a_rule(x):
    return np.sort(x)


@refused(UnsupportedError, "with these arguments", "np.sum(x, keepdims=True)", V)
def keyword_that_is_not_supported(x):
    return np.sum(x, keepdims=True)


@refused(UnsupportedError, "axis must be known", "np.sum(x, axis=n)", M, 1)
def axis_that_is_not_known(x, n):
    return np.sum(x, axis=n)


@refused(ArgumentError, "Axis 2", "x.sum(axis=2)", M)
def axis_that_is_not_there(x):
    return x.sum(axis=2)


@refused(ShapeError, "do not broadcast", "np.ones(3) + np.ones(4)", 1.0)
def shapes_that_are_known_to_differ(x):
    return (np.ones(3) + np.ones(4)) * x


@refused(ShapeError, "assigned to one element", "x[0]", V)
def array_into_an_element(x):
    x[0] = x[1:]
    return x


@refused(DTypeError, "Only the elements of arrays", "t[0]", (1.0, 2.0))
def item_of_a_tuple(t):
    t[0] = 1.0
    return t


@refused(UnsupportedError, "cannot be assigned to", "x.shape", V)
def attribute_assignment(x):
    x.shape = (3, 1)
    return x


@refused(UnsupportedError, "attribute tolist of an array", "x.tolist", V)
def unknown_method(x):
    return x.tolist()


@refused(DTypeError, "operand must be a number or an array", "'a' + x", 1.0)
def operand_that_is_a_string(x):
    return "a" + x  # fmt: skip


@refused(DTypeError, "Bit operations", "x & 1", 1.0)
def bits_of_a_float(x):
    return x & 1


@refused(UnsupportedError, "3 names for 2 values", "a, b, c", 1.0)
def unpacking_the_wrong_number(x):
    a, b, c = x, 2.0
    return a


@refused(UnsupportedError, "under a name", "r", 3)
def iterator_under_a_name(n):
    r = range(n)
    return r[0]


@refused(DTypeError, "Here must be an array", "np.cumsum(x)", 1.0)
def running_sum_of_a_number(x):
    return np.cumsum(x)


@refused(DTypeError, "dtype must be", "np.zeros(3, dtype=x)", 1.0)
def dtype_that_is_none(x):
    return np.zeros(3, dtype=x)


@refused(UnsupportedError, "returns numbers, arrays and tuples", None, 1.0)
def returns_a_function(x):
    return math.sin


@refused(DTypeError, "the result holds values of different kinds", None, 1.0)
def returns_nothing_on_one_path(x):
    if x > 1:
        return x


@refused(DTypeError, "Here must be an array, or a list", "np.array(x)", 1.0)
def array_of_a_number(x):
    return np.array(x)


@refused(DTypeError, "Here must be a number or an array", "y[:]", 1.0)
def function_into_a_slice(x):
    y = np.zeros(3)
    y[:] = math
    return y


@pytest.mark.parametrize(("f", "args", "error", "rule", "marked"), CASES)
def test_refused(f, args, error, rule, marked):
    with pytest.raises(FnadError) as caught:
        build(f, [ir_type(a) for a in args])
    assert type(caught.value) is error
    first, *rest = str(caught.value).split("\n")
    assert rule in first
    if marked is not None:
        place, line, caret = rest[:3]
        assert f"{__file__}:" in place
        assert " in " in place
        start, width = caret.index("^"), caret.count("^")
        assert line[start : start + width].replace('"', "'").strip("()") == marked.strip("()")


def test_source_that_cannot_be_had():
    names = {}
    exec("def f(x):\n    return x * 2\n", names)
    with pytest.raises(UnsupportedError, match="source of f cannot be read"):
        build(names["f"], [ir_type(1.0)])


def test_not_a_python_function():
    with pytest.raises(UnsupportedError, match="must be a plain Python function"):
        build(np.sin, [ir_type(1.0)])


def test_a_generator():
    def f(x):
        yield x

    with pytest.raises(UnsupportedError, match="generator"):
        build(f, [ir_type(1.0)])


def test_wrong_number_of_types():
    with pytest.raises(ArgumentError, match="takes 1 arguments"):
        build(plain_function, [ir_type(1.0), ir_type(1.0)])


def test_a_type_that_is_none():
    with pytest.raises(ArgumentError, match="type of an argument"):
        build(plain_function, [float])


def test_functions_are_found_by_their_place():
    first, second = (lambda x: x + 1), (lambda x: x * 3)
    texts = [build(f, [ir_type(1.0)]).body.items[0].kind for f in (first, second)]
    assert texts == ["add", "mul"]


def test_static_arguments():
    def f(g, mode, nothing, x):
        if nothing is None and mode == "twice":
            return g(g(x))
        return x

    built = build(f, [Static(np.exp), Static("twice"), Static(None), ir_type(1.0)])
    assert [op.kind for op in built.body.items] == ["exp", "exp"]
    assert len(built.args) == 1
