"""PyTorch's trajectories: every optimizer, scheduler, and what stands around them, as recorded from it."""

import itertools

import numpy as np
import pytest

import fnad
from fnad import optim
from fnad.optim import schedules

from .trajectories import TOLERANCE, arrays, given, record, run

OPTIMIZERS = record("optimizers_torch")
GROUPS = record("groups_torch")
LBFGS = record("lbfgs_torch")
SCHEDULERS = record("schedulers_torch")
AVERAGES = record("averages_torch")
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def tuples(options):
    return {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}


def expression(code):
    return lambda t: eval(code, {"t": t})


def named(runs):
    return pytest.mark.parametrize("want", runs, ids=[f"{i}-{r.get('name') or r.get('objective')}" for i, r in enumerate(runs)])


@each_dtype
@named(OPTIMIZERS["runs"])
def test_trajectory(want, dtype):
    """Parameters, steps and the whole state."""
    skip, options = {tuple(s) for s in want["skip"]}, tuples(want["options"])
    if want["schedule"]:
        options["lr"] = expression(want["schedule"])
    names = ["w"] if want["name"] == "Muon" else ["w", "b", "s"]
    start = {k: v for k, v in arrays(OPTIMIZERS["start"], dtype).items() if k in names}
    grads = [{k: v for k, v in g.items() if k in names} for g in given(OPTIMIZERS["grads"], dtype, skip)]
    seen = run(getattr(optim, want["name"].lower())(**options), start, grads)
    tolerance = TOLERANCE[dtype]
    for step in ("1", "2", "5", "20"):
        params, state = seen[int(step) - 1]
        for k, p in params.items():
            assert p.dtype == dtype
            np.testing.assert_allclose(p, np.array(want[dtype][step][k]), tolerance, tolerance)
            assert state.step[k] == int(step) - sum((t, k) in skip for t in range(int(step)))
    fields = want[dtype]["state"]
    assert all(getattr(state, f) is None or f in fields or not np.any(getattr(state, f)["w"]) for f in state._fields[1:])
    for f, values in fields.items():
        for k, v in values.items():
            mine = getattr(state, f)[k]
            assert (mine is None) == (v is None)
            if v is not None:
                assert mine.dtype == ("float64" if f in ("mu_product", "eta", "mu") else dtype)
                np.testing.assert_allclose(mine, np.array(v), tolerance, tolerance)


@named(GROUPS["runs"])
def test_groups_and_clipping(want):
    """Parameter groups are a partition; the norm is that of all gradients."""
    make, dtype = getattr(optim, want["name"].lower()), want["dtype"]
    groups = {"decays": make(lr=0.1, weight_decay=0.1), "plain": make(lr=0.01)}
    clip = optim.clip_by_global_norm(1.5, float(want["norm_type"]))
    opt = optim.chain(clip, optim.partition(groups, {"w": "decays", "b": "plain", "s": "plain"}))
    params, _ = run(opt, arrays(GROUPS["start"], dtype), given(GROUPS["grads"], dtype))[-1]
    for k, p in params.items():
        assert p.dtype == dtype
        np.testing.assert_allclose(p, np.array(want["params"][k]), TOLERANCE[dtype], TOLERANCE[dtype])


@named(LBFGS["runs"])
def test_lbfgs(want):
    """Loss, parameters, and how often the closure was called, of six steps."""
    code, start = LBFGS["objectives"][want["objective"]]
    dtype, opt = want["dtype"], optim.lbfgs(**want["options"])
    params = {"x": np.array(start, dtype)}
    calls = 0

    def closure(p):
        nonlocal calls
        calls += 1
        return fnad.value_and_grad(lambda p: eval(code, {"x": p["x"]}))(p)

    state = opt.init(params)
    for step in want["steps"]:
        updates, state = opt.update(None, state, params, closure=closure)
        params = optim.apply_updates(params, updates)
        tolerance = 1e-9 if dtype == "float64" else 1e-3
        assert params["x"].dtype == state.d.dtype == dtype
        np.testing.assert_allclose(params["x"], step["x"], tolerance, tolerance)
        np.testing.assert_allclose(state.loss, step["loss"], tolerance, tolerance)
        assert state.func_evals == calls
        if dtype == "float64":
            assert (state.func_evals, state.n_iter) == (step["func_evals"], step["n_iter"])


# -- schedulers ----------------------------------------------------------------------------------------------------

