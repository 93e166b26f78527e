"""Training by the facade against PyTorch, where it is installed: every optimizer and scheduler for 20 steps, state and its names."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

import fnad.torch as ours  # noqa: E402

SETS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01},
        {"lr": 0.05, "momentum": 0.9, "nesterov": True},
    ],
    "Adam": [
        {},
        {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1},
        {"lr": 0.05, "betas": (0.5, 0.9), "eps": 1e-4, "maximize": True},
        {"lr": 0.05, "weight_decay": 0.3, "decoupled_weight_decay": True},
    ],
    "AdamW": [{}, {"lr": 0.05, "amsgrad": True, "weight_decay": 0.3}],
    "Adamax": [{}, {"lr": 0.05, "weight_decay": 0.1}],
    "NAdam": [{}, {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.01}],
    "RAdam": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.5, 0.9)}],
    "Adagrad": [{"lr": 0.1}, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.5, "weight_decay": 0.1}],
    "Adafactor": [{"lr": 0.1}, {"lr": 0.1, "beta2_decay": -0.5, "d": 2.0, "weight_decay": 0.1}],
    "RMSprop": [{}, {"lr": 0.01, "momentum": 0.5, "centered": True, "weight_decay": 0.1}],
    "Rprop": [{}, {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-4, 1.0)}],
    "ASGD": [{"lr": 0.1}, {"lr": 0.1, "lambd": 0.01, "alpha": 0.6, "t0": 3.0, "weight_decay": 0.1}],
    "Muon": [{}, {"lr": 0.02, "momentum": 0.5, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}],
    "LBFGS": [{}, {"lr": 0.5, "line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 3}],
}
SCHEDULERS = {
    "StepLR": {"step_size": 3, "gamma": 0.5},
    "MultiStepLR": {"milestones": [4, 9]},
    "ConstantLR": {"factor": 0.3, "total_iters": 6},
    "LinearLR": {"total_iters": 8},
    "ExponentialLR": {"gamma": 0.9},
    "PolynomialLR": {"total_iters": 15, "power": 2.0},
    "CosineAnnealingLR": {"T_max": 7, "eta_min": 0.001},
    "CosineAnnealingWarmRestarts": {"T_0": 4, "T_mult": 2},
    "LambdaLR": {"lr_lambda": lambda t: 1 / (1 + t)},
    "MultiplicativeLR": {"lr_lambda": lambda t: 0.8},
    "CyclicLR": {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "mode": "triangular2", "cycle_momentum": False},
    "OneCycleLR": {"max_lr": 0.3, "total_steps": 25, "three_phase": True},
}
CASES = [(name, k) for name, sets in SETS.items() for k in range(len(sets))]
# PyTorch keeps some numbers of NAdam's and ASGD's state in float32, and orthogonalises in bfloat16.
LOOSE = {"NAdam": 1e-6, "ASGD": 1e-6, "Muon": 0.05, "LBFGS": 1e-3}


def model(T, dtype):
    layers = T.nn.Sequential(T.nn.Linear(3, 4, bias=False), T.nn.Tanh(), T.nn.Linear(4, 2, bias=False)).to(dtype)
    with T.no_grad():
        for k, p in enumerate(layers.parameters()):
            p.copy_(T.from_numpy(0.5 * np.sin(0.7 * np.arange(p.numel()) + k).reshape(tuple(p.shape))))
    return layers


def train(T, name, options, dtype, schedule=None, steps=20, groups=False):
    net = model(T, getattr(T, dtype))
    x = T.from_numpy(np.cos(np.arange(15.0)).reshape(5, 3)).to(net[0].weight.dtype)
    y = T.from_numpy(np.sin(np.arange(10.0)).reshape(5, 2)).to(net[0].weight.dtype)
    params = [{"params": net[0].parameters(), "lr": 0.01}, {"params": net[2].parameters()}] if groups else net.parameters()
    optimizer = getattr(T.optim, name)(params, **options)
    scheduler = None if schedule is None else getattr(T.optim.lr_scheduler, schedule)(optimizer, **SCHEDULERS[schedule])
    path, rates = [], []

    def closure():
        optimizer.zero_grad()
        loss = T.nn.functional.mse_loss(net(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        loss = optimizer.step(closure)
        rates.append([g["lr"] for g in optimizer.param_groups])
        if scheduler is not None:
            scheduler.step()
        path.append(loss.item())
    return path, [p.detach().numpy() for p in net.parameters()], rates, optimizer


@pytest.fixture(autouse=True)
def default_dtype(request):
    """Tensors of PyTorch's state that have no dtype of their own get that of the parameters."""
    dtype = getattr(request, "param", None) or request.node.callspec.params.get("dtype", "float64")
    for T in (torch, ours):
        T.set_default_dtype(getattr(T, dtype))
    yield
    for T in (torch, ours):
        T.set_default_dtype(T.float32)


