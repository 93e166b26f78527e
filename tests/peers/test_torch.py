"""Live comparison with PyTorch, where it is installed; `record_torch.py` made the files that the other tests use."""

import importlib
import json
import pathlib
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers
HERE = pathlib.Path(__file__).parent
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}


def recorder(name):
    sys.path.insert(0, str(HERE))  # one recorder imports the other
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(HERE))


def numbers(tree):
    """The numbers of nested JSON data, in order."""
    if isinstance(tree, dict):
        return [x for v in tree.values() for x in numbers(v)]
    if isinstance(tree, list):
        return [x for v in tree for x in numbers(v)]
    return [tree] if isinstance(tree, int | float) else []


RECORDS = {
    "record_torch": {"cross_entropy": "nn/cross_entropy_torch.json", "functional": "nn/functional_torch.json"},
    "record_torch_optim": {n: f"optim/{n}_torch.json" for n in ("optimizers", "groups", "lbfgs", "schedulers", "averages")},
}
EACH = [(module, name, path) for module, records in RECORDS.items() for name, path in records.items()]


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step:UserWarning")
@pytest.mark.filterwarnings("ignore:Using padding=:UserWarning")
@pytest.mark.parametrize(("module", "name", "path"), EACH, ids=[name for _, name, _ in EACH])
def test_the_records_are_what_pytorch_computes(module, name, path):
    now = json.loads(json.dumps(getattr(recorder(module), name)()))
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


def agree(name, arrays, *args, tolerance, **options):
    """Value and gradients by all arrays, eagerly and compiled, are PyTorch's."""
    mine = getattr(F, name)
    value, gradients = fnad.value_and_grad(lambda a: np.sum(np.sin(mine(*a, *args, **options))))(arrays)
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = getattr(torch.nn.functional, name)(*theirs, *args, **options)
    out.sin().sum().backward()
    np.testing.assert_allclose(mine(*arrays, *args, **options), out.detach().numpy(), tolerance, tolerance)
    for g, t in zip(gradients, theirs, strict=True):
        np.testing.assert_allclose(g, t.grad.numpy(), 5 * tolerance, 5 * tolerance)
    return value


dtypes = st.sampled_from([np.float32, np.float64])
TOLERANCES = {np.float32: 2e-5, np.float64: 1e-12}


@given(st.integers(0, 2**32 - 1), dtypes, st.sampled_from([0.1, 1.0, 30.0]))
def test_activations(seed, dtype, scale):
    x = (scale * np.random.default_rng(seed).normal(size=(3, 5))).astype(dtype)
    tolerance = TOLERANCES[dtype]
    for name in ("relu", "sigmoid", "tanh", "gelu", "silu", "softplus"):
        agree(name, [x], tolerance=tolerance)
    for name in ("softmax", "log_softmax"):
        agree(name, [x], 0, tolerance=tolerance)
    agree("gelu", [x], approximate="tanh", tolerance=tolerance)


@given(st.integers(0, 2**32 - 1), dtypes, st.data())
def test_convolution(seed, dtype, data):
    rng = np.random.default_rng(seed)
    groups, n, c, o, kh, kw, sh, sw, dh, dw, ph, pw = (data.draw(st.integers(1, 3)) for _ in range(12))
    size = (kh - 1) * dh + data.draw(st.integers(1, 4)), (kw - 1) * dw + data.draw(st.integers(1, 4))
    x = rng.normal(size=(n, c * groups, *size)).astype(dtype)
    w, b = rng.normal(size=(o * groups, c, kh, kw)).astype(dtype), rng.normal(size=o * groups).astype(dtype)
    agree("conv2d", [x, w, b], (sh, sw), (ph - 1, pw - 1), (dh, dw), groups, tolerance=TOLERANCES[dtype])


