"""What holds for every optimizer that treats each leaf by itself."""

import inspect
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad import optim
from fnad.compiler.pipeline import Executable
from fnad.compiler.program import Loop, stores
from fnad.compiler.simplify import simplify
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError
from fnad.optim import rule
from fnad.testing import assert_trees_close

from .trajectories import OPTIMIZERS, draw, each_optimizer, leaves, make, run

SETTINGS = {"asgd": {"lambd": 1e-4, "weight_decay": 0.0}, "adadelta": {"lr": 1.0}, "adagrad": {"lr": 0.5}}  # of the descent


def step_of(opt):
    def step(params, state, grads):
        updates, state = opt.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    return step


# -- state and purity ----------------------------------------------------------------------------------------------


@each_optimizer
def test_init_and_structure(name):
    """Structure, shapes and dtypes of state and parameters never change; the state is a NamedTuple that begins at step 0."""
    for dtype in (np.float16, np.float32, np.float64):
        params, grads = draw(name, dtype)
        opt = make(name)
        start = opt.init(params)
        assert start._fields[0] == "step"
        assert all((s.shape, s.dtype, s) == ((), np.int64, 0) for s in leaves(start.step))
        for new, state in run(opt, params, [grads(), grads()]):
            for old, now in ((start, state), (params, new)):
                assert fnad.tree.structure(old) == fnad.tree.structure(now)
                for x, y in zip(leaves(old), leaves(now), strict=True):
                    assert type(y) is np.ndarray
                    assert (x.shape, x.dtype) == (y.shape, y.dtype)


@each_optimizer
@pytest.mark.parametrize("size", [None, (50, 50)], ids=["small", "large"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_pure(name, dtype, size):
    """Arguments stay as they are, and no result shares memory with an argument or another result."""
    params, draw_grads = draw(name, dtype, size=size)
    params["frozen"] = np.ones((2, 2), dtype)
    opt = make(name)
    state = opt.init(params)
    for _ in range(2):
        grads = {**draw_grads(), "frozen": None}
        before = leaves((params, grads, state))
        copies = [x.copy() for x in before]
        for x in before:
            x.flags.writeable = False
        updates, new = opt.update(grads, state, params)
        with np.errstate(all="ignore"):  # eps is 0 in float16
            moved = optim.apply_updates(params, updates)
        assert updates["frozen"] is None
        results = leaves((updates, new, moved))
        for x, y in zip(before, copies, strict=True):
            assert x.tobytes() == y.tobytes()
        for i, r in enumerate(results):
            assert r.flags.writeable
            assert not any(np.shares_memory(r, x) for x in (*before, *results[:i]))
        params, state = moved, new


@each_optimizer
def test_a_none_gradient_leaves_parameter_and_state_alone(name):
    params, grads = draw(name, np.float64)
    opt = make(name)
    _, state = opt.update(grads(), opt.init(params), params)
    skipped = next(iter(params))
    updates, after = opt.update({**grads(), skipped: None}, state, params)
    assert updates[skipped] is None
    assert all(after.step[k] == (1 if k == skipped else 2) for k in params)
    for field in state._fields:
        if getattr(state, field) is not None:
            np.testing.assert_equal(getattr(after, field)[skipped], getattr(state, field)[skipped])


@each_optimizer
def test_sizes_0_and_1_and_other_layouts(name):
    opt = make(name)
    for shape in ((0, 3), (1, 1)):
        p = np.ones(shape)
        (new, state), _ = run(opt, p, [p, p])
        assert new.shape == shape
        assert np.isfinite(new).all()
        assert state.step == 1
    p, g = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
    want, _ = opt.update(g, opt.init(p), p)
    for q, h in (
        (np.asfortranarray(p), g),
        (np.repeat(p, 2, axis=1)[:, ::2], np.broadcast_to(1.0, (3, 4))),
        (p.astype(">f8"), g.astype(">f8")),
    ):
        got, _ = opt.update(h, opt.init(q), q)
        np.testing.assert_array_equal(got, want)


@each_optimizer
def test_pickle(name):
    opt, (p, grads) = make(name), draw(name, np.float64)
    again, g = pickle.loads(pickle.dumps(opt)), grads()
    assert_trees_close(again.update(g, again.init(p), p), opt.update(g, opt.init(p), p), rtol=0, atol=0)


# -- laws ----------------------------------------------------------------------------------------------------------


@each_optimizer
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float32, np.float64]))
def test_zero_learning_rate_changes_nothing_but_state(name, seed, dtype):
    if name == "rprop":
        return  # its learning rate is only the first step length, and step lengths have a least value
    params, grads = draw(name, dtype, seed)
    opt = make(name, lr=0.0)
    for new, state in run(opt, params, [grads() for _ in range(3)]):
        for k, p in params.items():
            np.testing.assert_array_equal(new[k], p)
            assert state.step[k] > 0


