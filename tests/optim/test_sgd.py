"""`fnad.optim.sgd` and what all optimizers share: trees, schedules, traced hyperparameters, errors, `apply_updates`."""

import numpy as np
import pytest

import fnad
from fnad import optim
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError

from .trajectories import run


def test_defaults_are_those_of_pytorch():
    params, grads = {"w": np.ones(2)}, {"w": np.array([1.0, 2.0])}
    updates, _ = optim.sgd().update(grads, optim.sgd().init(params), params)
    np.testing.assert_array_equal(updates["w"], [-0.001, -0.002])


def test_first_buffer_is_the_gradient_itself_and_later_ones_are_dampened():
    (_, first), (_, second) = run(optim.sgd(lr=0.1, momentum=0.5, dampening=0.75), np.zeros(1), [np.array([8.0]), np.array([8.0])])
    np.testing.assert_array_equal(first.momentum_buffer, [8.0])
    np.testing.assert_array_equal(second.momentum_buffer, [0.5 * 8 + 0.25 * 8])


def test_without_numba_for_other_dtypes_is_the_same_formula():
    rng = np.random.default_rng(0)
    g, p, buffer = rng.normal(size=(3, 5)).astype(np.float16)
    opt = optim.sgd(lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01)
    u, state = opt.update(g, optim.SGDState(np.array(1), buffer), p)
    h = np.float16
    b = h(0.9) * buffer + h(0.5) * (g + h(0.01) * p)
    np.testing.assert_array_equal(state.momentum_buffer, b)
    np.testing.assert_array_equal(u, -h(0.1) * b)
    assert u.dtype == np.float16


def test_python_float_leaves():
    opt = optim.sgd(lr=0.5, momentum=0.9)
    params = {"w": 3.0}
    grads = fnad.grad(lambda p: p["w"] ** 2)(params)
    updates, _ = opt.update(grads, opt.init(params), params)
    assert optim.apply_updates(params, updates) == {"w": 0.0}


# -- schedules and traced hyperparameters --------------------------------------------------------------------------


def test_a_schedule_sees_the_step_of_each_leaf():
    seen = []

    def schedule(t):
        seen.append(t)
        return [0.1, 0.2, 0.3][t]

    opt = optim.sgd(lr=schedule)
    g = np.ones(1)
    run(opt, {"a": g, "b": g}, [{"a": g, "b": None}, {"a": g, "b": g}])
    assert [int(t) for t in seen] == [0, 1, 0]
    assert all(isinstance(t, np.int64) for t in seen)


def test_a_schedule_in_float64_leaves_float32_alone():
    for lr in (lambda t: np.float64(0.1) / (1 + t), np.float64(0.1), np.array(0.1)):
        p = np.ones(3, np.float32)
        opt = optim.sgd(lr=lr, momentum=np.float64(0.9), weight_decay=np.float64(0.1))
        updates, state = opt.update(p, opt.init(p), p)
        assert updates.dtype == state.momentum_buffer.dtype == np.float32


def test_a_schedule_returns_one_number():
    p = np.ones(3)
    with pytest.raises(ShapeError, match="one number"):
        optim.sgd(lr=lambda t: np.array([0.1])).update(p, optim.sgd().init(p), p)


def test_a_step_that_is_a_scalar():
    """Results of transforms have NumPy scalars for shape ()."""
    p, opt = np.ones(3), optim.sgd(lr=0.1, momentum=0.9)
    want = opt.update(p, optim.SGDState(np.array(4), p), p)
    for step in (np.int64(4), 4):
        updates, state = opt.update(p, optim.SGDState(step, p), p)
        np.testing.assert_array_equal(updates, want[0])
        assert (state.step, state.step.dtype) == (5, np.int64)


def test_a_schedule_of_a_traced_step():
    opt = optim.sgd(lr=lambda t: np.where(t < 2, 0.1, 0.01), momentum=0.9)
    p = np.ones(3)
    want, _ = opt.update(p, optim.SGDState(np.array(5), p), p)
    got, _ = fnad.vmap(opt.update)(p[None], optim.SGDState(np.array([5]), p[None]), p[None])
    np.testing.assert_array_equal(got[0], want)


