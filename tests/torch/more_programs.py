"""Programs about views, hooks and schedulers: see `programs.py`."""

from __future__ import annotations

import contextlib

from .programs import _data, _leaf, program


def _through(T, f):
    x = _leaf(T, 3, 3)
    y = f(x)
    (y * y.detach().cos()).sum().backward()
    return [y, x.grad]


@program
def changes_through_views(T):
    def transposed(x):
        y = x * 1
        y.t().mul_(3)
        return y**2

    def flattened(x):
        y = x * 1
        y.view(-1)[1:3].add_(y.sum())
        return y**3

    def row_of_a_transpose(x):
        y = x * 1
        y.transpose(0, 1)[0].exp_()
        return y * x

    def permuted(x):
        y = x * 1
        v = y.unsqueeze(0).permute(2, 0, 1)
        v.mul_(x.sum())
        y.mul_(2)
        return v * y.t().unsqueeze(1)

    def diagonal(x):
        y = x * 1
        y.diagonal().mul_(x.sum())
        return y**2

    def several_diagonals(x):
        y = x * 1
        y.diagonal(1).copy_(x[0, :2])
        d = y.diagonal(-1)
        y.mul_(3)
        return d * 2

    def two_views(x):
        y = x * 1
        z = y.flatten()
        z.mul_(3)
        y.T[0] = x[0]
        return y + z.view(3, 3)

    programs = [transposed, flattened, row_of_a_transpose, permuted, diagonal, several_diagonals, two_views]
    zeros = T.zeros(2, 3, 3)
    zeros.diagonal(0, 1, 2).fill_(2.0)
    return [[_through(T, f) for f in programs], zeros]


@program
def hooks_of_modules(T):
    nn = T.nn
    log = []

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.act = nn.Linear(3, 2).double(), nn.Tanh()
            with T.no_grad():
                for p in self.parameters():
                    p.copy_(_data(T, *p.shape))

        def forward(self, x, y=None, scale=1):
            h = self.act(self.fc(x)) * scale
            return (h, h.sum()) if y is None else (h + y, h.sum(), 3)

    def told(name):
        return lambda module, given, found: log.append([name, given, found])

    def finish(out, *leaves, second=True):
        (out[0] ** 2).sum().backward(retain_graph=True)
        if second:
            out[1].backward()
        log.append([x.grad for x in leaves])

    m, x = Model(), _leaf(T, 4, 3)
    m.register_full_backward_hook(told("whole"))
    m.fc.register_full_backward_hook(told("part"))
    finish(m(x), x, *m.parameters())

    m, x, y = Model(), _leaf(T, 4, 3), _leaf(T, 4, 2)
    m.register_full_backward_hook(lambda module, given, found: (given[0] * 2, given[1] * 3))
    finish(m(x, y), x, y, *m.parameters())

    m, x, y = Model(), _leaf(T, 4, 3), _leaf(T, 4, 2)
    m.register_full_backward_pre_hook(lambda module, found: tuple(g if g is None else g * 2 for g in found))
    m.register_full_backward_hook(told("detached"))
    finish(m(x.detach(), y), y, *m.parameters())

    m, x = Model(), _leaf(T, 4, 3)
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {**kwargs, "scale": 5}), with_kwargs=True)
    m.register_forward_hook(lambda module, args, kwargs, out: log.append(kwargs["scale"]), with_kwargs=True)
    m.register_forward_hook(lambda module, args, out: log.append("first"), prepend=True)
    finish(m(x), x)

    m, x = Model(), _leaf(T, 4, 3)
    handle = m.register_forward_hook(lambda module, args, out: log.append(["always", out is None]), always_call=True)
    m.register_forward_hook(lambda module, args, out: log.append("not always"))
    with contextlib.suppress(Exception):
        m("no tensor")
    handle.remove()
    finish(m(x), x)

    m, x = Model(), _leaf(T, 4, 3)
    m.register_full_backward_hook(told("twice"))
    out = m(x)
    (g,) = T.autograd.grad(out[0].sum(), x, create_graph=True)
    finish((g * 1, g.sum()), x, *m.parameters())
    return log


