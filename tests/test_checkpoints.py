"""Files of pytrees: what is saved comes back, damaged and foreign files are refused, nothing is half written."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fnad
import fnad.torch as torch
from fnad.errors import ArgumentError, DTypeError, TreeError

arrays = hnp.arrays(st.sampled_from([np.float32, np.float64, np.int64, np.bool_, np.complex64]), hnp.array_shapes(min_dims=0, min_side=0))
leaves = arrays | st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text() | st.complex_numbers()
keys = st.text() | st.integers()
trees = st.recursive(leaves, lambda t: st.lists(t, max_size=3) | st.tuples(t, t) | st.dictionaries(keys, t, max_size=3), max_leaves=8)


def same(a, b):
    if isinstance(a, np.ndarray | np.generic):
        np.testing.assert_array_equal(a, b)
        return type(a) is type(b) and a.dtype == b.dtype
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


@given(trees)
def test_round_trip(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / "tree.npz"
    fnad.save(path, tree)
    assert same(tree, fnad.load(path))
    assert not list(path.parent.glob(".*.part"))


class Mine(NamedTuple):
    a: object
    b: object


def test_named_tuples(tmp_path):
    path = tmp_path / "state.npz"
    state = fnad.optim.adam().init({"w": np.ones(2, np.float32)})
    fnad.save(path, state)
    assert same(state, fnad.load(path))
    fnad.save(path, {"x": Mine(np.ones(1), [1.5])})
    with pytest.raises(TreeError, match="Mine"):
        fnad.load(path)
    assert same({"x": Mine(np.ones(1), [1.5])}, fnad.load(path, like={"x": Mine(0, 0)}))


def test_damaged_and_foreign_files(tmp_path):
    path = tmp_path / "state.npz"
    fnad.save(path, {"w": np.arange(1000.0)})
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"PK", content[:-30], content[:300] + bytes(200) + content[500:]):
        path.write_bytes(damaged)
        with pytest.raises(ArgumentError, match=r"damaged|not written"):
            fnad.load(path)
    path.write_bytes(pickle.dumps({"w": 1}))
    with pytest.raises(ArgumentError):
        fnad.load(path)
    np.savez(path, w=np.ones(2))
    with pytest.raises(ArgumentError, match=r"not written by fnad.save"):
        fnad.load(path)
    np.savez(path, w=np.array([{}], dtype=object))
    with pytest.raises(ArgumentError):
        fnad.load(path)
    with pytest.raises(FileNotFoundError):
        fnad.load(tmp_path / "none.npz")


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "state.npz"
    fnad.save(path, {"w": 1})
    with pytest.raises(DTypeError, match=r"tree\['w'\]\[1\]"):
        fnad.save(path, {"w": [1, object()]})
    assert fnad.load(path) == {"w": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["state.npz"]
    with pytest.raises(ArgumentError, match="npz"):
        fnad.save(tmp_path / "state.pt", {})


def test_the_facade(tmp_path):
    model = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, tmp_path / "checkpoint.pt")
    found = torch.load(tmp_path / "checkpoint.pt")
    other = torch.nn.Linear(2, 3)
    other.load_state_dict(found["model"])
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(found["optimizer"])
    assert found["epoch"] == 3
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(again.state[other.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"])
    assert again.param_groups[0]["betas"] == (0.9, 0.999)


def test_safetensors(tmp_path):
    path = tmp_path / "model.safetensors"
    try:
        import safetensors.numpy
    except ImportError:
        with pytest.raises(ArgumentError, match="safetensors"):
            fnad.save(path, {"w": np.ones(2)})
        return
    model = torch.nn.Linear(2, 3)
    torch.save(model.state_dict(), path)
    assert set(safetensors.numpy.load_file(path)) == {"weight", "bias"}
    other = torch.nn.Linear(2, 3)
    other.load_state_dict(torch.load(path))
    assert torch.equal(other.weight, model.weight)
    with pytest.raises(DTypeError):
        fnad.save(path, {"w": [np.ones(2)]})
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ArgumentError, match="damaged"):
        fnad.load(path)
