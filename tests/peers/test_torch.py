"""Live comparison with PyTorch, where it is installed; `record_torch.py` made the files that the other tests use."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers
HERE = pathlib.Path(__file__).parent
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}


def recorder():
    spec = importlib.util.spec_from_file_location("record_torch", HERE / "record_torch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(tree):
    """The numbers of nested JSON data, in order."""
    if isinstance(tree, dict):
        return [x for v in tree.values() for x in numbers(v)]
    if isinstance(tree, list):
        return [x for v in tree for x in numbers(v)]
    return [tree] if isinstance(tree, int | float) else []


@pytest.mark.parametrize(("name", "path"), [("sgd", "optim/sgd_torch.json"), ("cross_entropy", "nn/cross_entropy_torch.json")])
def test_the_records_are_what_pytorch_computes(name, path):
    now = json.loads(json.dumps(getattr(recorder(), name)()))
    then = json.loads((HERE.parent / path).read_text())
    del now["torch"], then["torch"]
    np.testing.assert_allclose(numbers(now), numbers(then), 1e-5, 1e-6)


@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 6), st.integers(1, 7)),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["mean", "sum", "none"]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from([1.0, 30.0]),
)
def test_cross_entropy(seed, shape, dtype, probabilities, weighted, reduction, smoothing, scale):
    n, c = shape
    rng = np.random.default_rng(seed)
    x = (scale * rng.normal(size=(n, c))).astype(dtype)
    y = rng.dirichlet(np.ones(c), n).astype(dtype) if probabilities else np.where(rng.random(n) < 0.2, -100, rng.integers(0, c, n))
    y = y if probabilities or (y >= 0).any() else np.zeros(n, int)
    w = rng.uniform(0.1, 2, c).astype(dtype) if weighted else None

    def total(x):
        loss = F.cross_entropy(x, y, w, reduction=reduction, label_smoothing=smoothing)
        return np.sum(loss), loss

    gradient, loss = fnad.grad(total, has_aux=True)(x)
    xt = torch.tensor(x, requires_grad=True)
    wt = None if w is None else torch.tensor(w)
    want = torch.nn.functional.cross_entropy(xt, torch.tensor(y), wt, reduction=reduction, label_smoothing=smoothing)
    want.sum().backward()
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(loss, want.detach().numpy(), tolerance, tolerance * scale)
    np.testing.assert_allclose(gradient, xt.grad.numpy(), tolerance, tolerance)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float32, np.float64]),
    st.floats(0, 0.2),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0.0, 0.1]),
    st.booleans(),
)
def test_training_with_sgd(seed, dtype, lr, momentum, dampening, weight_decay, nesterov):
    """The same network, data, gradients and optimizer: parameters agree after 20 steps."""
    rng = np.random.default_rng(seed)
    nesterov = nesterov and momentum > 0
    options = {
        "lr": lr,
        "momentum": momentum,
        "dampening": 0.0 if nesterov else dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
    }
    x, y = rng.normal(size=(8, 3)).astype(dtype), rng.integers(0, 4, 8)
    params = {"W": (rng.normal(size=(3, 5)) / 2).astype(dtype), "V": (rng.normal(size=(5, 4)) / 2).astype(dtype), "b": np.zeros(4, dtype)}
    theirs = {k: torch.tensor(v, requires_grad=True) for k, v in params.items()}
    opt, peer = fnad.optim.sgd(**options), torch.optim.SGD(theirs.values(), **options)
    state = opt.init(params)
    for _ in range(20):
        grads = fnad.grad(lambda p: F.cross_entropy(np.tanh(x @ p["W"]) @ p["V"] + p["b"], y))(params)
        updates, state = opt.update(grads, state, params)
        params = fnad.optim.apply_updates(params, updates)
        peer.zero_grad()
        hidden = torch.tanh(torch.tensor(x) @ theirs["W"])
        torch.nn.functional.cross_entropy(hidden @ theirs["V"] + theirs["b"], torch.tensor(y)).backward()
        peer.step()
    for k, p in params.items():
        np.testing.assert_allclose(
            p, theirs[k].detach().numpy(), 1e-4 if dtype is np.float32 else 1e-10, 1e-5 if dtype is np.float32 else 1e-11
        )