@each_optimizer
@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float32, np.float64]),
    warm=st.integers(0, 3),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    options=st.fixed_dictionaries(
        {}, optional={"weight_decay": st.sampled_from([0.0, 0.01, 1.0]), "maximize": st.booleans(), "lr": st.floats(0, 2)}
    ),
)
def test_every_path_gives_the_same_bits(name, seed, dtype, warm, scale, options):
    """Plain arrays, and NumPy under grad, vmap and recording; leaves differ in their steps."""
    params, ordinary = draw(name, dtype, seed)
    known = inspect.signature(OPTIMIZERS[name][0]).parameters
    opt = make(name, **{k: v for k, v in options.items() if k in known})
    grads = lambda: {k: np.array(dtype(scale) * g) for k, g in ordinary().items()}
    state = opt.init(params)
    first = next(iter(params))
    for _ in range(warm):
        _, state = opt.update({**grads(), first: None}, state, params)
    g = grads()
    want = opt.update(g, state, params)

    def same(got):
        assert_trees_close(got, want, rtol=0, atol=0)

    same(fnad.vjp(lambda g, p: opt.update(g, state, p), g, params)[0])
    flat, spec = fnad.tree.flatten((g, state, params))
    graph = fnad.make_graph(opt.update)(g, state, params)
    same(fnad.tree.unflatten(fnad.tree.structure(want), fnad.core.graph.evaluate(graph, flat)))
    lifted = fnad.vmap(opt.update)(*fnad.tree.map(lambda x: np.stack([x, x]), fnad.tree.unflatten(spec, flat)))
    same(fnad.tree.map(lambda x: x[1], lifted))


@each_optimizer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_leaves(name, dtype, monkeypatch):
    """The compiled program of one leaf agrees with NumPy."""
    params, grads = draw(name, dtype, size=(50, 50))
    params, draws = {"w": params["w"]}, [{"w": grads()["w"]} for _ in range(3)]
    compiled = run(make(name), params, draws)
    monkeypatch.setattr(rule, "KERNEL_SIZE", np.inf)
    monkeypatch.setattr(rule, "_program", None)
    for got, want in zip(compiled, run(make(name), params, draws), strict=True):
        assert_trees_close(got, want, rtol=2e-5 if dtype is np.float32 else 1e-12, atol=1e-6 if dtype is np.float32 else 1e-13)


@each_optimizer
def test_compiled(name):
    """A jitted step follows the eager one, in place where it may; and a leaf is written in one loop."""
    dtype = np.float32 if list(OPTIMIZERS).index(name) % 2 else np.float64
    params, grads = draw(name, dtype)
    opt = make(name)
    step, state = step_of(opt), opt.init(params)
    jitted = fnad.jit(step, donate_argnums=(0, 1))
    for _ in range(3):
        g = grads()
        want = step(params, state, g)
        got = jitted(*fnad.tree.map(np.copy, (params, state)), g)
        assert_trees_close(got, want, rtol=1e-4 if dtype is np.float32 else 1e-11, atol=1e-6 if dtype is np.float32 else 1e-13)
        params, state = want
    assert len(jitted._entries) == 1  # recorded once
    if opt.init.__self__.elementwise:
        nodes = Executable(simplify(fnad.make_graph(step)(params, state, g))).schedule.nodes
        writers = [{s.buffer.shape for s in stores(n)} for n in nodes if isinstance(n, Loop)]
        for k in ("w", "b"):
            assert sum(params[k].shape in w for w in writers) == 1