@given(st.integers(0, 2**32 - 1), dtypes, st.booleans(), st.data())
def test_pooling(seed, dtype, ties, data):
    rng = np.random.default_rng(seed)
    kernel, stride, dilation = ((data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))) for _ in range(3))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    x = rng.normal(size=(2, 2, *(n + data.draw(st.integers(0, 4)) for n in spans))).astype(dtype)
    x = np.round(x) if ties else x
    padding = tuple(data.draw(st.integers(0, k // 2)) for k in kernel)
    ceil = data.draw(st.booleans())
    agree("max_pool2d", [x], kernel, stride, padding, dilation, ceil, tolerance=TOLERANCES[dtype])
    agree("avg_pool2d", [x], kernel, stride, padding, ceil, data.draw(st.booleans()), tolerance=TOLERANCES[dtype])


@given(st.integers(0, 2**32 - 1), dtypes)
def test_normalisation_and_linear(seed, dtype):
    rng = np.random.default_rng(seed)
    x, w, b = (rng.normal(size=shape).astype(dtype) for shape in ((2, 3, 4), (3, 4), (3, 4)))
    theirs = [torch.tensor(a, requires_grad=True) for a in (x, w, b)]
    out = torch.nn.functional.layer_norm(theirs[0], (3, 4), *theirs[1:])
    out.sin().sum().backward()
    gradients = fnad.grad(lambda a: np.sum(np.sin(F.layer_norm(a[0], (3, 4), *a[1:]))))([x, w, b])
    for g, t in zip(gradients, theirs, strict=True):
        np.testing.assert_allclose(g, t.grad.numpy(), TOLERANCES[dtype], TOLERANCES[dtype])
    agree("linear", [x, rng.normal(size=(5, 4)).astype(dtype), rng.normal(size=5).astype(dtype)], tolerance=TOLERANCES[dtype])


rates, shares, decays = st.floats(1e-3, 0.1), st.sampled_from([0.0, 0.3, 0.9, 0.99]), st.sampled_from([0.0, 0.1])
common = {"lr": rates, "weight_decay": decays, "maximize": st.booleans()}
family = {**common, "betas": st.tuples(shares, st.sampled_from([0.9, 0.99, 0.999])), "eps": st.sampled_from([1e-8, 1e-3])}
OPTIONS = {
    "Adam": {**family, "amsgrad": st.booleans()},
    "AdamW": {**family, "amsgrad": st.booleans()},
    "Adamax": family,
    "NAdam": {**family, "momentum_decay": st.sampled_from([4e-3, 0.1]), "decoupled_weight_decay": st.booleans()},
    "RAdam": {**family, "decoupled_weight_decay": st.booleans()},
    "Adagrad": {**common, "lr_decay": decays, "initial_accumulator_value": decays},
    "Adadelta": {**common, "rho": shares},
    "RMSprop": {**common, "alpha": st.sampled_from([0.9, 0.99]), "eps": st.just(1e-2), "momentum": shares, "centered": st.booleans()},
    "Rprop": {"lr": rates, "etas": st.sampled_from([(0.5, 1.2), (0.3, 2.0)]), "maximize": st.booleans()},
    "ASGD": {**common, "lambd": decays, "alpha": st.just(0.75), "t0": st.sampled_from([1.0, 5.0])},
    "Adafactor": {**common, "beta2_decay": st.sampled_from([-0.8, -0.3]), "d": st.sampled_from([1.0, 2.0])},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), dtype=dtypes, data=st.data())
def test_steps_of_optimizers(name, large, seed, dtype, data):
    """The same gradients: parameters agree after 20 steps, computed by NumPy (small leaves) and by compiled programs (large ones)."""
    options = data.draw(st.fixed_dictionaries(OPTIONS[name]))
    rng = np.random.default_rng(seed)
    p = rng.normal(size=(50, 50) if large else (3, 4)).astype(dtype)
    torch.set_default_dtype(torch.tensor(p).dtype)
    theirs = torch.tensor(p, requires_grad=True)
    opt, peer = getattr(fnad.optim, name.lower())(**options), getattr(torch.optim, name)([theirs], **options)
    state = opt.init(p)
    for _ in range(20):
        g = rng.normal(size=p.shape).astype(dtype)
        updates, state = opt.update(g, state, p)
        p = fnad.optim.apply_updates(p, updates)
        theirs.grad = torch.tensor(g)
        peer.step()
    torch.set_default_dtype(torch.float32)
    tolerance = 2e-5 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(p, theirs.detach().numpy(), tolerance, tolerance)
