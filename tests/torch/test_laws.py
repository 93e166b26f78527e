"""Laws: broadcasting, accumulation, equality with the pure face, memory that is not shared."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fnad
import fnad.torch as torch
from fnad.errors import UnknownNameError
from fnad.torch import nn

OPERATIONS = {
    "add": (torch.add, np.add),
    "mul": (torch.mul, np.multiply),
    "sub": (torch.sub, np.subtract),
    "maximum": (torch.maximum, np.maximum),
    "atan2": (torch.atan2, np.arctan2),
}
shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3)


@given(shapes, st.sampled_from(sorted(OPERATIONS)), st.sampled_from([np.float32, np.float64]), st.integers(0, 99))
def test_broadcasting_as_the_pure_face(shapes, name, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.uniform(0.5, 2, s).astype(dtype) for s in shapes.input_shapes)
    ours, pure = OPERATIONS[name]
    x, y = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    out = ours(x, y)
    out.sum().backward()
    wanted = fnad.grad(lambda a, b: np.sum(pure(a, b)), argnums=(0, 1))(a, b)
    assert out.shape == shapes.result_shape
    for t, g in zip((x, y), wanted, strict=True):
        assert t.grad.dtype == t.dtype
        np.testing.assert_array_equal(t.grad.numpy(), g)
        assert t.grad.shape == t.shape


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
def test_gradients_of_parts_add_up_to_that_of_the_whole(rows, part, seed):
    rng = np.random.default_rng(seed)
    x, y = torch.tensor(rng.normal(size=(rows, 3))), torch.tensor(rng.normal(size=(rows, 2)))
    model = nn.Linear(3, 2).double()
    nn.functional.mse_loss(model(x), y).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for xs, ys in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=part):
        (nn.functional.mse_loss(model(xs), ys) * len(xs) / rows).backward()
    for p, w in zip(model.parameters(), whole, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), w.numpy(), rtol=1e-12, atol=1e-12)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4), elements=st.floats(-5, 5)), st.data())
def test_basic_indexing_is_a_view_and_its_gradient_lies_there(a, data):
    index = data.draw(hnp.basic_indices(a.shape, allow_newaxis=True).filter(lambda i: _forward(i)))
    x = torch.from_numpy(a.copy())
    view = x[index]
    np.testing.assert_array_equal(view.numpy(), a[index])
    view.fill_(7.0)
    expected = a.copy()
    expected[index] = 7.0
    np.testing.assert_array_equal(x.numpy(), expected)
    leaf = torch.tensor(a, requires_grad=True)
    leaf[index].sum().backward()
    ones = np.zeros_like(a)
    ones[index] = 1
    np.testing.assert_array_equal(leaf.grad.numpy(), ones)


def _forward(index):
    items = index if isinstance(index, tuple) else (index,)
    return all(not isinstance(i, slice) or i.step is None or i.step > 0 for i in items)


def test_memory_is_shared_where_pytorch_shares_it_and_nowhere_else():
    a = np.zeros(3)
    x = torch.from_numpy(a)
    a[0] = 1
    assert x.tolist() == [1, 0, 0]
    assert x.numpy() is a
    assert np.shares_memory(np.from_dlpack(x), a)
    assert not np.shares_memory(torch.tensor(a).numpy(), a)
    w = torch.tensor([1.0, 1.0], requires_grad=True)
    b = torch.tensor([1.0, 1.0], requires_grad=True)
    g = torch.ones(2)
    (w + b).backward(g)
    w.grad[0] = 9.0
    assert b.grad.tolist() == [1, 1]
    assert g.tolist() == [1, 1]
    y = torch.nn.functional.dropout(x, 0.5, training=False)
    assert y is x


def test_a_graph_goes_with_what_came_out_of_it():
    x = torch.ones(1000, requires_grad=True)
    middle = x * 2
    array = weakref.ref(middle._data)
    out = (middle + 1).sum()
    del middle
    gc.collect()
    assert array() is None, "an addition keeps its operand"
    y = (x * 3).exp()
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    gc.collect()
    assert node() is None
    out.backward()
    assert x.grad[0].item() == pytest.approx(2 + 3 * np.exp(3), rel=1e-5)


def test_a_long_chain_needs_no_recursion():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1


def test_an_error_inside_leaves_nothing_behind():
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert torch.is_grad_enabled()
    x.sum().backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torch.sparse_coo_tensor,
        lambda: nn.functional.fractional_max_pool2d,
        lambda: nn.FractionalMaxPool3d,
        lambda: nn.utils.fuse_conv_bn_eval,
        lambda: nn.Fold3d,
        lambda: torch.optim.Lamb,
        lambda: torch.ones(1).unfold_copy,
    ],
)
def test_what_is_absent_says_so_by_name(ask):
    with pytest.raises(
        UnknownNameError,
        match=r"(sparse_coo_tensor|fractional_max_pool2d|FractionalMaxPool3d|fuse_conv_bn_eval|Fold3d|Lamb|unfold_copy) does not exist",
    ):
        ask()


def test_random_streams_repeat():
    torch.manual_seed(3)
    first = [torch.rand(2), torch.randn(2), torch.randint(0, 9, (3,)), torch.randperm(5), nn.Linear(2, 2).weight.detach()]
    state = torch.get_rng_state()
    more = torch.randn(3)
    torch.manual_seed(3)
    again = [torch.rand(2), torch.randn(2), torch.randint(0, 9, (3,)), torch.randperm(5), nn.Linear(2, 2).weight.detach()]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    torch.set_rng_state(state)
    assert torch.equal(more, torch.randn(3))


def test_dropout_keeps_the_mean_and_stops_in_evaluation():
    torch.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = torch.ones(100_000, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert set(y.unique().tolist()) == {0.0, np.float32(1 / 0.75).item()}
    assert abs(y.mean().item() - 1) < 0.01
    assert torch.equal(x.grad, y.detach())
    assert torch.equal(layer.eval()(x), x)


LAYERS = {
    "linear": lambda: nn.Linear(4, 4),
    "no bias": lambda: nn.Linear(4, 4, bias=False),
    "batch norm": lambda: nn.BatchNorm1d(4),
    "no statistics": lambda: nn.BatchNorm1d(4, track_running_stats=False),
    "layer norm": lambda: nn.LayerNorm(4),
    "activation": lambda: nn.PReLU(),
    "nested": lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.BatchNorm1d(4))),
}


@given(
    st.lists(st.sampled_from(sorted(LAYERS)), min_size=1, max_size=4),
    st.sampled_from([torch.float32, torch.float64]),
    st.integers(0, 99),
    st.booleans(),
)
def test_a_state_dict_makes_another_module_the_same(tmp_path_factory, names, dtype, seed, by_file):
    """Parameters and buffers, as a dict or by a file; the loaded module owns its memory."""

    def make(seed):
        torch.manual_seed(seed)
        return nn.Sequential(*(LAYERS[name]() for name in names)).to(dtype)

    one, other, x = make(seed), make(seed + 1), torch.randn(5, 4, dtype=dtype)
    one(x)  # running statistics move
    state = one.state_dict()
    if by_file:
        path = tmp_path_factory.mktemp("state") / "state.npz"
        torch.save(state, path)
        state = torch.load(path)
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert list(other.state_dict()) == list(state)
    for mode in ("eval", "train"):
        getattr(one, mode)()
        getattr(other, mode)()
        assert torch.equal(one(x), other(x))
    before = {k: v.clone() for k, v in one.state_dict().items()}
    for p in other.parameters():
        p.data.add_(1)
    assert all(torch.equal(v, before[k]) for k, v in one.state_dict().items())


def test_what_needs_bfloat16_or_a_gpu_says_so():
    with pytest.raises(fnad.errors.UnsupportedError, match="bfloat16"):
        torch.autocast("cpu")
    with pytest.warns(UserWarning, match="CUDA is not available"), torch.autocast("cuda"):
        pass
    for ask in (lambda: torch.bfloat16, lambda: torch.cuda.current_device, lambda: torch.autograd.detect_anomaly, lambda: torch.fft.stft):
        with pytest.raises((UnknownNameError, fnad.errors.UnsupportedError), match="does not exist"):
            ask()
    with pytest.raises(UnknownNameError, match=r"Module\.register_backward_hook does not exist"):
        nn.Linear(1, 1).register_backward_hook(print)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(fnad.errors.UnsupportedError, match=r"x = x\.unsqueeze"):
        (x * 1).unsqueeze_(0)
    with pytest.raises(fnad.errors.UnsupportedError, match="batches of gradients"):
        torch.autograd.grad(x.sum(), x, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1).expand(3).add_(1)
    fixed = np.ones(2)
    fixed.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        torch.from_numpy(fixed).add_(1)


def test_parameters_on_memory_of_all_kinds():
    """Views, transposed arrays and parts of one array are updated where they lie."""
    whole, updates = np.ones((4, 3)), []
    params = [torch.from_numpy(whole[:2]), torch.from_numpy(whole[2:]), torch.from_numpy(np.ones((2, 3)).T), torch.ones(3).double()]
    optimizer = torch.optim.Adam([p.requires_grad_() for p in params], lr=0.1)
    for _ in range(4):
        for p in params:
            p.grad = torch.full(tuple(p.shape), 2.0, dtype=torch.float64)
        arrays = [p.detach().numpy() for p in params]
        optimizer.step()
        assert all(p.detach().numpy() is a for p, a in zip(params, arrays, strict=True))
        updates.append({round(float(x), 12) for a in (whole, *arrays) for x in a.ravel()})
    assert [len(u) for u in updates] == [1] * 4
    assert len(set.union(*updates)) == 4
