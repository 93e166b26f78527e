"""`torch.compile`: compiled steps and models do what they do without, to what they reach as well."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
import fnad.torch as torch
from fnad.errors import ArgumentError, ConcretizationError, RecordingWarning
from fnad.torch import nn
from fnad.torch.nn import functional as F

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "NAdam": {},
    "RAdam": {},
    "Adagrad": {"lr": 0.1},
    "Adadelta": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "ASGD": {},
    "Adafactor": {},
}
SCHEDULES = {
    "StepLR": (3, 0.5),
    "CosineAnnealingLR": (10,),
    "OneCycleLR": (0.1, 40),
}


def everything(model, optimizer):
    """All numbers of a training."""
    arrays = {f"model.{k}": v.numpy().copy() for k, v in model.state_dict().items()}
    arrays.update({f"grad.{k}": p.grad.numpy().copy() for k, p in model.named_parameters() if p.grad is not None})
    for i, p in enumerate(model.parameters()):
        arrays.update({f"state.{i}.{k}": v.numpy().copy() for k, v in optimizer.state.get(p, {}).items()})
    return arrays


def agree(ours, wanted, dtype):
    tolerance = 1e-4 if dtype == torch.float32 else 1e-12  # twenty steps, which divide by roots of small gradients
    assert ours.keys() == wanted.keys()
    for name, a in ours.items():
        assert a.dtype == wanted[name].dtype, name
        np.testing.assert_allclose(a, wanted[name], rtol=tolerance, atol=tolerance, err_msg=name)


def train(compiled, name, schedule, dtype, sizes, accumulate=1, clip=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3), nn.LayerNorm(3)).to(dtype)
    model.register_buffer("seen", torch.zeros((), dtype=torch.int64))
    optimizer = getattr(torch.optim, name)(model.parameters(), **OPTIMIZERS[name])
    if schedule == "OneCycleLR" and not {"momentum", "betas"} & optimizer.param_groups[0].keys():
        schedule = "StepLR"
    scheduler = getattr(torch.optim.lr_scheduler, schedule)(optimizer, *SCHEDULES[schedule])

    def step(batches):
        optimizer.zero_grad()
        total = 0.0
        for x, y in batches:
            loss = F.cross_entropy(model(x), y) / accumulate
            loss.backward()
            total = total + loss.detach()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        model.seen.add_(1)
        optimizer.step()
        return total

    run = torch.compile(step) if compiled else step
    losses = []
    for n in sizes:
        batches = [(torch.randn(n, 4, dtype=dtype), torch.randint(0, 3, (n,))) for _ in range(accumulate)]
        losses.append(run(batches).item())
        scheduler.step()
    return {"losses": np.array(losses), **everything(model, optimizer)}


@settings(max_examples=6)
@given(
    st.sampled_from(sorted(OPTIMIZERS)),
    st.sampled_from(sorted(SCHEDULES)),
    st.sampled_from([torch.float32, torch.float64]),
    st.lists(st.sampled_from([5, 5, 5, 2]), min_size=20, max_size=20),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_twenty_steps(name, schedule, dtype, sizes, accumulate, clip):
    given = name, schedule, dtype, sizes, accumulate, clip
    agree(train(True, *given), train(False, *given), dtype)


def make(dtype=torch.float64):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2)).to(dtype)


def test_a_model(recwarn):
    """Its forward pass and its pullback are programs; the tape outside goes on as ever; buffers move."""
    model, other = make(), make()
    compiled = torch.compile(model)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other)]
    for k in range(6):
        x = torch.randn(4 + k % 2, 3, dtype=torch.float64)
        a, b = (x.clone().requires_grad_() for _ in range(2))
        for m, v, optimizer in ((compiled, a, optimizers[0]), (other, b, optimizers[1])):
            optimizer.zero_grad()
            (m(v * 2) ** 2).mean().backward()
            optimizer.step()
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-12, atol=1e-14)
    agree(everything(model, optimizers[0]), everything(other, optimizers[1]), torch.float64)
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    assert compiled.get_submodule("_orig_mod.0") is model[0]
    assert compiled(x).grad_fn is not None
    with torch.no_grad():
        assert compiled(x).grad_fn is None


def test_compile_as_a_method():
    model = make()
    x = torch.randn(4, 3, dtype=torch.float64)
    wanted = make()(x)
    model.compile()
    for _ in range(2):
        model.train()
        out = model(x)
        np.testing.assert_allclose(out.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)
    assert "program" in repr(model.forward)


def test_copies():
    model = torch.compile(make())
    x = torch.randn(4, 3, dtype=torch.float64)
    model(x)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    assert other(x).abs().max().item() == 0
    assert model(x).abs().max().item() > 0
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again(x).detach().numpy(), model(x).detach().numpy())


def test_modes_and_frozen_parameters():
    model, other = make(), make()
    compiled = torch.compile(model)
    x = torch.randn(4, 3, dtype=torch.float64)
    for change in (lambda m: None, lambda m: m.eval(), lambda m: m[0].requires_grad_(False), lambda m: m.train()):
        change(model)
        change(other)
        for m in (compiled, other):
            m.zero_grad()
            m(x).sum().backward()
        for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None), name
            if p.grad is not None:
                np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(model[1].running_var.numpy(), other[1].running_var.numpy(), rtol=1e-12)


def test_a_step_with_parameters_that_are_frozen_now_and_then():
    found = []
    for compiling in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1)).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)

        def step(x):
            optimizer.zero_grad()  # noqa: B023
            (model(x) ** 2).mean().backward()  # noqa: B023
            optimizer.step()  # noqa: B023

        run = torch.compile(step) if compiling else step
        seen = []
        for k in range(8):
            model[0].requires_grad_(k % 4 < 2)
            run(torch.randn(5, 3, dtype=torch.float64))
            seen.append([None if p.grad is None else p.grad.sum().item() for p in model.parameters()])
            seen.append([p.sum().item() for p in model.parameters()])
        found.append(seen)
    for a, b in zip(*found, strict=True):
        assert [x is None for x in a] == [x is None for x in b]
        np.testing.assert_allclose([x for x in a if x is not None], [x for x in b if x is not None], rtol=1e-12)


def test_derivatives_inside():
    w = nn.Parameter(torch.tensor([1.0, 2.0]))

    def step(x):
        y = x.clone().requires_grad_()
        (g,) = torch.autograd.grad((w * y**3).sum(), y, create_graph=True)
        (g**2).sum().backward()
        (h,) = torch.autograd.grad((w * x).sum(), w)
        return g, h

    wanted = step(torch.ones(2))[1].tolist(), w.grad.tolist()
    w.grad = None
    assert (torch.compile(step)(torch.ones(2))[1].tolist(), w.grad.tolist()) == wanted == ([1, 1], [18, 36])


class Momentum(torch.optim.Optimizer):
    """As users write them: state is made when it is first needed."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "m" not in state:
                    state["m"] = torch.zeros_like(p)
                state["m"].mul_(0.9).add_(p.grad)
                p.add_(state["m"], alpha=-group["lr"])