def _rates(T, make, change, steps=14):
    """Learning rates of two groups; `change` writes into them between steps."""
    a, b = T.nn.Parameter(T.ones(1)), T.nn.Parameter(T.ones(1))
    o = T.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.2}], lr=0.1, momentum=0.9)
    s = make(o)
    rows = []
    for k in range(steps):
        rows.append([float(g["lr"]) for g in o.param_groups])
        o.step()
        change(o, k)
        for scheduler in s if isinstance(s, list) else [s]:
            scheduler.step()
    return rows


@program
def schedulers_and_rates_set_by_hand(T):
    S = T.optim.lr_scheduler

    def in_between(o, k):
        if k in (2, 5, 6):
            o.param_groups[0]["lr"] = 0.05 * k
        if k == 4:
            for g in o.param_groups:
                g["lr"] *= 0.5

    makers = [
        lambda o: S.StepLR(o, 3, 0.5),
        lambda o: S.MultiStepLR(o, [2, 5]),
        lambda o: S.ConstantLR(o, 0.5, 3),
        lambda o: S.LinearLR(o, total_iters=8),
        lambda o: S.ExponentialLR(o, 0.9),
        lambda o: S.PolynomialLR(o, 9, 2.0),
        lambda o: S.CosineAnnealingLR(o, 5, 0.01),
        lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2),
        lambda o: S.LambdaLR(o, lambda t: 0.5**t),
        lambda o: S.MultiplicativeLR(o, lambda t: 0.7),
        lambda o: S.OneCycleLR(o, 0.5, total_steps=20),
        lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, total_iters=3), S.ExponentialLR(o, 0.5)], [3]),
        lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)]),
        lambda o: [S.ExponentialLR(o, 0.9), S.StepLR(o, 2, 0.5)],
        lambda o: [S.LinearLR(o, 0.1, total_iters=4), S.CosineAnnealingLR(o, 10)],
    ]
    return [_rates(T, make, change) for make in makers for change in (in_between, lambda o, k: None)]


@program
def a_scheduler_goes_on_from_its_state(T):
    S = T.optim.lr_scheduler
    out = []
    for make in (lambda o: S.StepLR(o, 3, 0.5), lambda o: S.CosineAnnealingLR(o, 6, 0.01), lambda o: S.LambdaLR(o, lambda t: 0.5**t)):
        rows = []
        o = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.1)
        s = make(o)
        for _ in range(3):
            o.step()
            s.step()
        o.param_groups[0]["lr"] = 0.3
        o.step()
        s.step()
        o2 = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=7.0)
        s2 = make(o2)
        o2.load_state_dict(o.state_dict())
        s2.load_state_dict(s.state_dict())
        for _ in range(5):
            for opt, sched in ((o, s), (o2, s2)):
                opt.step()
                sched.step()
                rows.append(float(opt.param_groups[0]["lr"]))
        out.append(rows)
    return out


@program
def autograd_functional(T):
    f = T.autograd.functional
    x, y = _data(T, 3), _data(T, 2, seed=4)

    def pair(a, b):
        return (a * b.sum()).exp(), (a[:2] * b) ** 2

    def one(a, b):
        return (a**3).sum() * (b**2).sum()

    w = _leaf(T, 3)
    table = f.jacobian(lambda a: (a**3) * w, x, create_graph=True)
    (table**2).sum().backward()
    out = [
        f.jacobian(lambda a: a**2, x),
        f.jacobian(pair, (x, y)),
        f.jacobian(lambda a: (a.sum(), a * 2), x),
        f.jacobian(lambda a: T.zeros(2, dtype=T.float64), x),
        f.hessian(lambda a: (a**3).sum(), x),
        f.hessian(one, (x, y)),
        f.vjp(pair, (x, y), (x, y)),
        f.vjp(lambda a: a.sum(), x),
        f.jvp(pair, (x, y), (x * 2, y)),
        f.hvp(one, (x, y), (x, y)),
        f.vhp(lambda a: (a**4).sum(), x, x),
        table,
        w.grad,
    ]
    for ask in (
        lambda: f.vjp(lambda a: a * 2, x),
        lambda: f.hvp(lambda a: a * 2, x, x),
        lambda: f.jacobian(lambda a: T.zeros(2), x, strict=True),
        lambda: f.jacobian(lambda a: 3, x),
        lambda: f.jacobian(lambda a: a, 3.0),
    ):
        try:
            out.append(ask())
        except (RuntimeError, TypeError) as e:
            out.append(type(e).__name__)
    return out


