"""Backward passes that run as programs give what the walk gives, whatever happens around them."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad.torch as torch
from fnad.testing.programs import random_program
from fnad.torch import _compiled, nn
from fnad.torch._call import run


class Passes:
    """Counts programs and their runs."""

    def __init__(self, cache):
        self.cache = cache

    @property
    def programs(self):
        return [p for p in self.cache._known.values() if isinstance(p, _compiled.Program)]

    @property
    def uses(self):
        return sum(p.uses for p in self.programs)


@pytest.fixture
def passes(monkeypatch):
    cache = _compiled._Cache()
    monkeypatch.setattr(_compiled, "_cache", cache)
    return Passes(cache)


def walked(function):
    """What a function returns if no backward pass runs as a program."""
    with pytest.MonkeyPatch.context() as m:
        m.setattr(_compiled._Cache, "find", lambda self, outline: None)
        return function()


def compiled(function):
    """What it returns if all run as programs that can."""
    cache = _compiled._Cache()
    with pytest.MonkeyPatch.context() as m:
        m.setattr(_compiled, "_cache", cache)
        m.setattr(cache, "_often", lambda: 1)
        return function(), Passes(cache)


def agree(ours, wanted, dtype):
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    for a, b in zip(ours, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            scale = max(1.0, float(np.max(np.abs(b), initial=0)))
            np.testing.assert_allclose(a, b, rtol=20 * tolerance, atol=20 * tolerance * scale)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 9), st.sampled_from([np.float32, np.float64]))
def test_random_programs(seed, steps, dtype):
    program = random_program(seed, steps, smooth=False)
    arrays = program.draw_args(dtype, seed)

    def gradients():
        xs = [torch.tensor(a, requires_grad=True) for a in arrays]
        loss = run(program.scalar, tuple(xs), {})
        if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
            return []
        loss.backward()
        return [None if x.grad is None else x.grad.numpy() for x in xs]

    wanted = walked(gradients)
    ours, passes = compiled(gradients)
    agree(ours, wanted, dtype)
    assert bool(passes.programs) == bool(wanted)


LAYERS = {
    "linear": (lambda: nn.Linear(6, 4), (5, 6)),
    "convolution": (lambda: nn.Conv2d(2, 3, 3, padding=1), (2, 2, 5, 5)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4), (2, 4, 5, 5)),
    "max pool": (lambda: nn.MaxPool2d(2), (2, 2, 6, 6)),
    "batch norm": (lambda: nn.BatchNorm1d(6), (5, 6)),
    "layer norm": (lambda: nn.LayerNorm(6), (5, 6)),
    "gelu": (lambda: nn.GELU(), (5, 6)),
    "transformer": (lambda: nn.MultiheadAttention(6, 2, batch_first=True), (2, 3, 6)),
    "lstm": (lambda: nn.LSTM(6, 3, batch_first=True), (2, 3, 6)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, dtype):
    make, shape = LAYERS[name]
    torch.manual_seed(0)
    layer, x = make().to(dtype), torch.randn(*shape, dtype=dtype)
    parameters = list(layer.parameters())

    def gradients():
        layer.zero_grad()
        y = x.clone().requires_grad_()
        out = layer(y, y, y)[0] if name == "transformer" else layer(y)
        ((out[0] if isinstance(out, tuple) else out) ** 2).sum().backward()
        return [p.grad.numpy() for p in (*parameters, y)]

    ours, passes = compiled(gradients)
    agree(ours, walked(gradients), x.numpy().dtype)
    assert passes.uses == 1


def test_the_second_pass_is_a_program_for_each_size(passes):
    w = torch.ones(3, requires_grad=True)
    counts = []
    for n in (4, 4, 4, 2, 4, 2, 2):
        (w * torch.ones(n, 3)).sum().backward()
        counts.append((len(passes.programs), passes.uses))
    assert counts == [(0, 0), (1, 1), (1, 2), (1, 2), (1, 3), (2, 4), (2, 5)]
    np.testing.assert_array_equal(w.grad.numpy(), np.full(3, 22.0))


def test_what_makes_another_program(passes):
    """Constants of the key: which operand is which, exponents, who is differentiated. Python floats are none."""
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 5.0], requires_grad=True)

    def gradient(f):
        x.grad = y.grad = None
        f().sum().backward()
        return [None if t.grad is None else t.grad.tolist() for t in (x, y)]

    for scale in (1.0, 2.0, 0.5, 0.0):
        assert gradient(lambda s=scale: x * s) == [[scale, scale], None]
    assert len(passes.programs) == 1
    for _ in range(2):
        assert gradient(lambda: x * y) == [[3, 5], [1, 2]]
        assert gradient(lambda: x * x) == [[2, 4], None]
        assert gradient(lambda: x * x.detach()) == [[1, 2], None]
        assert gradient(lambda: y * x.detach()) == [None, [1, 2]]
        assert gradient(lambda: x**2) == [[2, 4], None]
        assert gradient(lambda: x**3) == [[3, 12], None]
    assert len(passes.programs) == 6  # y * x.detach() looks like x * x.detach()


def test_accumulation_and_retained_graphs(passes):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        loss = (x * x).sum()
        loss.backward(retain_graph=True)
        first = x.grad
        loss.backward()
        assert x.grad is first
        assert first.tolist() == [4, 8]
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    assert passes.uses == 5


def test_changes_in_place_are_noticed(passes):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        y = x.exp()
        loss = (y * y).sum()
        loss.backward()
    assert passes.uses == 2
    y = x.exp()
    loss = (y * y).sum()
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_hooks(passes):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    for _ in range(3):
        x.grad = None
        (x * 3).sum().backward()
        assert x.grad.tolist() == [6, 6]
    assert seen == [[3, 3], [6, 6]] * 3
    assert passes.uses == 2
    for _ in range(3):  # a hook inside, and retain_grad: walked
        x.grad = None
        y = x * 3
        y.register_hook(lambda g: g * 10)
        z = y * 2
        z.retain_grad()
        z.sum().backward()
        assert (x.grad.tolist(), z.grad.tolist()) == ([120, 120], [1, 1])
    assert passes.uses == 2


def test_a_gradient_that_a_hook_keeps_is_not_the_parameters(passes):
    x, kept = torch.tensor([1.0, 2.0], requires_grad=True), []
    x.register_hook(lambda g: kept.append(g))
    for _ in range(3):
        x.grad = None
        (x * 3).sum().backward()
        x.grad.add_(1)
    assert [g.tolist() for g in kept] == [[3, 3]] * 3


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


def test_functions_of_ones_own_and_second_derivatives_are_walked(passes):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        Cube.apply(x).sum().backward()
        assert x.grad.tolist() == [3, 12]
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        assert h.tolist() == [6, 12]
    assert passes.uses <= 2  # the last pass alone may look like one before


def test_gradients_by_what_is_inside(passes):
    x, unused = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(3, requires_grad=True)
    for _ in range(3):
        y = x * x
        loss = (y * 3).sum()
        gx, gy, nothing = torch.autograd.grad(loss, (x, y, unused), allow_unused=True)
        assert (gx.tolist(), gy.tolist(), nothing) == ([6, 12], [3, 3], None)
        assert x.grad is None
    assert passes.uses == 2


def test_several_roots_with_weights(passes):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for k in range(3):
        x.grad = None
        torch.autograd.backward([x * 2, x * x], [torch.tensor([1.0, k]), torch.ones(2)])
        assert x.grad.tolist() == [4, 4 + 2 * k]
    assert passes.uses == 2


def test_layouts(passes):
    """Operands that are not contiguous, and results that lie on no other's memory."""
    a = np.arange(6.0).reshape(2, 3)
    for _ in range(3):
        w, b = torch.tensor(a, requires_grad=True), torch.ones(3, 1, requires_grad=True, dtype=torch.float64)
        (w.t() * torch.from_numpy(a[::-1]).t() * b.expand(3, 2)).sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), a[::-1])
        np.testing.assert_array_equal(b.grad.numpy()[:, 0], (a * a[::-1]).sum(0))
        assert w.grad.is_contiguous()
        assert w.grad.numpy().flags.owndata
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    for _ in range(3):
        x.grad = y.grad = None
        (x + y).sum().backward()
        x.grad.add_(1)
        assert y.grad.tolist() == [1, 1]


