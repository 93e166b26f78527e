"""Optimizers that PyTorch lacks: the trajectories of optax, and where optax has none, the formulas of the paper."""

import numpy as np
import pytest

from fnad import optim
from fnad.optim import schedules

from .trajectories import TOLERANCE, arrays, given, record, run

RECORDED = record("optimizers_optax")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("want", RECORDED["runs"], ids=[f"{i}-{r['name']}" for i, r in enumerate(RECORDED["runs"])])
def test_trajectory(want, dtype):
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in want["options"].items()}
    seen = run(getattr(optim, want["name"])(**options), arrays(RECORDED["start"], dtype), given(RECORDED["grads"], dtype))
    # optax adds up in another order; schedule-free averages divide by what may be small
    tolerance = (2e-5 if want["name"].startswith("schedule_free") else 1e-5) if dtype == "float32" else TOLERANCE[dtype]
    for step, tree in want[dtype].items():
        params, state = seen[-1 if step == "average" else int(step) - 1]
        mine = optim.averaged_params(state, params) if step == "average" else params
        for k, v in mine.items():
            assert v.dtype == dtype
            np.testing.assert_allclose(v, np.array(tree[k]), tolerance, tolerance)


def test_adan_is_the_algorithm_of_the_paper():
    """Algorithm 1 as it is printed there: its betas count what is new, and the gradient before the first is the first."""
    rng = np.random.default_rng(0)
    theta, grads = rng.normal(size=5), rng.normal(size=(20, 5))
    b1, b2, b3, eta, eps, decay = 0.02, 0.08, 0.01, 0.1, 1e-3, 0.2
    opt = optim.adan(lr=eta, betas=(1 - b1, 1 - b2, 1 - b3), eps=eps, weight_decay=decay)
    got = run(opt, theta.copy(), grads)
    m = v = n = np.zeros(5)
    for t, g in enumerate(grads, 1):
        difference = g - grads[max(t - 2, 0)]
        m = (1 - b1) * m + b1 * g
        v = (1 - b2) * v + b2 * difference
        n = (1 - b3) * n + b3 * (g + (1 - b2) * difference) ** 2
        corrected = [x / (1 - (1 - b) ** t) for x, b in ((m, b1), (v, b2), (n, b3))]
        step = eta / (np.sqrt(corrected[2]) + eps)
        theta = (theta - step * (corrected[0] + (1 - b2) * corrected[1])) / (1 + decay * eta)
        np.testing.assert_allclose(got[t - 1][0], theta, 1e-12)


def test_schedule_free_weights_and_warm_up():
    """The average as a weighted mean of the iterates, with the weights of the paper."""
    rng = np.random.default_rng(1)
    lr, warm, r, power, beta = 0.3, 4, 1.0, 2.0, 0.7
    opt = optim.schedule_free_sgd(lr, beta, warmup_steps=warm, r=r, weight_lr_power=power)
    y = z = rng.normal(size=3)
    state, zs, weights = opt.init(y), [], []
    for t in range(1, 12):
        g = rng.normal(size=3)
        updates, state = opt.update(g, state, y)
        y = y + updates
        rate = lr * min(1, t / warm)
        z = z - rate * g
        zs.append(z)
        weights.append(t**r * rate**power)
        mean = np.average(zs, axis=0, weights=weights)
        np.testing.assert_allclose(state.z, z, 1e-12)
        np.testing.assert_allclose(optim.averaged_params(state, y), mean, 1e-10)
        np.testing.assert_allclose(y, beta * mean + (1 - beta) * z, 1e-12)


def test_warm_ups():
    ticks = range(20)
    with_start = schedules.warmup_cosine(0.3, 5, 15, end_lr=0.02, start_lr=0.01)
    np.testing.assert_allclose([with_start(t) for t in ticks], RECORDED["schedules"]["warmup_cosine"], 1e-6)
    without = schedules.warmup_cosine(0.3, 0, 15)
    np.testing.assert_allclose([without(t) for t in ticks], RECORDED["schedules"]["warmup_cosine_without"], 1e-6, 1e-9)
    for decay, middle in (("linear", 0.2), ("cos", 0.2), ("sqrt", 0.4 - 0.4 * np.sqrt(0.5))):
        wsd = schedules.warmup_stable_decay(0.4, 2, 3, 4, decay=decay)
        np.testing.assert_allclose([wsd(t) for t in (0, 1, 2, 5, 7, 9, 99)], [0, 0.2, 0.4, 0.4, middle, 0, 0], 1e-12, 1e-15)
    sudden = schedules.warmup_stable_decay(0.4, 0, 3, 0, end_lr=0.1)
    np.testing.assert_allclose([sudden(t) for t in range(5)], [0.4, 0.4, 0.4, 0.1, 0.1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: schedules.step_lr(0.1, 0), "Expected positive integer step_size, but got 0"),
        (lambda: schedules.constant_lr(0.1, factor=2.0), "between 0 and 1"),
        (lambda: schedules.linear_lr(0.1, start_factor=0.0), "greater than 0"),
        (lambda: schedules.linear_lr(0.1, end_factor=1.5), "between 0 and 1"),
        (lambda: schedules.cosine_annealing_lr(0.1, 2.5), "Expected positive integer T_max"),
        (lambda: schedules.cosine_annealing_warm_restarts(0.1, 4, 0), "Expected positive integer T_mult"),
        (lambda: schedules.cyclic_lr(0.1, 0.2, mode="square"), "mode is invalid"),
        (lambda: schedules.cyclic_lr(0.1, 0.2, scale_mode="epoch"), "scale_mode"),
        (lambda: schedules.one_cycle_lr(0.1, 10, pct_start=2.0), "pct_start"),
        (lambda: schedules.one_cycle_lr(0.1, 10, anneal_strategy="exp"), "'cos' or 'linear', instead got exp"),
        (lambda: schedules.swa_lr(0.1, 0.2, anneal_epochs=-1), "equal or greater than 0"),
        (lambda: schedules.sequential_lr([abs, abs], []), "one more than the number of milestone"),
        (lambda: schedules.sequential_lr([abs, abs, abs], [3, 2]), "milestones rise"),
        (lambda: schedules.warmup_cosine(0.1, 10, 10), "shorter than the whole"),
        (lambda: schedules.warmup_stable_decay(0.1, 1, -1, 1), "not negative"),
        (lambda: schedules.reduce_lr_on_plateau(factor=1.0), "Factor should be < 1.0"),
        (lambda: schedules.reduce_lr_on_plateau(mode="least"), "mode least is unknown"),
        (lambda: schedules.reduce_lr_on_plateau(threshold_mode="some"), "threshold mode some is unknown"),
    ],
)
def test_schedules_that_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()
