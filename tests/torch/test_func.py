"""Between modules and pure functions; `torch.func`; changes in place inside of transforms."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
import fnad.torch as torch
from fnad.errors import InPlaceError
from fnad.torch import nn


def test_pure_and_back():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    x, y = torch.randn(6, 3, dtype=torch.float64), torch.randint(0, 2, (6,))
    apply, params = torch.pure(model)

    def loss_fn(p):
        return fnad.nn.functional.cross_entropy(apply(p, x.numpy()), y.numpy())

    before = {n: b.tolist() for n, b in model.named_buffers()}
    eager, compiled = fnad.grad(loss_fn)(params), fnad.jit(fnad.grad(loss_fn))(params)
    assert before == {n: b.tolist() for n, b in model.named_buffers()}
    out, buffers = apply(params, x.numpy(), buffers={n: b.numpy() for n, b in model.named_buffers()})
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    np.testing.assert_allclose(out, model.train()(x).detach().numpy(), rtol=1e-12)
    assert buffers["2.num_batches_tracked"] == 1
    for name, p in model.named_parameters():
        np.testing.assert_allclose(eager[name], p.grad.numpy(), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(compiled[name], p.grad.numpy(), rtol=1e-11, atol=1e-13)
    assert all(isinstance(p, nn.Parameter) and isinstance(p._data, np.ndarray) for p in model.parameters())
    model.load_state_dict({**model.state_dict(), **{n: p + 1 for n, p in params.items()}})
    assert model[0].weight.tolist() == (params["0.weight"] + 1).tolist()


def test_functional_call_goes_on_the_tape_and_keeps_ties():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2, bias=False)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    model = Tied()
    w = torch.eye(2).mul(2.0).requires_grad_(True)
    out = torch.func.functional_call(model, {"a.weight": w}, torch.ones(1, 2))
    assert out.tolist() == [[4.0, 4.0]]
    out.sum().backward()
    assert w.grad.sum().item() == pytest.approx(16.0)
    assert model.a.weight.grad is None
    with pytest.raises(AttributeError):
        torch.func.functional_call(model, {"a.other": w}, torch.ones(1, 2))


def test_transforms_of_functions_of_tensors():
    f = torch.func
    x = torch.tensor([1.0, 2.0])
    assert f.grad(lambda x: (x**3).sum())(x).tolist() == [3, 12]
    g, value = f.grad_and_value(lambda p: (p["w"] * x).sum())({"w": x})
    assert (g["w"].tolist(), value.item()) == ([1, 2], 5)
    assert f.jacrev(lambda x: x * x)(x).tolist() == f.jacfwd(lambda x: x * x)(x).tolist() == [[2, 0], [0, 4]]
    assert f.hessian(lambda x: (x**3).sum())(x).tolist() == [[6, 0], [0, 12]]
    assert f.vmap(lambda a, b: a @ b, in_dims=(0, None))(torch.ones(3, 2), x).tolist() == [3, 3, 3]
    out, pull = f.vjp(lambda x: x.sin(), x)
    np.testing.assert_allclose(pull(torch.ones(2))[0].numpy(), np.cos(x.numpy()))
    assert f.jvp(lambda x: x * x, (x,), (torch.ones(2),))[1].tolist() == [2, 4]
    assert isinstance(out, torch.Tensor)


def test_changes_in_place_inside_of_a_transform():
    def counted(x):
        y = x * 1
        y += 2
        y.mul_(x)
        y[0] = x[1]
        return y.sum()

    assert torch.func.grad(counted)(torch.tensor([3.0, 4.0])).tolist() == [0.0, 11.0]

    def through_a_view(x):
        y = x * 1
        y[0].add_(1)
        return y.sum()

    def with_a_view(x):
        y = x * 1
        v = y.view(2, 1)
        y.add_(1)
        return v.sum()

    for f in (through_a_view, with_a_view):
        with pytest.raises(InPlaceError):
            torch.func.grad(f)(torch.tensor([3.0, 4.0]))


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.drop, self.gru = nn.Linear(3, 4), nn.Dropout(0.5), nn.GRU(4, 4, 2, dropout=0.5)

    def forward(self, x):
        h = self.drop(self.fc(x))
        h = h + 0.1 * torch.randn_like(h) + torch.rand(4) * torch.randint(0, 2, (4,)) + torch.bernoulli(torch.full((4,), 0.5))
        h = h + torch.randperm(4) + torch.normal(0.0, 1.0, (4,)) + torch.empty(4).exponential_() + torch.empty_like(h).normal_()
        return self.gru(h)[0].sum()


def test_draws_of_a_pure_module_come_from_its_key():
    apply, params = torch.pure(Noisy())
    x, step = np.ones((5, 3), np.float32), fnad.jit(lambda p, x, key: apply(p, x, key=key))
    one, two = fnad.random.key(1), fnad.random.key(2)
    values = [f(params, x, k) for f in (lambda p, x, k: apply(p, x, key=k), step) for k in (one, two)]
    assert values[0] != values[1]
    np.testing.assert_allclose(values[:2], values[2:], rtol=1e-5)
    assert values[0] == apply(params, x, key=one)
    grads = fnad.jit(fnad.grad(lambda p, key: apply(p, x, key=key)))(params, one)
    np.testing.assert_allclose(grads["fc.weight"], fnad.grad(lambda p: apply(p, x, key=one))(params)["fc.weight"], rtol=1e-4, atol=1e-6)
    eager = fnad.vmap(lambda key: apply(params, x, key=key))(np.stack([one, two]))
    np.testing.assert_allclose(eager, values[:2], rtol=1e-5)


def test_draws_that_a_compiled_function_would_make_once_are_refused():
    for module in (nn.Sequential(nn.Linear(3, 2), nn.Dropout()), Noisy()):
        apply, params = torch.pure(module)
        x = np.ones((5, 3), np.float32)
        with pytest.raises(fnad.errors.ArgumentError, match="come from a key"):
            fnad.jit(lambda p, apply=apply, x=x: np.sum(apply(p, x)))(params)
        fnad.grad(lambda p, apply=apply, x=x: np.sum(apply(p, x)))(params)  # values are known: the generator draws
        module.eval()
    with pytest.raises(fnad.errors.ArgumentError, match="draws"):
        torch.func.vmap(lambda x: nn.functional.dropout(x))(torch.ones(3, 2))
