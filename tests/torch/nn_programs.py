"""Programs about modules, optimizers and data: see `programs.py`."""

from __future__ import annotations

from .programs import PROGRAMS as PROGRAMS
from .programs import _data, _grads, _leaf, program


def _fill(T, model):
    with T.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(_data(T, *p.shape, seed=i) * 0.5)
    return model


@program
def functional(T):
    F = T.nn.functional
    labels = T.tensor([0, 2, 1, 2])

    def of(f, *shape):
        return _grads(T, f, _leaf(T, *(shape or (4, 3))))

    weight = T.tensor([1.0, 2.0, 0.5], dtype=T.float64)
    return [
        of(F.relu),
        of(F.gelu),
        of(lambda x: F.gelu(x, approximate="tanh")),
        of(F.silu),
        of(F.softplus),
        of(lambda x: F.softmax(x, dim=1)),
        of(lambda x: F.log_softmax(x, -1)),
        of(lambda x: F.mse_loss(x, _data(T, 4, 3, seed=9))),
        of(lambda x: F.mse_loss(x, _data(T, 4, 3, seed=9), reduction="sum")),
        of(lambda x: F.cross_entropy(x, labels)),
        of(lambda x: F.cross_entropy(x, labels, weight=weight, label_smoothing=0.1, reduction="none")),
        of(lambda x: F.cross_entropy(x, labels, ignore_index=2)),
        of(lambda x: F.nll_loss(F.log_softmax(x, 1), labels)),
        of(lambda x: F.layer_norm(x, (3,))),
        of(lambda x: F.pad(x, (1, 2))),
        of(lambda x: F.pad(x, (1, 0, 0, 2), value=3.0)),
        of(lambda x: F.max_pool2d(x, 2), 1, 1, 4, 4),
        of(lambda x: F.avg_pool2d(x, 2, 1), 1, 1, 3, 3),
        of(lambda x: F.embedding(labels, x)),
        F.one_hot(labels, 4),
        of(lambda x: F.cross_entropy(x, F.softmax(_data(T, 4, 3, seed=4), 1))),
        of(lambda x: F.dropout(x, 0.5, training=False)),
    ]


@program
def layers(T):
    nn = T.nn
    out = []
    for model, shape in [
        (nn.Linear(3, 2), (4, 3)),
        (nn.Linear(3, 2, bias=False), (3,)),
        (nn.Linear(3, 2), (2, 2, 3)),
        (nn.Conv2d(2, 3, 3, padding=1), (2, 2, 4, 4)),
        (nn.Conv2d(2, 4, 2, stride=2, groups=2, bias=False), (1, 2, 4, 4)),
        (nn.LayerNorm(3), (2, 3)),
        (nn.BatchNorm1d(3), (5, 3)),
        (nn.BatchNorm2d(2), (2, 2, 3, 3)),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.LogSoftmax(dim=1)), (2, 3)),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten()), (2, 1, 6, 6)),
    ]:
        model = _fill(T, model.double())
        x = _leaf(T, *shape)
        y = model(x)
        (y * _data(T, *y.shape, seed=4)).sum().backward()
        model.eval()
        out.append([y, x.grad, [p.grad for p in model.parameters()], [b.double() for b in model.buffers()], model(x)])
    return out


@program
def sequences(T):
    nn = T.nn
    out = []
    for model, shape in [
        (nn.GRU(3, 4), (5, 2, 3)),
        (nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True), (2, 4, 3)),
        (nn.RNN(3, 2, nonlinearity="relu", bias=False), (4, 3)),
        (nn.Conv1d(2, 3, 2), (2, 2, 5)),
        (nn.ConvTranspose2d(2, 3, 2, stride=2), (1, 2, 3, 3)),
        (nn.AdaptiveAvgPool2d(2), (1, 2, 4, 4)),
        (nn.GroupNorm(2, 4), (2, 4, 3)),
        (nn.RMSNorm(3, eps=1e-6), (2, 3)),
    ]:
        model = _fill(T, model.double())
        x = _leaf(T, *shape)
        y = model(x)
        y = y[0] if isinstance(y, tuple) else y
        (y * _data(T, *y.shape, seed=4)).sum().backward()
        out.append([y, x.grad, [p.grad for p in model.parameters()], [n for n, _ in model.named_parameters()]])
    attention = _fill(T, nn.MultiheadAttention(4, 2, batch_first=True).double())
    x = _leaf(T, 2, 3, 4)
    mask = T.ones(3, 3, dtype=T.bool).triu(1)
    y, weights = attention(x, x, x, attn_mask=mask)
    (y * _data(T, *y.shape)).sum().backward()
    return [*out, y, weights, x.grad, [p.grad for p in attention.parameters()]]