def test_gradient_through_the_optimizer():
    """Derivatives of a loss after three steps by each hyperparameter, and by the start, against central differences."""
    x = np.array([1.0, -2.0, 0.5])

    def final_loss(numbers, start):
        lr, momentum, dampening, weight_decay = (numbers[i] for i in range(4))
        opt = optim.sgd(lr, momentum, dampening, weight_decay)
        params = {"w": start}
        state = opt.init(params)
        for _ in range(3):
            grads = fnad.grad(lambda p: np.sum(p["w"] ** 4) / 4)(params)
            updates, state = opt.update(grads, state, params)
            params = optim.apply_updates(params, updates)
        return np.sum(params["w"] ** 2)

    numbers = np.array([0.03, 0.9, 0.2, 0.1])
    got = fnad.grad(final_loss, argnums=(0, 1))(numbers, x)
    for k, point in enumerate((numbers, x)):
        for i in range(point.size):
            h = np.zeros(point.size)
            h[i] = 1e-6
            args = [(numbers + s * h, x) if k == 0 else (numbers, x + s * h) for s in (1, -1)]
            assert got[k][i] == pytest.approx((final_loss(*args[0]) - final_loss(*args[1])) / 2e-6, rel=1e-6)


def test_a_batch_of_trainings():
    """vmap over init and update: an ensemble trains as its members would alone."""
    opt = optim.sgd(lr=0.1, momentum=0.9, dampening=0.5)
    starts = np.random.default_rng(0).normal(size=(4, 3))

    def step(p, state):
        updates, state = opt.update(fnad.grad(lambda p: np.sum(p**4))(p), state, p)
        return optim.apply_updates(p, updates), state

    params, state = starts, fnad.vmap(opt.init)(starts)
    for _ in range(3):
        params, state = fnad.vmap(step)(params, state)
    for start, end in zip(starts, params, strict=True):
        p, s = start, opt.init(start)
        for _ in range(3):
            p, s = step(p, s)
        np.testing.assert_array_equal(p, end)


# -- None ----------------------------------------------------------------------------------------------------------


def test_none_in_params_is_an_empty_node():
    opt = optim.sgd(lr=0.1, momentum=0.9)
    params = {"a": np.ones(2), "bias": None}
    updates, state = opt.update({"a": np.ones(2), "bias": None}, opt.init(params), params)
    moved = optim.apply_updates(params, updates)
    assert moved["bias"] is updates["bias"] is state.step["bias"] is None


