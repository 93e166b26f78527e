"""Pytrees: what is a node, what is a leaf, and errors that name the path."""

import dataclasses
import typing
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad import tree
from fnad.errors import ShapeError, TreeError
from fnad.testing import assert_trees_close

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default="layer", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: object


trees = st.recursive(
    st.floats(-2, 2) | st.none(),
    lambda kids: (
        st.lists(kids, max_size=3)
        | st.lists(kids, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("abcd"), kids, max_size=3)
        | st.tuples(kids, kids).map(lambda p: Point(*p))
        | st.tuples(kids, kids).map(lambda p: Layer(*p))
        | kids.map(Frozen)
    ),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None)
@given(trees)
def test_flatten_and_back(tree):
    leaves, spec = fnad.tree.flatten(tree)
    assert fnad.tree.unflatten(spec, leaves) == tree
    assert len(fnad.tree.paths(spec)) == len(leaves)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(trees)
def test_gradient_has_the_structure_of_the_parameters(tree):
    def loss(p):
        return sum((leaf * leaf for leaf in fnad.tree.leaves(p)), np.float64(0.0))

    grads = fnad.grad(loss)(tree)
    assert fnad.tree.structure(grads) == fnad.tree.structure(tree)
    for g, leaf in zip(fnad.tree.leaves(grads), fnad.tree.leaves(tree), strict=True):
        assert g == 2 * leaf


def test_dataclass_with_static_field():
    p = Layer(np.ones(2), None, name="first")
    g = fnad.grad(lambda p: np.sum(p.w * 3) if p.name == "first" else None)(p)
    assert isinstance(g, Layer)
    np.testing.assert_array_equal(g.w, [3.0, 3.0])
    assert g.b is None
    assert g.name == "first"
    assert fnad.tree.structure(p) != fnad.tree.structure(Layer(np.ones(2), None, name="second"))


def test_registered_class():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    fnad.tree.register(Pair, lambda p: ((p.a, p.b), None), lambda aux, kids: Pair(*kids))
    g = fnad.grad(lambda p: p.a * p.b)(Pair(2.0, 5.0))
    assert (g.a, g.b) == (5.0, 2.0)


def test_order_of_dict_keys_does_not_matter():
    assert fnad.tree.leaves({"b": 1, "a": 2}) == [2, 1]
    assert list(fnad.tree.map(lambda x: x, OrderedDict(b=1, a=2))) == ["b", "a"]


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        ({"w": [1.0, 2.0]}, {"w": [1.0]}, "['w']"),
        ({"w": {"x": 1.0}}, {"w": {"y": 1.0}}, "['w']"),
        ((1.0, {"k": (2.0, 3.0)}), (1.0, {"k": [2.0, 3.0]}), "[1]['k']"),
        ({"w": 1.0}, {"w": None}, "['w']"),
        (Layer(1.0, 2.0), Layer(1.0, (2.0,)), ".b"),
        (1.0, {"a": 1.0}, "root"),
    ],
)
def test_mismatch_names_the_path(a, b, path):
    with pytest.raises(TreeError) as info:
        fnad.tree.map(lambda x, y: None, a, b)
    assert path in str(info.value)


def test_integer_leaf_is_named_by_its_path():
    with pytest.raises(TypeError, match=r"argument 0\['layers'\]\[1\]\.b"):
        fnad.grad(lambda p: 0.0)({"layers": [1.0, Layer(1.0, 3)]})
    with pytest.raises(TypeError, match=r"argument 1\['flag'\].*bool"):
        fnad.grad(lambda x, p: 0.0, argnums=1)(1.0, {"flag": True})
    with pytest.raises(TypeError, match=r"argument 0: str"):
        fnad.grad(lambda x: 0.0)("text")


def test_vmap_prefixes():
    p = {"a": np.arange(3.0), "b": np.arange(6.0).reshape(2, 3)}
    f = lambda p, s: {"y": p["a"] * s + p["b"], "z": (p["a"], p["b"])}
    out = fnad.vmap(f, in_axes=({"a": 0, "b": 1}, None), out_axes={"y": 0, "z": (0, 0)})(p, 2.0)
    np.testing.assert_array_equal(out["y"], np.arange(3.0)[:, None] * 2 + p["b"].T)
    assert out["z"][1].shape == (3, 2)
    out = fnad.vmap(f, in_axes=(None, 0), out_axes={"y": 1, "z": None})({"a": 1.0, "b": np.ones(4)}, np.arange(3.0))
    assert out["y"].shape == (4, 3)
    assert out["z"][0] == 1.0
    with pytest.raises(TreeError, match="in_axes"):
        fnad.vmap(f, in_axes=({"a": 0, "c": 1}, None))(p, 2.0)
    with pytest.raises(ShapeError, match="same size"):
        fnad.vmap(f, in_axes=(0, None))(p, 2.0)