@program
def modules(T):
    nn = T.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)
            self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
            self.by_name = nn.ModuleDict({"a": nn.Linear(3, 1)})
            self.scale = nn.Parameter(T.ones(1))
            self.register_buffer("mean", T.zeros(2))
            self.register_buffer("hidden", T.zeros(1), persistent=False)
            self.tied = self.fc

    m = Model()
    out = [
        [n for n, _ in m.named_parameters()],
        [n for n, _ in m.named_buffers()],
        [n for n, _ in m.named_children()],
        [n for n, _ in m.named_modules()],
        list(m.state_dict()),
        repr(m),
        sum(p.numel() for p in m.parameters()),
        m.training,
        m.eval().blocks[0].training,
        len(m.blocks),
        [type(x).__name__ for x in m.modules()],
        repr(nn.Conv2d(1, 2, 3, padding=1)),
        repr(
            nn.Sequential(
                nn.Linear(1, 2), nn.Dropout(0.1), nn.BatchNorm1d(2), nn.MaxPool2d(2), nn.Embedding(3, 4), nn.LayerNorm(2), nn.Flatten()
            )
        ),
    ]
    for strict, change in [
        (True, {"fc.weight": None}),
        (True, {"other": T.ones(1)}),
        (False, {"other": T.ones(1), "scale": None}),
        (True, {"mean": T.zeros(5)}),
    ]:
        state = dict(m.state_dict())
        for k, v in change.items():
            state.pop(k, None)
            if v is not None:
                state[k] = v
        try:
            out.append(repr(m.load_state_dict(state, strict=strict)))
        except RuntimeError as e:
            out.append(str(e))
    m.apply(lambda x: setattr(x, "seen", True))
    m.requires_grad_(False)
    out += [m.by_name["a"].seen, any(p.requires_grad for p in m.parameters())]
    calls = []
    h1 = m.fc.register_forward_pre_hook(lambda mod, args: (args[0] * 2,))
    m.fc.register_forward_hook(lambda mod, args, y: calls.append(list(y.shape)))
    m.fc(T.ones(4, 2))
    h1.remove()
    return [*out, calls]


def _train(T, make, steps=6, dtype=None, groups=False):
    dtype = T.float64 if dtype is None else dtype
    model = _fill(T, T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2)).to(dtype))
    params = (
        [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.01, "weight_decay": 0.1}]
        if groups
        else model.parameters()
    )
    optimizer = make(params)
    x, y = _data(T, 5, 3).to(dtype), _data(T, 5, 2, seed=7).to(dtype)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = T.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, list(model.parameters())]


@program
def optimizers(T):
    o = T.optim
    makers = [
        lambda p: o.SGD(p, lr=0.1),
        lambda p: o.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
        lambda p: o.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
        lambda p: o.Adam(p, 0.05),
        lambda p: o.Adam(p, 0.05, amsgrad=True, weight_decay=0.1),
        lambda p: o.AdamW(p, lr=0.05),
        lambda p: o.Adamax(p),
        lambda p: o.NAdam(p),
        lambda p: o.RAdam(p, lr=0.1),
        lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.1),
        lambda p: o.Adadelta(p),
        lambda p: o.RMSprop(p, momentum=0.5, centered=True),
        lambda p: o.Rprop(p),
        lambda p: o.ASGD(p, lr=0.1),
        lambda p: o.Adafactor(p, lr=0.1),
    ]
    return [_train(T, m) for m in makers] + [
        _train(T, lambda p: o.SGD(p, lr=0.1, momentum=0.5), groups=True),
        _train(T, lambda p: o.AdamW(p), groups=True),
    ]


