"""`fnad.optim.sgd`: PyTorch's trajectories, purity, and the same bits on every path."""

import json
import pathlib
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad import optim
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError
from fnad.kernels import update as kernels

RECORDED = json.loads((pathlib.Path(__file__).parent / "sgd_torch.json").read_text())
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}
OPTIONS = [
    {"lr": 0.1},
    {"lr": 0.1, "weight_decay": 0.05, "maximize": True},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05, "maximize": True},
]


def arrays(tree, dtype):
    return {k: np.array(v, dtype) for k, v in tree.items()}


def run(opt, params, grads, steps=None):
    """Trajectory of (params, state)."""
    state, seen = opt.init(params), []
    for g in grads:
        updates, state = opt.update(g, state, params)
        params = optim.apply_updates(params, updates)
        seen.append((params, state))
    return seen


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("run_index", range(len(RECORDED["runs"])))
def test_trajectory_of_pytorch(run_index, dtype):
    record = RECORDED["runs"][run_index]
    schedule, skip = record["schedule"], {tuple(s) for s in record["skip"]}
    options = dict(record["options"])
    if schedule:
        options["lr"] = lambda t: eval(schedule, {"t": t})
    grads = [{k: None if (t, k) in skip else v for k, v in arrays(g, dtype).items()} for t, g in enumerate(RECORDED["grads"])]
    seen = run(optim.sgd(**options), arrays(RECORDED["start"], dtype), grads)
    for step, want in record[dtype].items():
        params, state = seen[int(step) - 1]
        for k in params:
            assert params[k].dtype == state.momentum_buffer[k].dtype == dtype
            np.testing.assert_allclose(params[k], np.array(want["params"][k]), TOLERANCE[dtype], TOLERANCE[dtype])
            buffer = want["momentum_buffer"][k]
            np.testing.assert_allclose(
                state.momentum_buffer[k], np.zeros(params[k].shape) if buffer is None else buffer, TOLERANCE[dtype], TOLERANCE[dtype]
            )
            assert state.step[k] == int(step) - sum((t, k) in skip for t in range(int(step)))


def test_defaults_are_those_of_pytorch():
    params, grads = {"w": np.ones(2)}, {"w": np.array([1.0, 2.0])}
    updates, _ = optim.sgd().update(grads, optim.sgd().init(params), params)
    np.testing.assert_array_equal(updates["w"], [-0.001, -0.002])


def test_first_buffer_is_the_gradient_itself_and_later_ones_are_dampened():
    (_, first), (_, second) = run(optim.sgd(lr=0.1, momentum=0.5, dampening=0.75), np.zeros(1), [np.array([8.0]), np.array([8.0])])
    np.testing.assert_array_equal(first.momentum_buffer, [8.0])
    np.testing.assert_array_equal(second.momentum_buffer, [0.5 * 8 + 0.25 * 8])


def test_init_gives_zeros_like_params():
    params = {"w": np.ones((2, 3), np.float32), "none": None, "nested": (1.5, [np.array(2.0)]), "count": np.arange(3)}
    state = optim.sgd(momentum=0.9).init(params)
    assert isinstance(state, optim.SGDState)
    assert state._fields == ("step", "momentum_buffer")
    assert fnad.tree.structure(state.momentum_buffer) == fnad.tree.structure(state.step) == fnad.tree.structure(params)
    for p, b, s in zip(*map(fnad.tree.leaves, (params, state.momentum_buffer, state.step)), strict=True):
        assert type(b) is type(s) is np.ndarray
        assert (b.shape, b.dtype) == (np.shape(p), np.asarray(p).dtype)
        assert not b.any()
        assert (s.shape, s.dtype, s) == ((), np.int64, 0)


@pytest.mark.parametrize("options", OPTIONS)
def test_structure_shapes_and_dtypes_never_change(options):
    params = {"a": np.ones((2, 3), np.float32), "b": (np.ones(0), np.array(1.0)), "half": np.ones(2, np.float16)}
    for new, state in run(optim.sgd(**options), params, [params, params]):
        for tree in (new, state.momentum_buffer):
            assert fnad.tree.structure(tree) == fnad.tree.structure(params)
            for x, p in zip(fnad.tree.leaves(tree), fnad.tree.leaves(params), strict=True):
                assert (np.shape(x), x.dtype) == (p.shape, p.dtype)
        for x in fnad.tree.leaves(state):
            assert type(x) is np.ndarray
        for s in fnad.tree.leaves(state.step):
            assert (s.shape, s.dtype) == ((), np.int64)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("options", OPTIONS)