def test_an_optimizer_of_ones_own():
    found = []
    for compiling in (False, True):
        w = nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = Momentum([w], 0.1)

        def step():
            optimizer.zero_grad()  # noqa: B023
            (w**2).sum().backward()  # noqa: B023
            optimizer.step()  # noqa: B023

        run = torch.compile(step) if compiling else step
        for k in range(5):
            optimizer.param_groups[0]["lr"] = 0.1 / (k // 3 + 1)
            run()
        found.append((w.tolist(), optimizer.state[w]["m"].tolist()))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_second_derivatives_through_a_model():
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    compiled = torch.compile(model)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    penalties = []
    for m in (compiled, model):
        model.zero_grad()
        (g,) = torch.autograd.grad(m(x).sum(), x, create_graph=True)
        (g**2).sum().backward()
        penalties.append([p.grad.numpy() for p in model.parameters() if p.grad is not None])
    for a, b in zip(*penalties, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_dropout_draws_anew_and_repeats_with_the_seed():
    drop = torch.compile(lambda x: F.dropout(x, 0.5))
    x = torch.ones(1000)

    def draws():
        torch.manual_seed(3)
        return [drop(x).numpy() for _ in range(3)]

    first, again = draws(), draws()
    assert not np.array_equal(first[0], first[1])
    assert 400 < np.count_nonzero(first[0]) < 600
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_random_tensors_inside():
    noisy = torch.compile(lambda x: x + torch.randn(3))
    assert not torch.equal(noisy(torch.zeros(3)), noisy(torch.zeros(3)))


def test_a_learning_rate_is_no_part_of_the_program():
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=1.0)

    @torch.compile
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    for lr in (1.0, 0.5, 0.25, 0.125):
        optimizer.param_groups[0]["lr"] = lr
        before = w.detach().clone()
        step()
        assert (before - w.detach()).tolist() == [lr, lr]
    assert "2 programs" in repr(step)  # without gradients before the first call, with those of the last one after it


def test_gradients_add_up_and_graphs_outside():
    w = nn.Parameter(torch.ones(2))

    @torch.compile
    def backward(x):
        (w * x).sum().backward()

    for k in range(3):
        backward(torch.full((2,), 2.0))
        assert w.grad.tolist() == [2.0 * (k + 1)] * 2
    held = w.grad
    (w * w).sum().backward()
    assert w.grad is held
    assert held.tolist() == [8, 8]


def test_parameters_stay_where_they_are():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    arrays = [p.detach().numpy() for p in model.parameters()]

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    versions = [p._version for p in model.parameters()]
    for _ in range(3):
        before = [a.copy() for a in arrays]
        step(torch.ones(4, 3))
        for p, a, b in zip(model.parameters(), arrays, before, strict=True):
            assert p.detach().numpy() is a
            assert not np.array_equal(a, b)
    assert all(p._version > v for p, v in zip(model.parameters(), versions, strict=True))


def test_a_change_by_a_compiled_step_is_noticed_by_graphs_outside():
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=0.1)

    @torch.compile
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    loss = (w * w).sum()
    step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_changes_in_place_inside():
    def f(x):
        y = x * 2
        y.mul_(3)
        y[0] = 1.0
        y += x
        return (y * y).sum()

    compiled = torch.compile(f)
    grads = []
    for g in (f, compiled, compiled):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        out = g(x)
        out.backward()
        grads.append((out.item(), x.grad.tolist()))
    assert grads[0] == grads[1] == grads[2]


