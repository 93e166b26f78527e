"""What a function does besides computing its result is noticed when fnad.jit records it, and what it may well do is not."""

from __future__ import annotations

import collections
import dataclasses
import functools
import random
import types
import warnings

import numpy as np
import pytest

import fnad
from fnad.errors import InPlaceError, RecordingWarning

X = np.arange(3.0)
COUNTS = {"calls": 0}
HISTORY = []
BUFFER = np.zeros(3)
LARGE = np.zeros(200_000)
TABLE = {"deep": [{"entry": np.ones(2)}]}
SEEN = set()
QUEUE = collections.deque()
GENERATOR = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)
PYTHONS = random.Random(0)
TOTAL = 0
LAZY = None
LARGER = 3.0


class Model:
    def __init__(self):
        self.steps = 0
        self.rng = np.random.default_rng(0)
        self.state = {"mean": np.zeros(3)}

    @functools.cached_property
    def size(self):
        return 3

    def update(self, x):
        self.steps += 1
        return x * 2

    def __call__(self, x):
        self.state["mean"] = x
        return x


MODEL = Model()


def count(x):
    COUNTS["calls"] += 1
    return x * 2


def remember(x):
    HISTORY.append(x)
    return x * 2


def write(x):
    BUFFER[0] += 1
    return x * 2


def write_large(x):
    LARGE[:] = 1.0
    return x * 2


def write_deep(x):
    TABLE["deep"][0]["entry"][1] += 1
    return x * 2


def see(x):
    SEEN.add(x.shape[0] + len(SEEN))
    return x * 2


def enqueue(x):
    QUEUE.append(1)
    return x * 2


def rebind(x):
    global TOTAL
    TOTAL = TOTAL + x
    return x * 2


def call_another(x):
    return count(x)


def call_a_method(x):
    return MODEL.update(x)


def call_an_object(x):
    return MODEL(x)


def inner_function(x):
    def inner(y):
        HISTORY.append(y)
        return y

    return inner(x)


def set_attribute(x):
    MODEL.last = x
    return x


def with_default(x, seen=[]):  # noqa: B006
    seen.append(x)
    return x


def closure():
    kept = {"last": None}

    def f(x):
        kept["last"] = x
        return x

    return f


def nonlocal_counter():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f


STATE = {
    "dict entry": (lambda: count, r"COUNTS\['calls'\]: .*COUNTS\[\"calls\"\] \+= 1"),
    "list.append": (lambda: remember, r"HISTORY\[\d+\]: .*HISTORY\.append\(x\)"),
    "array": (lambda: write, r"BUFFER: .*BUFFER\[0\] \+= 1"),
    "large array": (lambda: write_large, r"LARGE: .*LARGE\[:\] = 1\.0"),
    "deep": (lambda: write_deep, r"TABLE\['deep'\]\[0\]\['entry'\]: "),
    "set": (lambda: see, r"SEEN: .*SEEN\.add"),
    "deque": (lambda: enqueue, r"QUEUE\[\d+\]: .*QUEUE\.append"),
    "global": (lambda: rebind, r"TOTAL: .*TOTAL = TOTAL \+ x"),
    "another function": (lambda: call_another, r"COUNTS\['calls'\]: .*COUNTS\[\"calls\"\] \+= 1"),
    "method": (lambda: call_a_method, r"MODEL\.steps: "),
    "called object": (lambda: call_an_object, r"MODEL\.state\['mean'\]: "),
    "object that is compiled": (lambda: Model(), r"self\.state\['mean'\]: "),
    "bound method": (lambda: Model().update, r"self\.steps: .*self\.steps \+= 1"),
    "inner function": (lambda: inner_function, r"HISTORY\[\d+\]: .*HISTORY\.append\(y\)"),
    "attribute": (lambda: set_attribute, r"MODEL\.last: .*MODEL\.last = x"),
    "default": (lambda: with_default, r"a default\[\d+\]: "),
    "closure": (closure, r"kept\['last'\]: .*kept\[\"last\"\] = x"),
    "nonlocal": (nonlocal_counter, r"n: .*n \+= 1"),
    "under grad": (lambda: fnad.grad(lambda x: np.sum(remember(x))), r"HISTORY\[\d+\]: "),
    "partial": (lambda: functools.partial(count), r"COUNTS\['calls'\]"),
    "jit of jit": (lambda: fnad.jit(fnad.jit(count)), r"COUNTS\['calls'\]"),
}


@pytest.mark.parametrize("case", STATE)
def test_changed_variables_are_named_with_their_line(case):
    make, named = STATE[case]
    f = fnad.jit(make())
    with pytest.warns(RecordingWarning, match=named) as caught:
        f(X)
    messages = [str(w.message) for w in caught if "variables were changed" in str(w.message)]
    assert messages
    assert caught[0].filename == __file__
    assert "fix: return the new value" in messages[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X)  # recorded already