def test_params_may_be_left_out_without_weight_decay():
    opt = optim.sgd(lr=0.1, momentum=0.9)
    g = {"w": np.ones(2)}
    state = opt.init(g)
    np.testing.assert_array_equal(opt.update(g, state)[0]["w"], opt.update(g, state, g)[0]["w"])
    with pytest.raises(ArgumentError, match="weight_decay"):
        optim.sgd(weight_decay=0.1).update(g, state)


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -0.1}, "Invalid learning rate: -0.1"),
        ({"momentum": -0.5}, "Invalid momentum value: -0.5"),
        ({"weight_decay": -1.0}, "Invalid weight_decay value: -1.0"),
        ({"nesterov": True}, "Nesterov momentum requires a momentum and zero dampening"),
        ({"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "Nesterov momentum requires a momentum and zero dampening"),
        ({"lr": np.ones(2)}, "one number"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(ValueError, match=message):
        optim.sgd(**options)


@pytest.mark.parametrize(
    ("grads", "error", "words"),
    [
        ({"l": {"w": np.ones(2)}}, TreeError, ["grads", "['l']"]),
        ({"l": {"w": np.ones(2), "b": np.ones(1), "c": np.ones(1)}}, TreeError, ["grads", "['l']"]),
        ({"l": None}, TreeError, ["grads", "['l']"]),
        ({"l": {"w": np.ones(3), "b": np.ones(1)}}, ShapeError, ["grads['l']['w']", "float64[3]", "float64[2]"]),
        ({"l": {"w": np.ones(2, np.float32), "b": np.ones(1)}}, DTypeError, ["grads['l']['w']", "float32[2]", ".astype(np.float64)"]),
        ({"l": {"w": np.ones(2, int), "b": np.ones(1)}}, DTypeError, ["grads['l']['w']", "int64[2]"]),
    ],
)
def test_gradients_that_do_not_fit(grads, error, words):
    params = {"l": {"w": np.ones(2), "b": np.ones(1)}}
    opt = optim.sgd(lr=0.1, momentum=0.9)
    with pytest.raises(error) as caught:
        opt.update(grads, opt.init(params), params)
    for word in words:
        assert word in str(caught.value)


def test_leaves_that_cannot_be_optimized():
    opt = optim.sgd(lr=0.1)
    for p, word in ((np.arange(3), "floating point"), (np.ones(3, complex), "real")):
        with pytest.raises(DTypeError, match=word):
            opt.update({"p": p}, opt.init({"p": p}), {"p": p})
        assert opt.update({"p": None}, opt.init({"p": p}), {"p": p})[0] == {"p": None}
    with pytest.raises(DTypeError, match=r"\['name'\]"):
        opt.init({"name": "mlp"})


def test_a_state_that_does_not_fit():
    opt = optim.sgd(lr=0.1, momentum=0.9)
    p = {"w": np.ones(3)}
    step = {"w": np.array(0)}
    with pytest.raises(TreeError, match="SGDState"):
        opt.update(p, (step, p), p)
    with pytest.raises(TreeError, match=r"state\.step"):
        opt.update(p, optim.SGDState({}, p), p)
    with pytest.raises(TreeError, match=r"state\.momentum_buffer\['w'\]: None"):
        opt.update(p, optim.SGDState(step, {"w": None}), p)
    with pytest.raises(ShapeError, match=r"state\.momentum_buffer"):
        opt.update(p, optim.SGDState(step, {"w": np.ones(1)}), p)
    with pytest.raises(DTypeError, match=r"state\.momentum_buffer"):
        opt.update(p, optim.SGDState(step, {"w": np.ones(3, np.float32)}), p)
    with pytest.raises(ShapeError, match=r"state\.step\['w'\]"):
        opt.update(p, optim.SGDState({"w": np.zeros(1, int)}, p), p)
    with pytest.raises(TreeError, match=r"grads\['w'\]: a leaf"):
        opt.update(p, opt.init({"w": None}), {"w": None})


# -- apply_updates -------------------------------------------------------------------------------------------------


def test_apply_updates_keeps_the_dtype_of_params():
    moved = optim.apply_updates({"w": np.ones(2, np.float32)}, {"w": np.array([0.1, 0.2])})
    assert moved["w"].dtype == np.float32


@pytest.mark.parametrize(
    ("params", "updates", "error"),
    [
        ({"w": np.ones(2)}, {"w": np.ones(1)}, ShapeError),
        ({"w": np.ones(2)}, {"w": 1.0}, ShapeError),
        ({"w": np.ones(2)}, {"v": np.ones(2)}, TreeError),
        ({"w": None}, {"w": np.ones(2)}, TreeError),
        ({"w": np.arange(2)}, {"w": np.ones(2)}, DTypeError),
        ({"w": np.ones(2)}, {"w": np.ones(2, complex)}, DTypeError),
    ],
)
def test_updates_that_do_not_fit(params, updates, error):
    with pytest.raises(error, match=r"\['[vw]'\]"):
        optim.apply_updates(params, updates)


def test_apply_updates_on_tracers():
    grads = fnad.grad(lambda p, u: np.sum(optim.apply_updates(p, u)["w"] ** 2))({"w": np.array([1.0, 2.0])}, {"w": np.array([1.0, 1.0])})
    np.testing.assert_array_equal(grads["w"], [4.0, 6.0])