def test_pure(options, dtype):
    """Arguments stay as they are, and no result shares memory with an argument or another result."""
    opt = optim.sgd(**options)
    params = {"w": np.arange(6, dtype=dtype).reshape(2, 3), "b": np.ones(4, dtype), "frozen": np.ones(2, dtype)}
    grads = {"w": np.ones((2, 3), dtype), "b": np.ones(4, dtype), "frozen": None}
    state = opt.init(params)
    for _ in range(3):
        given = [x for x in fnad.tree.leaves((params, grads, state)) if x is not None]
        before = [x.copy() for x in given]
        for x in given:
            x.flags.writeable = False
        updates, new = opt.update(grads, state, params)
        moved = optim.apply_updates(params, updates)
        results = fnad.tree.leaves((updates, new, moved))
        for x, y in zip(given, before, strict=True):
            assert x.tobytes() == y.tobytes()
        for i, r in enumerate(results):
            assert r.flags.writeable
            assert not any(np.shares_memory(r, x) for x in (*given, *results[:i]))
        params, state = moved, new


finite = st.floats(-1e3, 1e3, width=32)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(finite, finite, finite), min_size=0, max_size=9),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 2),
    st.fixed_dictionaries(
        {
            "lr": st.floats(0, 2),
            "momentum": st.sampled_from([0.0, 0.5, 0.9]),
            "dampening": st.sampled_from([0.0, 0.3]),
            "weight_decay": st.sampled_from([0.0, 0.01, 1.0]),
            "nesterov": st.booleans(),
            "maximize": st.booleans(),
        }
    ),
)
def test_every_path_gives_the_same_bits(rows, dtype, step, options):
    """The kernel, the kernel undecorated, and NumPy under grad, vmap and recording."""
    if options["nesterov"]:
        options["dampening"], options["momentum"] = 0.0, options["momentum"] or 0.5
    g, p, buffer = np.array(rows, dtype).reshape(-1, 3).T.copy()
    opt = optim.sgd(**options)
    state = optim.SGDState(np.array(step), buffer)
    u, new = opt.update(g, state, p)

    def same(updates, other):
        assert np.asarray(updates).tobytes() == u.tobytes()
        assert np.asarray(other.momentum_buffer).tobytes() == new.momentum_buffer.tobytes()
        assert other.step == new.step

    same(*fnad.vjp(lambda g, p, b: opt.update(g, optim.SGDState(np.array(step), b), p), g, p, buffer)[0])
    graph = fnad.make_graph(opt.update)(g, state, p)
    u2, step2, b2 = fnad.core.graph.evaluate(graph, [g, np.array(step), buffer, p])
    same(u2, optim.SGDState(step2, b2))
    updates, batched = fnad.vmap(opt.update)(g[None], optim.SGDState(np.array([step]), buffer[None]), p[None])
    same(updates[0], optim.SGDState(batched.step[0], batched.momentum_buffer[0]))
    mapped = fnad.vmap(opt.update, in_axes=(0, optim.SGDState(None, 0), 0), out_axes=(0, optim.SGDState(None, 0)))(g, state, p)
    same(*mapped)
    lr, momentum, weight_decay = (dtype(options[k]) for k in ("lr", "momentum", "weight_decay"))
    keep, u3, b3 = dtype(1 - options["dampening"]), np.empty_like(g), np.empty_like(g)
    if momentum == 0:
        kernels.sgd.py_func(g, p, lr, weight_decay, options["maximize"], u3)
        b3 = buffer
    else:
        flags = options["nesterov"], options["maximize"], step == 0
        kernels.sgd_momentum.py_func(g, p, buffer, lr, momentum, keep, weight_decay, *flags, u3, b3)
    same(u3, optim.SGDState(new.step, b3))


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


def test_non_contiguous_and_byte_swapped_leaves():
    opt = optim.sgd(lr=0.1, momentum=0.9, weight_decay=0.1)
    p, g = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
    want, _ = opt.update(g, opt.init(p), p)
    for q, h in ((np.asfortranarray(p), g), (np.repeat(p, 2, axis=1)[:, ::2], np.broadcast_to(1.0, (3, 4)))):
        got, _ = opt.update(h, opt.init(q), q)
        np.testing.assert_array_equal(got, want)
        assert got.flags.c_contiguous
    swapped = p.astype(">f8")
    got, _ = opt.update(g.astype(">f8"), opt.init(swapped), swapped)
    np.testing.assert_array_equal(got, want)


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


def test_a_none_gradient_leaves_parameter_and_state_alone():
    opt = optim.sgd(lr=0.1, momentum=0.9)
    params = {"a": np.ones(2), "b": np.ones(2)}
    state = opt.init(params)
    _, state = opt.update(params, state, params)
    updates, after = opt.update({"a": np.ones(2), "b": None}, state, params)
    assert updates["b"] is None
    np.testing.assert_array_equal(after.momentum_buffer["b"], state.momentum_buffer["b"])
    assert (after.step["a"], after.step["b"]) == (2, 1)
    moved = optim.apply_updates(params, updates)
    np.testing.assert_array_equal(moved["b"], params["b"])
    assert not np.shares_memory(moved["b"], params["b"])


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


def test_optimizers_pickle():
    opt = pickle.loads(pickle.dumps(optim.sgd(lr=0.1, momentum=0.9)))
    p = np.ones(2)
    np.testing.assert_array_equal(opt.update(p, opt.init(p), p)[0], -0.1 * p)