def test_results_and_arguments_of_all_kinds():
    scale = torch.tensor(3.0)

    @torch.compile
    def f(batch, *, flag, offset=None):
        y = batch["x"] * scale
        return {"y": y if flag else -y, "same": batch["x"], "text": "t", "list": [y + (1 if offset is None else offset), None]}

    x = torch.ones(2)
    out = f({"x": x}, flag=True)
    assert (out["y"].tolist(), out["same"] is x, out["text"], out["list"][0].tolist()) == ([3, 3], True, "t", [4, 4])
    assert f({"x": x}, flag=False)["y"].tolist() == [-3, -3]
    assert f({"x": x}, flag=True, offset=torch.tensor(2.0))["list"][0].tolist() == [5, 5]
    with torch.no_grad():
        scale.fill_(5.0)
    assert f({"x": x}, flag=True)["y"].tolist() == [5, 5]
    scale = torch.tensor(7.0)
    assert f({"x": x}, flag=True)["y"].tolist() == [7, 7]


def test_python_values_are_seen_when_they_change():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        def forward(self, x):
            return x * self.factor

    model = Scaled()
    compiled, x = torch.compile(model), torch.ones(1)
    for factor in (2.0, 3.0, 2.0):
        model.factor = factor
        assert compiled(x).tolist() == [factor]


class Looks(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum().item() > 0 else x


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (Looks(), ConcretizationError, "item"),
        (lambda x: x if x.sum() > 0 else -x, ConcretizationError, "bool"),
        (lambda x: x * float(x.sum()), ConcretizationError, "return the tensor"),
        (lambda x: x[x > 0], ConcretizationError, "torch.compile"),
    ],
)
def test_what_looks_at_values_is_refused(function, error, text):
    x = torch.ones(3)
    with pytest.raises(error, match=text) as caught:
        torch.compile(function)(x)
    assert __file__ in str(caught.value)
    assert x.tolist() == [1, 1, 1]


def test_python_state_that_changes_is_refused():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2

    with pytest.raises(ArgumentError, match="calls"):
        torch.compile(Counts())(torch.ones(2))
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises((ArgumentError, ConcretizationError), match="scheduler"):
        torch.compile(lambda x: (x, scheduler.step())[0])(torch.ones(2))


def test_what_is_made_when_it_is_first_needed():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.mask = None

        def forward(self, x):
            if self.mask is None:
                self.mask = torch.tensor([1.0, 0.0])
            return x * self.mask

    compiled = torch.compile(Lazy())
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [1, 0]


def test_errors_leave_tensors_as_they_were():
    model = make()
    optimizer = torch.optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        raise KeyError("mine")

    model(torch.ones(2, 3, dtype=torch.float64)).sum().backward()
    before = everything(model, optimizer)
    with pytest.raises(KeyError, match="mine"):
        torch.compile(step)(torch.ones(2, 3, dtype=torch.float64))
    after = {k: v for k, v in everything(model, optimizer).items() if k in before}
    agree(after, before, torch.float64)
    step_again = torch.compile(lambda x: model(x))
    assert step_again(torch.ones(2, 3, dtype=torch.float64)).shape == (2, 2)


def test_shared_memory_is_refused():
    whole = torch.zeros(4)
    part = whole[:2]

    @torch.compile
    def f(x):
        part.add_(x)
        return whole * 1

    with pytest.raises(ArgumentError, match="shares its memory"):
        f(torch.ones(2))


def test_values_that_never_stay_end_in_a_warning():
    box = {"k": 0.0}
    f = torch.compile(lambda x: x * box["k"])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for k in range(40):
            box["k"] = float(k)
            assert f(torch.ones(1)).item() == k
    assert [w.category for w in seen] == [RecordingWarning]


def test_inside_of_transforms_and_of_each_other():
    inner = torch.compile(lambda x: x * 2)
    outer = torch.compile(lambda x: inner(x) + 1)
    assert outer(torch.ones(2)).tolist() == [3, 3]
    assert torch.func.grad(lambda x: inner(x * x).sum())(torch.tensor([1.0, 2.0])).tolist() == [4, 8]
    with fnad.disable_jit():
        assert torch.compile(lambda x: x if x.sum().item() > 0 else -x)(torch.ones(1)).item() == 1


def test_options():
    assert torch.compile(disable=True)(len) is len
    f = torch.compile(fullgraph=True, mode="max-autotune")(lambda x: x + 1)
    assert f(torch.ones(1)).item() == 2
    with pytest.raises(ArgumentError, match="a function or a module"):
        torch.compile(3)