def test_a_warning_names_a_few_and_counts_the_others():
    table = {}

    def f(x):
        table.update({k: k for k in range(10)})
        return x

    with pytest.warns(RecordingWarning, match=r"table\[3\](.|\n)*and more: 6"):
        fnad.jit(f)(X)


RANDOM = {
    "np.random": (lambda x: x + np.random.normal(size=3), r"global generator of np\.random: .*np\.random\.normal"),
    "np.random.seed": (lambda x: np.random.seed(0) or x, r"global generator of np\.random"),
    "random": (lambda x: x + random.random(), r"global generator of random: .*random\.random\(\)"),
    "Generator": (lambda x: x + GENERATOR.normal(size=3), r"GENERATOR: .*GENERATOR\.normal"),
    "RandomState": (lambda x: x + LEGACY.normal(size=3), r"LEGACY: "),
    "random.Random": (lambda x: x + PYTHONS.random(), r"PYTHONS: "),
    "of an object": (lambda x: x + MODEL.rng.normal(size=3), r"MODEL\.rng: "),
    "in a closure": ((lambda rng: lambda x: x + rng.normal(size=3))(np.random.default_rng(0)), r"rng: "),
    "a permutation": (lambda x: x[GENERATOR.permutation(3)], r"GENERATOR: "),
}


@pytest.mark.parametrize("case", RANDOM)
def test_numbers_drawn_while_recording_are_noticed(case):
    f, named = RANDOM[case]
    compiled = fnad.jit(f)
    with pytest.warns(RecordingWarning, match=rf"random numbers were drawn(.|\n)*{named}(.|\n)*before the call"):
        first = compiled(X)
    np.testing.assert_array_equal(compiled(X), first)


def test_static_generators_and_objects_are_watched():
    f = fnad.jit(lambda x, rng: x + rng.normal(size=3), static_argnames="rng")
    with pytest.warns(RecordingWarning, match=r"rng: .*rng\.normal"):
        f(X, np.random.default_rng(0))

    class Counter:
        n = 0

        @fnad.jit(static_argnames="self")
        def step(self, x):
            self.n += 1
            return x * self.n

    with pytest.warns(RecordingWarning, match=r"self\.n: .*self\.n \+= 1"):
        Counter().step(X)


def quiet(f, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fnad.jit(f)(*args)


def local_state(x):
    table, items, seen = {}, [], np.zeros(3)
    for k in range(3):
        table[k] = x[k]
        items.append(x[k])
        seen[k] = k
    return sum(table.values()) + sum(items) + np.sum(seen)


def make_lazily(x):
    global LAZY
    if LAZY is None:
        LAZY = {"table": np.ones(3)}
    return x * LAZY["table"]


@functools.lru_cache
def cached(n):
    return np.arange(float(n))


def own_arguments(x, *more, **options):
    options["scale"] = options.pop("scale", 2.0) + 1.0
    return x * options["scale"] + sum(more)


def copies(p):
    p = {**p, "b": {**p["b"]}}
    p["w"] = p["w"] * 2
    p["b"]["c"] = p["w"]
    q = list(p.values())
    q.pop()
    return p


PARAMS = {"w": X, "b": {"c": X}}


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (local_state, (X,)),
        (make_lazily, (X,)),
        (lambda x: x * cached(3), (X,)),
        (lambda x: x * MODEL.size, (X,)),
        (lambda x: x * BUFFER + COUNTS["calls"] + len(HISTORY) * LARGER, (X,)),
        (lambda x: x + np.random.default_rng(0).normal(size=3), (X,)),
        (own_arguments, (X, 1.0)),
        (copies, (PARAMS,)),
        (lambda p: {**p, "w": p["w"] + 1}, (PARAMS,)),
        (lambda p: fnad.tree.map(lambda a: a * 2, p), (PARAMS,)),
        (lambda x: fnad.scan(lambda c, v: (c + v, c), 0.0, x), (X,)),
        (lambda x: fnad.grad(lambda x: np.sum(x * BUFFER))(x), (X,)),
        (lambda x: print(end="") or x, (X,)),
    ],
)
def test_what_is_harmless_is_not_warned_of(f, args):
    quiet(f, *args)