@program
def schedulers(T):
    S = T.optim.lr_scheduler
    makers = [
        lambda o: S.StepLR(o, 3, 0.5),
        lambda o: S.MultiStepLR(o, [2, 5]),
        lambda o: S.ConstantLR(o, 0.5, 3),
        lambda o: S.LinearLR(o, total_iters=4),
        lambda o: S.ExponentialLR(o, 0.9),
        lambda o: S.PolynomialLR(o, 5, 2.0),
        lambda o: S.CosineAnnealingLR(o, 6, 0.01),
        lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2),
        lambda o: S.LambdaLR(o, [lambda t: 0.5**t, lambda t: 1 / (1 + t)]),
        lambda o: S.MultiplicativeLR(o, lambda t: 0.7),
        lambda o: S.CyclicLR(o, 0.01, 0.1, 2, 3, base_momentum=0.7),
        lambda o: S.OneCycleLR(o, 0.5, total_steps=10),
        lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 100), S.ExponentialLR(o, 0.5)], [3]),
        lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)]),
    ]
    out = []
    for make in makers:
        a, b = T.nn.Parameter(T.ones(1)), T.nn.Parameter(T.ones(1))
        o = T.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.2}], lr=0.1, momentum=0.9)
        s = make(o)
        rows = []
        for _ in range(9):
            rows.append([[float(g["lr"]), float(g["momentum"])] for g in o.param_groups])
            o.step()
            s.step()
        out.append([rows, s.get_last_lr()])
    o = T.optim.Adam([T.nn.Parameter(T.ones(1))], lr=1.0)
    s = S.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1)
    rates = []
    for metric in (3.0, 2.0, 2.5, 2.5, 2.4, 2.6, 2.7, 1.0, 1.5):
        s.step(metric)
        rates.append(o.param_groups[0]["lr"])
    return [*out, rates]


@program
def lbfgs(T):
    out = []
    for options in ({}, {"line_search_fn": "strong_wolfe", "lr": 0.5, "history_size": 3}):
        x = T.tensor([-1.2, 1.0], dtype=T.float64, requires_grad=True)
        o = T.optim.LBFGS([x], max_iter=4, **options)

        def closure(o=o, x=x):
            o.zero_grad()
            loss = (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        out.append([[o.step(closure).item(), x.tolist()] for _ in range(4)])
    return out


@program
def clipping(T):
    u = T.nn.utils
    ps = [T.nn.Parameter(_data(T, 3)), T.nn.Parameter(_data(T, 2, 2))]
    out = []
    for clip in (
        lambda: u.clip_grad_norm_(ps, 1.0),
        lambda: u.clip_grad_norm_(ps, 1.0, norm_type=float("inf")),
        lambda: u.clip_grad_value_(ps, 0.5),
    ):
        for i, p in enumerate(ps):
            p.grad = _data(T, *p.shape, seed=i) * 2
        out += [clip(), [p.grad for p in ps]]
    vector = u.parameters_to_vector(ps)
    u.vector_to_parameters(vector * 2, ps)
    return [*out, vector, ps]


@program
def loaders(T):
    data = T.utils.data
    d = data.TensorDataset(T.arange(7), T.arange(14.0).reshape(7, 2))

    class Squares(data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return {"x": float(i), "y": [i, i * i], "name": str(i)}

    a, b = data.random_split(d, [5, 2], generator=T.Generator().manual_seed(0))
    return [
        [list(map(plain_batch, batch)) for batch in data.DataLoader(d, batch_size=3)],
        len(data.DataLoader(d, batch_size=3, drop_last=True)),
        [plain_batch(b) for b in data.DataLoader(Squares(), batch_size=2)],
        len(a),
        len(b),
        sorted(x.item() for x, _ in a) != [],
        sorted(x for batch, _ in data.DataLoader(d, 2, shuffle=True) for x in batch.tolist()),
        [plain_batch(x) for x in data.DataLoader(d, 4, collate_fn=lambda rows: T.stack([r[1] for r in rows]))],
        [[*map(int, i)] for i in data.BatchSampler(data.SequentialSampler(range(5)), 2, False)],
        len(data.ConcatDataset([d, d])),
        data.ConcatDataset([d, d])[9][0].item(),
    ]


def plain_batch(x):
    if isinstance(x, dict):
        return {k: plain_batch(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [plain_batch(v) for v in x]
    return [str(x.dtype).split(".")[-1], x.tolist()] if hasattr(x, "tolist") else x