def test_the_memory_of_donated_arguments_is_used_again():
    params, grads = draw("adam", np.float64)
    opt = make("adam")
    state = opt.init(params)
    new, after = fnad.jit(step_of(opt), donate_argnums=(0, 1))(params, state, grads())
    given = [x for x in leaves((params, state)) if x.size > 1]
    for x in leaves((new, after)):
        assert x.size == 1 or sum(np.shares_memory(x, y) for y in given) == 1


def test_a_second_size_is_no_new_code():
    opt = make("adamax")
    for n in (3000, 4000):
        p = np.ones(n)
        opt.update(p, opt.init(p), p)
    program = lambda n: rule._program(*next(k for k in keys if k[-1][0] == (n,)))[0]
    body = rule._Body(opt.init.__self__.formula, tuple(opt.init.__self__.flags.items()), False, "l2", True)
    names = tuple(opt.init.__self__._at(np.int64(0), []))
    keys = [(body, names, np.dtype(float), ((n,), (n,), (n,), (n,))) for n in (3000, 4000)]
    hits = rule._program.cache_info().hits
    assert program(3000).texts == program(4000).texts
    assert rule._program.cache_info().hits == hits + 2


@each_optimizer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_descent(name, dtype):
    """Every one of them goes down a valley, or up where it maximizes."""
    start, _ = draw(name, dtype)
    target = {k: p + dtype(1) for k, p in start.items()}
    sign = -1 if OPTIMIZERS[name][1].get("maximize") else 1

    def loss(p):
        return sign * sum(
            np.sum((1 + np.arange(x.size).reshape(x.shape) / 4) * (x - t) ** 2) for x, t in zip(p.values(), target.values(), strict=True)
        )

    opt, gradient = make(name, **{"lr": 0.05, **SETTINGS.get(name, {})}), fnad.grad(loss)
    params, state = start, opt.init(start)
    for _ in range(120):
        updates, state = opt.update(gradient(params), state, params)
        params = optim.apply_updates(params, updates)
    assert abs(loss(params)) < 0.2 * abs(loss(start))


# -- schedules, traced hyperparameters -----------------------------------------------------------------------------


@each_optimizer
def test_a_schedule_is_a_number_that_changes(name):
    if name in ("rprop", "asgd"):
        return  # the first step length; a rate that acts one step later
    params, grads = draw(name, np.float32)
    opt, state = make(name, lr=lambda t: np.float64(0.1) / (1 + t)), None
    state = opt.init(params)
    for t in range(3):
        g = grads()
        updates, after = opt.update(g, state, params)
        assert_trees_close((updates, after), make(name, lr=0.1 / (1 + t)).update(g, state, params), rtol=0, atol=0)
        params, state = optim.apply_updates(params, updates), after
    assert all(x.dtype == np.float32 for x in params.values())