@pytest.mark.parametrize("shape", [(0,), (1,), (), (0, 3)])
def test_small_sizes(passes, shape):
    for _ in range(3):
        x = torch.full(shape, 2.0, requires_grad=True)
        (x * x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.full(shape, 4.0, np.float32))
    assert passes.uses == 2


def test_threads(passes):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    found = {}

    def train(k):
        x, total = torch.full((5, 3), float(k), requires_grad=True), []
        for _ in range(20):
            (g,) = torch.autograd.grad(model(x).sum(), x)
            total.append(g.numpy())
        found[k] = total

    threads = [threading.Thread(target=train, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    for total in found.values():
        agree(total, [total[0]] * 20, np.float32)


def test_the_graph_is_let_go(passes):
    x = torch.ones(1000, requires_grad=True)
    for _ in range(3):
        y = x.exp()
        held = weakref.ref(y._data)
        loss = (y * y).sum()
        del y
        loss.backward()
        gc.collect()
        assert held() is None


def test_the_cache_is_bounded(passes, monkeypatch):
    monkeypatch.setattr(_compiled, "_MOST", 4)
    w = torch.ones(1, requires_grad=True)
    for n in range(1, 9):
        (w * torch.ones(n)).sum().backward()
    assert len(passes.cache._known) == 4


def test_sizes_that_do_not_come_again_cost_no_programs(passes):
    """After many programs that were hardly used, more is asked of a tape than to have come once before."""
    w = torch.ones(1, requires_grad=True)
    for n in range(1, 20):
        for _ in range(2):
            (w * torch.ones(n)).sum().backward()
    assert len(passes.programs) == 8


def test_dead_operations_of_inplace_indexing(passes):
    for _ in range(3):
        x = torch.ones(4, requires_grad=True)
        y = x * 2
        y[1] = 0.0
        y[2] *= 3
        (y * y).sum().backward()
        assert x.grad.tolist() == [8, 0, 72, 8]