@program
def checks_of_gradients(T):
    class Wrong(T.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = _leaf(T, 2, 3)
    out = [
        T.autograd.gradcheck(lambda a: (a.sin(), (a * a).sum()), (x,)),
        T.autograd.gradgradcheck(lambda a: a**3, (x,)),
        T.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False),
    ]
    try:
        T.autograd.gradcheck(Wrong.apply, (x,))
    except RuntimeError as e:
        out.append(type(e).__name__)
    return out


@program
def what_is_asked_before_the_cpu_is_chosen(T):
    device = T.device("cuda" if T.cuda.is_available() else "cpu")
    T.cuda.manual_seed_all(0)
    T.backends.cudnn.benchmark = False
    scaler = T.amp.GradScaler("cuda", enabled=T.cuda.is_available())
    w = _leaf(T, 3)
    optimizer = T.optim.SGD([w], lr=0.1)
    with T.autocast(device_type="cpu", enabled=False):
        loss = (w * 2).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    v = T.autograd.Variable(_data(T, 2), requires_grad=True)
    return [str(device), scaler.is_enabled(), w, v.requires_grad, v.is_leaf, T.is_complex(w), T.cuda.device_count()]


@program
def parametrized_weights(T):
    nn, P = T.nn, T.nn.utils.parametrizations
    out = []
    for make, shape in (
        (lambda: P.weight_norm(nn.Linear(3, 2)), (4, 3)),
        (lambda: P.weight_norm(nn.Conv1d(2, 3, 2), dim=None), (2, 2, 5)),
        (lambda: P.weight_norm(nn.ConvTranspose1d(2, 3, 2), dim=1), (2, 2, 5)),
        (lambda: P.spectral_norm(nn.Linear(3, 2)), (4, 3)),
        (lambda: P.spectral_norm(nn.ConvTranspose1d(2, 3, 2), n_power_iterations=2), (2, 2, 5)),
        (lambda: P.spectral_norm(P.weight_norm(nn.Linear(3, 2)), "bias"), (4, 3)),
    ):
        m = make().double()
        with T.no_grad():
            for i, p in enumerate([*m.parameters(), *m.buffers()]):
                p.copy_(_data(T, p.numel(), seed=i).reshape(p.shape))
        x = _leaf(T, *shape)
        y = m(x)
        (y * _data(T, *y.shape)).sum().backward()
        out.append([repr(m), list(m.state_dict()), y, x.grad, [p.grad for p in m.parameters()], list(m.buffers()), m.eval()(x)])
        T.nn.utils.parametrize.remove_parametrizations(m, "weight")
        out.append([sorted(m.state_dict()), m(x), type(m).__name__])

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    z = T.nn.utils.parametrize
    m = nn.Linear(3, 3).double()
    z.register_parametrization(m, "weight", Symmetric())
    m.weight = _data(T, 3, 3) + _data(T, 3, 3).mT
    out += [
        m.weight,
        m.parametrizations.weight.original,
        z.is_parametrized(m, "bias"),
        z.is_parametrized(m),
        m.parametrizations.weight[0] is not None,
    ]
    z.remove_parametrizations(m, "weight", leave_parametrized=False)
    return [*out, m.weight, z.is_parametrized(m)]