def test_scalars_of_every_kind_are_leaves():
    for x in (2.0, np.float64(2), np.float32(2), np.array(2.0), np.array(2, np.float32)):
        g = fnad.grad(lambda x: x * x)(x)
        assert g == 4
        assert g.dtype == np.asarray(x).dtype
        assert isinstance(g, np.generic)


class Units(np.ndarray):
    """A stand-in for subclasses with arithmetic of their own."""


@pytest.mark.parametrize("x", [np.ma.masked_array([1.0, 2.0], mask=[0, 1]), np.ones(2).view(Units)])
def test_subclasses_of_ndarray_are_refused(x):
    with pytest.raises(TypeError, match="asarray"):
        fnad.grad(lambda x: 0.0)(x)


class Pair(typing.NamedTuple):
    first: typing.Any
    second: typing.Any


class Careful(Pair):
    def __new__(cls, first, second):
        return super().__new__(cls, first, second)


NODES = st.recursive(
    st.none() | st.floats(-1, 1),
    lambda kids: (
        st.lists(kids, max_size=3)
        | st.lists(kids, max_size=3).map(tuple)
        | st.dictionaries(st.text("ab", max_size=2), kids, max_size=3)
        | st.dictionaries(st.text("ab", max_size=2), kids, max_size=2).map(OrderedDict)
        | st.builds(Pair, kids, kids)
        | st.builds(Careful, kids, kids)
    ),
    max_leaves=8,
)


@given(NODES, NODES)
def test_functions_made_for_a_structure_walk_as_optree_does(a, b):
    leaves, spec = tree.flatten(a)
    assert tree.flattener(spec)(a) == leaves
    built = tree.unflattener(spec)(leaves)
    assert repr(built) == repr(tree.unflatten(spec, leaves))
    assert tree.structure(built) == spec
    if tree.structure(b) != spec:
        try:
            found = tree.flattener(spec)(b)
        except (ValueError, KeyError):
            return
        assert any(not isinstance(x, float) for x in found)  # a node where a leaf should be


RAVELLED = {
    "nested": {"w": np.arange(4.0).reshape(2, 2), "b": [np.float64(3.0), None, np.zeros((0, 2))]},
    "turned": (np.arange(6.0).reshape(2, 3).T, np.arange(8.0)[::2]),
    "mixed": {"f": np.ones(2, np.float32), "n": np.int64(5), "c": np.array([1 + 2j]), "t": np.array([True, False])},
    "empty": {},
}


@pytest.mark.parametrize("value", RAVELLED.values(), ids=RAVELLED)
@pytest.mark.parametrize("wrap", [lambda f: f, fnad.jit], ids=["eager", "jit"])
def test_ravel_pytree_there_and_back(value, wrap):
    vector = wrap(lambda t: tree.ravel_pytree(t)[0])(value)
    leaves = tree.leaves(value)
    assert vector.dtype == (np.result_type(*leaves) if leaves else float)
    np.testing.assert_array_equal(vector, np.concatenate([np.ravel(x) for x in leaves]) if leaves else [])
    back = wrap(lambda v: tree.ravel_pytree(value)[1](v))(vector)
    assert_trees_close(back, value)
    assert [x.dtype for x in tree.leaves(back)] == [x.dtype for x in leaves]


def test_derivatives_through_ravel_pytree():
    p = {"w": np.ones((2, 2)), "b": 3.0}
    vector, unravel = tree.ravel_pytree(p)
    loss = lambda p: np.sum(p["w"] ** 2) * p["b"]
    assert_trees_close(unravel(fnad.grad(lambda v: loss(unravel(v)))(vector)), fnad.grad(loss)(p))
    assert_trees_close(fnad.grad(lambda p: loss(unravel(tree.ravel_pytree(p)[0])))(p), fnad.grad(loss)(p))
    with pytest.raises(ShapeError, match=r"expected: \(5,\)"):
        unravel(np.ones(4))