def close(got, want, name, dtype):
    tolerance = max(LOOSE.get(name, 0), 1e-4 if dtype == "float32" else 1e-10)
    np.testing.assert_allclose(got[0], want[0], tolerance, tolerance)
    for a, b in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)
    np.testing.assert_allclose(got[2], want[2], 1e-12)


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step:UserWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "k"), CASES)
def test_optimizers(name, k, dtype):
    options = SETS[name][k]
    steps = (
        20 if name != "LBFGS" else 4 if dtype == "float64" else 2
    )  # which is chaotic: differences of roundings grow a hundred times per step
    got, want = (train(T, name, options, dtype, steps=steps) for T in (ours, torch))
    close(got, want, name, dtype)
    mine, theirs = got[3].state_dict(), want[3].state_dict()
    assert set(mine["param_groups"][0]) >= set(theirs["param_groups"][0]) - {"decoupled_weight_decay" if name == "AdamW" else ""}
    if name not in ("SGD", "LBFGS", "Muon", "Adafactor"):
        assert {n: set(s) for n, s in mine["state"].items()} == {n: set(s) for n, s in theirs["state"].items()}


@pytest.mark.parametrize("dtype", ["float64"])
@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULERS)
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_schedulers(name, schedule, groups, dtype):
    options = {"lr": 0.05, "momentum": 0.9} if name == "SGD" else {"lr": 0.05}
    got, want = (train(T, name, options, dtype, schedule, groups=groups) for T in (ours, torch))
    close(got, want, name, dtype)


@pytest.mark.parametrize("dtype", ["float64"])
@pytest.mark.parametrize("name", [n for n in SETS if n not in ("LBFGS", "Muon", "Adafactor")])
def test_a_state_of_pytorch_goes_on(name, dtype):
    """Numbers of PyTorch's `state_dict` continue in the facade as in PyTorch."""
    options = SETS[name][-1]
    _, weights, _, optimizer = train(torch, name, options, dtype, steps=4)
    saved = copy.deepcopy(optimizer.state_dict())
    paths = []
    for T in (torch, ours):
        params = [T.from_numpy(w.copy()).requires_grad_() for w in weights]
        again = getattr(T.optim, name)(params, **options)
        state = {
            n: {f: T.from_numpy(np.array(v.numpy())) if isinstance(v, torch.Tensor) else v for f, v in s.items()}
            for n, s in saved["state"].items()
        }
        again.load_state_dict({"state": state, "param_groups": copy.deepcopy(saved["param_groups"])})
        for k in range(5):
            for p in params:
                p.grad = T.from_numpy(np.cos(np.arange(p.numel()) + k).reshape(tuple(p.shape)))
            again.step()
        paths.append([p.detach().numpy() for p in params])
    for a, b in zip(*paths, strict=True):
        np.testing.assert_allclose(b, a, max(LOOSE.get(name, 0), 1e-10), 1e-8)