def test_objects_that_are_odd_to_look_at_do_no_harm():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError
            raise RuntimeError(name)

    class Proxy:
        """As those that stand for an object that is not there yet."""

        def __getattribute__(self, name):
            raise RuntimeError(name)

    class Slots:
        __slots__ = ("a",)

    cycle = []
    cycle.append(cycle)
    long = list(range(100_000))
    odd, slots, proxy, objects = Odd(), Slots(), Proxy(), np.array([Odd(), None], object)
    readonly = np.broadcast_to(1.0, (10**9,))
    quiet(lambda x: x if (odd, slots, proxy, cycle, long, objects, readonly) else -x, X)

    def recursive(x, n=3):
        return x if n == 0 else recursive(x * 2, n - 1)

    quiet(recursive, X)
    empty = types.FunctionType((lambda x: x).__code__, {})
    quiet(empty, X)


# -- arguments ----------------------------------------------------------------------------------------------------------


def replace_entry(p):
    p["w"] = p["w"] * 2
    return np.sum(p["w"])


def subtract_in_place(p):
    p["w"] -= 1.0
    return np.sum(p["b"]["c"])


def add_entry(p):
    p["new"] = p["w"] * 2
    return p["w"]


def nested_entry(p):
    p["b"]["c"] = p["w"] + 1
    return p["w"]


def plain_entry(p):
    p["w"] = 3.5
    return p["b"]["c"]


def append(items):
    items.append(items[0] * 2)
    return items[0]


def assign(items):
    items[0] = items[0] + 1
    return np.sum(items[0])


@dataclasses.dataclass
class State:
    mean: object
    count: object

    @fnad.jit
    def update(self, x):
        self.mean = self.mean + x
        return np.sum(self.mean)

    @fnad.jit
    def updated(self, x):
        self.mean = self.mean + x
        return self


@pytest.mark.parametrize(
    ("f", "args", "named"),
    [
        (replace_entry, (PARAMS,), r"argument: p\['w'\](.|\n)*at: .*p\[\"w\"\] = p\[\"w\"\] \* 2"),
        (subtract_in_place, (PARAMS,), r"argument: p\['w'\](.|\n)*at: .*p\[\"w\"\] -= 1\.0"),
        (add_entry, (PARAMS,), r"argument: p\['new'\]"),
        (nested_entry, (PARAMS,), r"argument: p\['b'\]\['c'\]"),
        (plain_entry, (PARAMS,), r"argument: p\['w'\]"),
        (append, ([X],), r"argument: items\[1\]"),
        (assign, ([X],), r"argument: items\[0\]"),
        (State.update.function, (State(X, 0), X), r"argument: self\.mean"),
        (lambda *groups: groups[1].update(c=groups[0] * 2) or groups[0], (X, {"c": X}), r"argument: groups\[1\]\['c'\]"),
        (lambda x, *, out: out.append(x * 2) or x, None, r"argument: out\[0\]"),
    ],
)
def test_a_value_put_into_an_argument_and_not_returned_is_an_error(f, args, named):
    """The caller's container would stay as it was, and the value would be lost."""
    for _ in range(2):  # nothing is kept of the failed recording
        with pytest.raises(InPlaceError, match=named):
            fnad.jit(f)(*args) if args is not None else fnad.jit(f)(X, out=[])
    np.testing.assert_array_equal(PARAMS["w"], np.arange(3.0))
    assert set(PARAMS) == {"w", "b"}


def test_static_arguments_do_not_shift_names():
    def f(n, p, *rest):
        rest[0]["a"] = p * n
        return p

    with pytest.raises(InPlaceError, match=r"argument: rest\[0\]\['a'\]"):
        fnad.jit(f, static_argnums=0)(2, 1.0, {"a": 2.0})


def replace_and_return(p):
    p["w"] -= 0.5
    return p


def pop_entry(p):
    return p.pop("w")


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (replace_and_return, {"w": X - 0.5, "b": {"c": X}}),
        (pop_entry, X),
        (lambda p: (p.update(w=p["b"]["c"]), p)[1], PARAMS),
        (lambda p: (p.clear(), np.zeros(1))[1], np.zeros(1)),
    ],
)
def test_a_change_that_the_result_has_is_warned_of(f, want):
    with pytest.warns(RecordingWarning, match=r"an argument was changed in place(.|\n)*make a new container"):
        got = fnad.jit(f)(PARAMS)
    for a, b in zip(fnad.tree.leaves(got), fnad.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(a, b)
    assert set(PARAMS) == {"w", "b"}


def test_a_pytree_method_that_returns_itself():
    s = State(X, 0)
    with pytest.warns(RecordingWarning, match=r"argument: self\.mean"):
        new = s.updated(X)
    np.testing.assert_array_equal(new.mean, 2 * X)
    np.testing.assert_array_equal(s.mean, X)


def test_a_warning_that_is_an_error_leaves_no_program_behind():
    f = fnad.jit(closure())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(RecordingWarning):
                f(X)
    assert "0 programs" in repr(f)