@each_optimizer
def test_gradient_through_the_optimizer(name):
    """The derivative of a loss after three steps by the learning rate and by the start, against central differences."""
    start = {"w": np.array([[1.0, -2.0], [0.5, 0.3]])}

    def final_loss(lr, start):
        params = start
        opt = make(name, lr=lr)
        state = opt.init(params)
        for _ in range(3):
            grads = fnad.grad(lambda p: np.sum(p["w"] ** 4) / 4)(params)
            updates, state = opt.update(grads, state, params)
            params = optim.apply_updates(params, updates)
        return np.sum(params["w"] ** 2)

    lr = 0.03
    rate, by_start = fnad.grad(final_loss, argnums=(0, 1))(lr, start)
    assert rate == pytest.approx((final_loss(lr + 1e-6, start) - final_loss(lr - 1e-6, start)) / 2e-6, rel=1e-5, abs=1e-8)
    for i in np.ndindex(2, 2):
        ahead, behind = ({"w": start["w"] + s * 1e-6 * (np.indices((2, 2)) == np.reshape(i, (2, 1, 1))).all(0)} for s in (1, -1))
        assert by_start["w"][i] == pytest.approx((final_loss(lr, ahead) - final_loss(lr, behind)) / 2e-6, rel=1e-4, abs=1e-7)


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (optim.adam, {"lr": -0.1}, "Invalid learning rate: -0.1"),
        (optim.adamw, {"eps": -1e-8}, "Invalid epsilon value: -1e-08"),
        (optim.adam, {"betas": (1.0, 0.5)}, "Invalid beta parameter at index 0: 1.0"),
        (optim.nadam, {"betas": (0.5, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
        (optim.radam, {"weight_decay": -1.0}, "Invalid weight_decay value: -1.0"),
        (optim.adamw, {"eps": np.ones(2)}, "one number"),
        (optim.nadam, {"momentum_decay": -1.0}, "Invalid momentum_decay value: -1.0"),
        (optim.adagrad, {"lr_decay": -1.0}, "Invalid lr_decay value: -1.0"),
        (optim.adagrad, {"initial_accumulator_value": -1.0}, "Invalid initial_accumulator_value value: -1.0"),
        (optim.adadelta, {"rho": 1.5}, "Invalid rho value: 1.5"),
        (optim.rmsprop, {"alpha": -1.0}, "Invalid alpha value: -1.0"),
        (optim.rprop, {"etas": (1.5, 0.5)}, "Invalid eta values: 1.5, 0.5"),
        (optim.adafactor, {"d": 0.5}, "d should be >= 1"),
        (optim.adafactor, {"beta2_decay": 0.5}, "beta2_decay should be <= 0"),
        (optim.muon, {"adjust_lr_fn": "other"}, "other is not supported"),
        (optim.muon, {"ns_steps": 100}, "less than 100"),
        (optim.muon, {"ns_coefficients": (1.0, 2.0)}, "three numbers"),
        (optim.schedule_free_sgd, {"momentum": 0.0}, "needs a momentum"),
        (optim.lbfgs, {"line_search_fn": "other"}, "only 'strong_wolfe' is supported"),
        (optim.lbfgs, {"max_iter": 0}, "at least one iteration"),
    ],
)
def test_invalid_options(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_states_that_do_not_fit():
    p = {"w": np.ones(3)}
    plain, largest = optim.adam(), optim.adam(amsgrad=True)
    with pytest.raises(TreeError, match="the state of adam is an AdamState"):
        plain.update(p, optim.sgd().init(p), p)
    with pytest.raises(TreeError, match="amsgrad"):
        plain.update(p, largest.init(p), p)
    with pytest.raises(TreeError, match="amsgrad"):
        largest.update(p, plain.init(p), p)
    with pytest.raises(TreeError, match=r"state\.exp_avg_sq\['w'\]: None"):
        plain.update(p, plain.init(p)._replace(exp_avg_sq={"w": None}), p)
    with pytest.raises(ShapeError, match=r"state\.exp_avg"):
        plain.update(p, plain.init(p)._replace(exp_avg={"w": np.ones(2)}), p)
    nadam = optim.nadam()
    with pytest.raises(ShapeError, match=r"state\.mu_product\['w'\]"):
        nadam.update(p, nadam.init(p)._replace(mu_product={"w": np.ones(2)}), p)
    factor, q = optim.adafactor(), {"w": np.ones((2, 3))}
    with pytest.raises(TreeError, match=r"state\.row_var\['w'\]: None"):
        factor.update(q, factor.init(q)._replace(row_var={"w": None}), q)
    with pytest.raises(ShapeError, match=r"state\.col_var\['w'\]"):
        factor.update(q, factor.init(q)._replace(col_var={"w": np.ones((3, 1))}), q)


def test_parameters_that_do_not_fit():
    with pytest.raises(ShapeError, match="Muon only supports 2D parameters"):
        optim.muon().init({"b": np.ones(3)})
    for opt in (optim.adamw(), optim.asgd(), optim.schedule_free_sgd(), optim.adafactor()):
        with pytest.raises(ArgumentError, match="reads the parameters"):
            opt.update(np.ones(2), opt.init(np.ones(2)))
    with pytest.raises(DTypeError, match=r"\['name'\]"):
        optim.adam().init({"name": "mlp"})


def test_params_may_be_left_out_where_they_are_not_read():
    g = {"w": np.ones(2)}
    for opt in (optim.adam(), optim.adamax(), optim.rmsprop(), optim.lion()):
        np.testing.assert_array_equal(opt.update(g, opt.init(g))[0]["w"], opt.update(g, opt.init(g), g)[0]["w"])