NAMES = {
    "LambdaLR": "lambda_lr",
    "MultiplicativeLR": "multiplicative_lr",
    "StepLR": "step_lr",
    "MultiStepLR": "multi_step_lr",
    "ConstantLR": "constant_lr",
    "LinearLR": "linear_lr",
    "ExponentialLR": "exponential_lr",
    "PolynomialLR": "polynomial_lr",
    "CosineAnnealingLR": "cosine_annealing_lr",
    "CosineAnnealingWarmRestarts": "cosine_annealing_warm_restarts",
    "CyclicLR": "cyclic_lr",
    "OneCycleLR": "one_cycle_lr",
    "SWALR": "swa_lr",
}


def made(name, options, lr=0.1):
    if name == "SequentialLR":
        return schedules.sequential_lr([made(*part, lr) for part in options["schedules"]], options["milestones"])
    if name == "ChainedScheduler":
        return schedules.chained_scheduler(lr, [made(*part, 1.0) for part in options["factors"]])
    options = {k: expression(v) if k in ("lr_lambda", "scale_fn") else v for k, v in options.items()}
    first = () if name in ("CyclicLR", "OneCycleLR") else (lr,)
    return getattr(schedules, NAMES[name])(*first, **options)


@named(SCHEDULERS["runs"])
def test_schedule(want):
    """Step by step, for steps in a vector, and compiled."""
    schedule = made(want["name"], want["options"])
    ticks = np.arange(20)
    np.testing.assert_allclose([schedule(np.int64(t)) for t in ticks], want["lr"], 1e-12, 1e-15)
    np.testing.assert_allclose([schedule(t) for t in range(20)], want["lr"], 1e-12, 1e-15)
    np.testing.assert_allclose(fnad.vmap(schedule)(ticks), want["lr"], 1e-12, 1e-15)
    np.testing.assert_allclose(
        [fnad.core.graph.evaluate(fnad.make_graph(schedule)(t), [t]) for t in ticks], np.c_[want["lr"]], 1e-12, 1e-15
    )


@named([r for r in SCHEDULERS["runs"] if r["momentum"]])
def test_momentum_of_cycles(want):
    options = {k: v for k, v in want["options"].items() if k not in ("base_lr", "max_lr", "div_factor", "final_div_factor")}
    options = {k: expression(v) if k == "scale_fn" else v for k, v in options.items()}
    make = {"CyclicLR": schedules.cyclic_momentum, "OneCycleLR": schedules.one_cycle_momentum}[want["name"]]
    np.testing.assert_allclose([make(**options)(t) for t in range(20)], want["momentum"], 1e-12)


@named(SCHEDULERS["plateaus"])
def test_plateau(want):
    plateau = schedules.reduce_lr_on_plateau(**want["options"])
    state, traced = plateau.init(0.1), plateau.init(0.1)
    graph = fnad.make_graph(plateau.update)(np.float64(1.0), state)
    for metric, lr in zip(SCHEDULERS["metrics"], want["lr"], strict=True):
        assert state.lr == pytest.approx(lr, rel=1e-14)
        rate, state = plateau.update(metric, state)
        assert rate == state.lr
        assert (state.lr.dtype, state.num_bad_epochs.dtype) == (np.float64, np.int64)
        _, *traced = fnad.core.graph.evaluate(graph, [metric, *traced])
        np.testing.assert_array_equal(traced, state)


@named(AVERAGES["runs"])
@pytest.mark.parametrize("compiled", [False, True])
def test_averages(want, compiled):
    """`ema` and `swa` hold what AveragedModel holds."""
    inner = optim.sgd(lr=1.0)
    opt = optim.swa(inner) if want["decay"] is None else optim.ema(inner, want["decay"])
    update = fnad.jit(opt.update) if compiled else opt.update
    params = np.zeros(2)
    state = opt.init(params)
    for value, average in zip(AVERAGES["values"], want["averages"], strict=True):
        updates, state = update(params - np.array(value), state, params)
        params = optim.apply_updates(params, updates)
        np.testing.assert_allclose(optim.averaged_params(state, params), average, 1e-13)


def test_every_optimizer_and_scheduler_of_pytorch_is_here():
    optimizers = {r["name"] for r in OPTIMIZERS["runs"]}
    assert optimizers >= {
        "SGD",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "Adagrad",
        "Adadelta",
        "RMSprop",
        "Rprop",
        "ASGD",
        "Adafactor",
        "Muon",
    }
    assert {r["name"] for r in SCHEDULERS["runs"]} == {*NAMES, "SequentialLR", "ChainedScheduler"}
    assert len(list(itertools.chain(*GROUPS["grads"]))) == 15
