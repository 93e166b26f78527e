"""Small programs of PyTorch: functions of the module `torch` that return nested lists. `record.py` keeps what PyTorch 2.13 answers.

Each runs in float64, so that numbers agree to rounding.
"""

from __future__ import annotations

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def plain(x):
    """Tensors, tuples and dicts as nested lists."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [plain(v) for v in x]
    return x.detach().tolist() if hasattr(x, "detach") else x


def _data(T, *shape, seed=0):
    n = 1
    for s in shape:
        n *= s
    return (T.arange(n, dtype=T.float64) * 0.7 + seed).sin().reshape(*shape)


def _leaf(T, *shape, seed=0):
    return _data(T, *shape, seed=seed).detach().clone().requires_grad_(True)


def _grads(T, f, *leaves):
    out = f(*leaves)
    outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.requires_grad]
    T.autograd.backward([(o * (_data(T, *o.shape, seed=3) if o.shape else 1.3)).sum() for o in outs])
    return [out, [x.grad for x in leaves]]


@program
def unary(T):
    names = ["exp", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "atan", "asinh", "sigmoid", "abs", "square", "neg", "relu"]
    out = {n: _grads(T, getattr(T, n), _leaf(T, 5)) for n in names}
    positive = ["log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal"]
    out.update({n: _grads(T, lambda x, n=n: getattr(T, n)(x.abs() + 0.1), _leaf(T, 5)) for n in positive})
    return out


@program
def binary(T):
    def two(f):
        return _grads(T, f, _leaf(T, 2, 3), _leaf(T, 3, seed=5))

    return [
        two(lambda a, b: a + b),
        two(lambda a, b: a - b),
        two(lambda a, b: a * b),
        two(lambda a, b: a / b),
        two(lambda a, b: (a.abs() + 0.2) ** (b + 1)),
        two(lambda a, b: 2**a + b**2),
        two(lambda a, b: 1 / (a + 3) - 2 * b),
        two(lambda a, b: T.maximum(a, b)),
        two(lambda a, b: T.minimum(a, b)),
        two(lambda a, b: T.atan2(a, b)),
        two(lambda a, b: T.add(a, b, alpha=2)),
        two(lambda a, b: T.where(a > 0, a, b)),
        two(lambda a, b: T.lerp(a, b.expand(2, 3), 0.3)),
        two(lambda a, b: T.hypot(a, b)),
    ]


@program
def special_points(T):
    def at(f, *values):
        x = T.tensor(values, dtype=T.float64, requires_grad=True)
        return _grads(T, f, x)

    return [
        at(T.relu, -1.0, 0.0, 2.0),
        at(lambda x: x.clamp(0.0, 1.0), -1.0, 0.0, 0.5, 1.0, 2.0),
        at(lambda x: x.clamp(min=0.0), -1.0, 0.0, 2.0),
        at(T.abs, -1.0, 0.0, 2.0),
        at(lambda x: x.max(), 1.0, 3.0, 3.0),
        at(lambda x: x.max(0).values, 1.0, 3.0, 3.0),
        at(lambda x: x.min(0).values, 1.0, 1.0, 3.0),
        at(lambda x: x.amax(0), 1.0, 3.0, 3.0),
        at(lambda x: x.median(), 4.0, 1.0, 3.0, 2.0),
        at(lambda x: x.median(0).values, 4.0, 1.0, 3.0, 2.0),
        at(lambda x: x.norm(), 0.0, 0.0),
        at(lambda x: T.maximum(x, x.flip(0)), 1.0, 1.0, 2.0),
        at(lambda x: x.prod(), 0.0, 2.0, 3.0),
        at(lambda x: x.clamp(1.0, -1.0), -2.0, 0.0, 2.0),
    ]


@program
def flat(T):
    x = T.tensor([-1.5, 0.0, 2.5], dtype=T.float64, requires_grad=True)
    return [_grads(T, f, x.detach().clone().requires_grad_(True)) for f in (T.sign, T.floor, T.ceil, T.trunc, T.round)]


@program
def reductions(T):
    def of(f):
        return _grads(T, f, _leaf(T, 3, 4))

    return [
        of(lambda x: x.sum()),
        of(lambda x: x.sum(1)),
        of(lambda x: x.sum((0, 1), keepdim=True)),
        of(lambda x: x.mean(0)),
        of(lambda x: x.mean()),
        of(lambda x: x.var()),
        of(lambda x: x.std(1)),
        of(lambda x: x.var(0, unbiased=False)),
        of(lambda x: x.prod(1)),
        of(lambda x: x.cumsum(1)),
        of(lambda x: x.cumprod(0)),
        of(lambda x: T.logsumexp(x, 1)),
        of(lambda x: x.norm(dim=1)),
        of(lambda x: x.norm(p=1)),
        of(lambda x: tuple(x.max(1))),
        of(lambda x: tuple(x.sort(1, descending=True))),
        of(lambda x: tuple(x.topk(2, 0))),
        of(lambda x: x.amin((0, 1))),
        of(lambda x: T.softmax(x, 1)),
        of(lambda x: x.log_softmax(0)),
        [_data(T, 3, 4).argmax(), _data(T, 3, 4).argmin(1)],
        of(lambda x: tuple(x.kthvalue(2, 1))),
        of(lambda x: T.std_mean(x, 0)),
    ]


@program
def shapes(T):
    def of(f):
        return _grads(T, f, _leaf(T, 2, 3, 4))

    return [
        of(lambda x: x.reshape(6, -1)),
        of(lambda x: x.view(24)),
        of(lambda x: x.permute(2, 0, 1)),
        of(lambda x: x.transpose(0, 2).flatten()),
        of(lambda x: x.unsqueeze(1).squeeze()),
        of(lambda x: x[:, :1].expand(2, 5, 4)),
        of(lambda x: x.repeat(1, 2, 1)),
        of(lambda x: x.mT),
        of(lambda x: T.cat([x, x * 2], 1)),
        of(lambda x: T.stack([x, x + 1], -1)),
        of(lambda x: x.chunk(2, 2)),
        of(lambda x: x.split([1, 3], 2)),
        of(lambda x: x.unbind(1)),
        of(lambda x: x.flip(0, 2)),
        of(lambda x: x.roll(1, 1)),
        of(lambda x: x.movedim(0, -1)),
        of(lambda x: x[0].tril()),
        of(lambda x: x[0].diagonal()),
        of(lambda x: x.narrow(1, 1, 2)),
        of(lambda x: x.repeat_interleave(2, 1)),
        of(lambda x: x.flatten(1)),
        of(lambda x: x.tile(2, 1)),
        of(lambda x: x.unflatten(2, (2, -1))),
    ]


@program
def indexing(T):
    def of(f):
        return _grads(T, f, _leaf(T, 3, 4))

    index = T.tensor([[0, 2, 1, 0]])
    return [
        of(lambda x: x[1]),
        of(lambda x: x[:, 1:3]),
        of(lambda x: x[..., -1]),
        of(lambda x: x[None, ::2]),
        of(lambda x: x[T.tensor([2, 0, 2])]),
        of(lambda x: x[x > 0]),
        of(lambda x: x[[0, 1], [1, 1]]),
        of(lambda x: x.gather(0, index)),
        of(lambda x: x.index_select(1, T.tensor([3, 3, 0]))),
        of(lambda x: x.masked_fill(x > 0.5, 9.0)),
        of(lambda x: x.masked_select(x < 0)),
        of(lambda x: x.scatter(0, index, 5.0)),
        of(lambda x: T.zeros(3, 4, dtype=T.float64).scatter_add(0, index, x[:1])),
        of(lambda x: T.zeros(2, 4, dtype=T.float64).index_add(0, T.tensor([0, 1, 0]), x)),
        of(lambda x: x[T.tensor(1)]),
        of(lambda x: x.take(T.tensor([0, 5]))),
        of(lambda x: tuple(row * 2 for row in x)),
    ]


@program
def products(T):
    def two(f, a, b):
        return _grads(T, f, _leaf(T, *a), _leaf(T, *b, seed=2))

    return [
        two(lambda a, b: a @ b, (2, 3), (3, 4)),
        two(lambda a, b: a @ b, (3,), (3,)),
        two(lambda a, b: a @ b, (2, 3), (3,)),
        two(lambda a, b: a @ b, (5, 2, 3), (3, 2)),
        two(T.bmm, (2, 2, 3), (2, 3, 2)),
        two(lambda a, b: T.einsum("ij, kj -> ik", a, b), (2, 3), (4, 3)),
        two(T.outer, (2,), (3,)),
        two(lambda a, b: T.addmm(T.ones(2, dtype=T.float64), a, b, beta=2, alpha=3), (2, 3), (3, 2)),
        two(lambda a, b: T.tensordot(a, b, 1), (2, 3), (3, 2)),
        _grads(T, lambda a: T.linalg.det(a + 2 * T.eye(3, dtype=T.float64)), _leaf(T, 3, 3)),
        _grads(T, lambda a: T.linalg.inv(a + 2 * T.eye(3, dtype=T.float64)), _leaf(T, 3, 3)),
        _grads(T, lambda a: T.linalg.solve(a + 2 * T.eye(3, dtype=T.float64), T.ones(3, 1, dtype=T.float64)), _leaf(T, 3, 3)),
        _grads(T, T.trace, _leaf(T, 3, 3)),
    ]


@program
def in_place(T):
    a = _leaf(T, 3)
    x = a * 2
    x += 1
    x.mul_(a)
    x[0] = a[1] * 3
    x[1:].relu_()
    x.sum().backward()
    b = _leaf(T, 2, 2)
    y = b.clone()
    row = y[0]
    row.mul_(b[1])
    y.pow(2).sum().backward()
    c = _leaf(T, 3)
    m = T.zeros(3, dtype=T.float64)
    m[1] = c[0] * c[2]
    m.add_(c, alpha=2)
    (m * m).sum().backward()
    d = T.ones(4, dtype=T.float64)
    d[1:3].fill_(7)
    d[d > 6] = -1
    d.view(2, 2)[0].add_(10)
    return [x, a.grad, y, row, b.grad, m, c.grad, d, a._version, d._version > 0]


@program
def accumulation(T):
    x = _leaf(T, 3)
    (x * 2).sum().backward()
    (x * x).sum().backward()
    first = x.grad.clone()
    y = x * 3
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    y_grad = y.grad
    x.grad = None
    T.stack([x * 2, x * x]).backward(T.ones(2, 3, dtype=T.float64))
    return [first, y_grad, x.grad, x.is_leaf, y.is_leaf, y.grad_fn is not None]


@program
def higher(T):
    x = _leaf(T, 3)
    y = (x.exp() * x.sin()).sum() + T.relu(x).pow(3).sum() + T.nn.functional.mse_loss(x * x, x)
    (g,) = T.autograd.grad(y, x, create_graph=True)
    (h,) = T.autograd.grad((g * g).sum(), x, create_graph=True)
    (k,) = T.autograd.grad(h.sum(), x)
    w = _leaf(T, 4, 3, seed=1)
    loss = T.nn.functional.cross_entropy(T.nn.functional.linear(x[None].tanh(), w), T.tensor([2]))
    (gw,) = T.autograd.grad(loss, w, create_graph=True)
    (hx,) = T.autograd.grad(gw.pow(2).sum(), x)
    return [g, h, k, gw, hx]


@program
def partial(T):
    a, b = _leaf(T, 2), _leaf(T, 2, seed=1)
    h = a * b
    out = (h.sin() * a).sum()
    grads = T.autograd.grad(out, [h, b], retain_graph=True)
    unused = T.autograd.grad(a.sum(), [a, b], allow_unused=True)
    out.backward(inputs=[a])
    return [grads, unused[0], unused[1] is None, a.grad, b.grad is None]


@program
def hooks(T):
    seen = []
    x = _leaf(T, 2)
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    handle.remove()
    first = x.grad.clone()
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    x.sum().backward()
    return [seen, first, x.grad]


@program
def own_function(T):
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x**3 * k

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x**2 * ctx.k, None

    x = _leaf(T, 3)
    y = Cube.apply(x, 2.0)
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = T.autograd.grad(g.sum(), x)
    return [y, g, h]


@program
def modes(T):
    x = _leaf(T, 2)
    out = []
    with T.no_grad():
        out.append((x * 2).requires_grad)
        with T.enable_grad():
            out.append((x * 2).requires_grad)

    @T.no_grad()
    def f():
        return (x * 2).requires_grad

    out.append(f())
    with T.set_grad_enabled(False):
        out.append((x * 2).requires_grad)
    with T.inference_mode():
        out.append((x * 2).requires_grad)
    out += [T.is_grad_enabled(), x.detach().requires_grad, (x.detach() * x).requires_grad]
    d = x.detach()
    d[0] = 5.0
    out.append(x)
    return out


@program
def dtypes(T):
    f32, f64, i64, b = (T.ones(2, dtype=d) for d in (T.float32, T.float64, T.int64, T.bool))
    zero = T.tensor(2.0, dtype=T.float64)
    pairs = [
        f32 + f64,
        f32 + i64,
        i64 + b,
        f32 * zero,
        i64 * zero,
        i64 / i64,
        i64 * 2.5,
        f32 * 2,
        b + b,
        i64 // 2,
        i64.float().mean(),
        f32**2,
        2**i64,
        b * 1.5,
        i64.sum(),
        b.sum(),
        T.arange(3),
        T.arange(3.0),
        T.tensor([1, 2.5]),
        T.tensor(True),
        T.linspace(0, 1, 3),
        T.sqrt(i64),
        i64 > 1.5,
        T.where(b, f32, f64),
        T.cat([f32, f64]),
        T.zeros(1),
        T.full((1,), 3),
        T.full((1,), 3.0),
        f32.half(),
        f64.long(),
        T.eye(2),
        f32.to(T.float64),
        i64 % 2,
        -i64,
    ]
    return [[str(x.dtype).split(".")[-1], x] for x in pairs]


@program
def printing(T):
    x = T.tensor([[1.5, -2.25], [1e-5, 1000.0]])
    texts = [
        x,
        T.arange(5),
        T.tensor(3.14159),
        T.tensor([1.0, 2.0, 3.0]),
        T.tensor([True, False]),
        T.zeros(0),
        T.zeros(2, 0),
        T.tensor([0.6781, -0.3983]),
        T.arange(2000),
        T.ones(2, 2, dtype=T.float64),
        T.tensor([1.0], requires_grad=True),
        T.tensor([float("nan"), 1.0]),
        T.tensor([float("inf"), 1.5]),
        T.tensor([1e10, 1.0]),
        T.arange(24.0).reshape(2, 3, 4),
        T.tensor([[0.1, 0.25]] * 3, dtype=T.float16),
        T.arange(40),
        T.rand(2).shape,
        T.float32,
        T.tensor([-0.5]),
        T.tensor(7),
    ]
    return [repr(t) for t in texts]


@program
def errors(T):
    def leaf():
        return T.tensor([1.0, 2.0], requires_grad=True)

    def twice():
        x = leaf()
        y = x.exp().sum()
        y.backward()
        y.backward()

    def harmful():
        y = leaf() * 1
        z = (y * y).sum()
        y.add_(1)
        z.backward()

    def output_changed():
        y = leaf().exp()
        y.add_(1)
        y.sum().backward()

    def constant_changed():
        m = T.ones(2)
        y = leaf() * m
        m.zero_()
        y.sum().backward()

    cases = [
        twice,
        harmful,
        output_changed,
        constant_changed,
        lambda: leaf().backward(),
        lambda: T.ones(2).sum().backward(),
        lambda: leaf().numpy(),
        lambda: leaf().add_(1),
        lambda: leaf()[0].add_(1),
        lambda: leaf().__setitem__(0, 1.0),
        lambda: T.tensor([1, 2], requires_grad=True),
        lambda: T.ones(2, 3) @ T.ones(2, 3),
        lambda: T.ones(2).reshape(3),
        lambda: bool(T.ones(2)),
        lambda: T.ones(2).item(),
        lambda: T.ones(2)[5],
        lambda: T.cat([T.ones(2, 2), T.ones(3, 3)]),
        lambda: T.ones(2) - T.ones(2, dtype=T.bool) if False else T.ones(1, dtype=T.bool) - T.ones(1, dtype=T.bool),
        lambda: T.tensor([1, 2]).mean(),
        lambda: len(T.tensor(1.0)),
        lambda: T.ones(2, dtype=T.int64).add_(1.5),
        lambda: T.ones(2).add_(T.ones(3, 2)),
        lambda: T.autograd.grad(leaf().sum(), leaf()),
        lambda: (leaf() * 2).requires_grad_(False),
        lambda: T.tensor([[1.0], [1.0, 2.0]]),
        lambda: setattr(leaf(), "grad", T.ones(3)),
        lambda: T.ones(2, 2).t().view(4),
    ]
    out = []
    for case in cases:
        try:
            case()
            out.append("none")
        except (RuntimeError, TypeError, ValueError, IndexError) as e:
            kinds = [k for k in (IndexError, TypeError, ValueError, RuntimeError) if isinstance(e, k)]
            out.append(kinds[0].__name__)
    return out


@program
def harmless(T):
    """Changes in place that no gradient depends on."""
    out = []
    x = _leaf(T, 2)
    y = x + 1
    y.add_(1)
    y.sum().backward()
    out.append(x.grad.clone())
    h = x * 2.0
    z = h + 1
    h.mul_(3)
    (z.sum() + h.sum()).backward()
    out.append(x.grad.clone())
    r = T.relu(x * 2) + 1
    r.relu_()
    r.sum().backward()
    out.append(x.grad.clone())
    m = T.ones(2, dtype=T.float64)
    s = x + m
    m.zero_()
    s.sum().backward()
    out.append(x.grad)
    u = x.sum()
    u.backward()
    u.backward()
    return [out, x.grad]
