"""Functions of `torch` and methods of tensors, as PyTorch writes them: `f(T, x, y, ...)` with the shapes of its arguments.

Compared with PyTorch live where it is installed, and with what it gave (`functions.json`).
"""

from __future__ import annotations

import zlib

from .layer_cases import Draw, backward, summary, tensors

CASES = {}


def each(table, *shapes, positive=False):
    """Register functions of arrays of normal numbers; of numbers between 0 and 1, if `positive`."""
    for name, f in table.items():
        assert name not in CASES, name
        CASES[name] = f, shapes, positive


each(
    {
        n: lambda T, x, n=n: getattr(T, n)(x)
        for n in (
            "erf",
            "erfc",
            "sinc",
            "deg2rad",
            "rad2deg",
            "frac",
            "positive",
            "fix",
            "fliplr",
            "flipud",
            "rot90",
            "diagflat",
            "diag_embed",
            "aminmax",
            "nanmedian",
            "atleast_2d",
            "atleast_3d",
            "msort",
            "cov",
            "corrcoef",
            "i0",
            "adjoint",
        )
    },
    (3, 4),
)
each({n: lambda T, x, n=n: getattr(T, n)(x) for n in ("erfinv", "lgamma", "digamma", "logit")}, (3, 4), positive=True)
each({f"{n}_": lambda T, x, n=n: getattr(T, f"{n}_")(x * 1.0) for n in ("relu", "erf", "abs", "sigmoid", "tanh", "exp", "neg")}, (5,))
each(
    {
        "xlogy": lambda T, x, y: T.xlogy(x, y),
        "float_power": lambda T, x, y: T.float_power(x, y),
        "ldexp": lambda T, x, y: T.ldexp(x, y),
        "logaddexp2": lambda T, x, y: T.logaddexp2(x, y),
        "inner": lambda T, x, y: T.inner(x, y),
        "cdist": lambda T, x, y: T.cdist(x, y),
        "cdist_1": lambda T, x, y: T.cdist(x, y, p=1.0),
        "block_diag": lambda T, x, y: T.block_diag(x, y[0], y),
        "dstack": lambda T, x, y: T.dstack((x, y)),
        "column_stack": lambda T, x, y: T.column_stack((x, y, x[:, 0])),
        "row_stack": lambda T, x, y: T.row_stack((x, y)),
        "vecdot": lambda T, x, y: T.linalg.vecdot(x, y),
        "cosine_similarity": lambda T, x, y: T.cosine_similarity(x, y),
        "pairwise_distance": lambda T, x, y: T.pairwise_distance(x, y),
        "select_scatter": lambda T, x, y: T.select_scatter(x, y[0], 0, 2),
        "slice_scatter": lambda T, x, y: T.slice_scatter(x, y[:2], 0, 1),
        "masked_scatter": lambda T, x, y: T.masked_scatter(x, x.detach() > 0, y),
        "heaviside": lambda T, x, y: T.heaviside(x.detach(), y.detach()),
        "index_put": lambda T, x, y: T.index_put(x, (T.tensor([0, 2]), T.tensor([1, 1])), y[0, :2]),
        "index_put_adds": lambda T, x, y: (x * 1).index_put_((T.tensor([0, 0]),), y[:2], accumulate=True),
    },
    (3, 4),
    (3, 4),
    positive=True,
)
each(
    {
        "quantile": lambda T, x: [T.quantile(x, 0.3), x.quantile(T.tensor([0.1, 0.5]).double(), 1), T.quantile(x, 0.7, 0, keepdim=True)],
        "quantile_modes": lambda T, x: [T.quantile(x, 0.3, 1, interpolation=m) for m in ("lower", "higher", "nearest", "midpoint")],
        "nanquantile": lambda T, x: T.nanquantile(x, 0.4, dim=1),
        "cummax": lambda T, x: list(T.cummax(x, 1)),
        "cummin": lambda T, x: list(x.cummin(0)),
        "logcumsumexp": lambda T, x: T.logcumsumexp(x, 1),
        "mode": lambda T, x: list(T.mode(T.round(x.detach() * 2), 1)),
        "nanmedian_dim": lambda T, x: list(x.nanmedian(1)),
        "diff": lambda T, x: [T.diff(x), x.diff(2, 0), T.diff(x, prepend=x[:, :1])],
        "trapezoid": lambda T, x: [T.trapezoid(x), T.trapz(x, dx=0.5, dim=0), T.trapezoid(x, T.arange(4.0).double() ** 2)],
        "cumulative_trapezoid": lambda T, x: T.cumulative_trapezoid(x, dx=0.3),
        "cov_options": lambda T, x: T.cov(x, correction=0),
        "histc": lambda T, x: [T.histc(x.detach(), 5), T.histc(x.detach(), 4, -1, 1)],
        "unique_consecutive": lambda T, x: list(T.unique_consecutive(T.round(x.detach()), return_inverse=True, return_counts=True)),
        "bucketize": lambda T, x: [T.bucketize(x.detach(), T.tensor([-1.0, 0.0, 1.0]).double(), right=r) for r in (False, True)],
        "isin": lambda T, x: T.isin(T.arange(5), T.tensor([1, 3])),
        "combinations": lambda T, x: [T.combinations(x[0]), T.combinations(x[0], 3)],
        "cartesian_prod": lambda T, x: T.cartesian_prod(x[0], x[1, :2]),
        "triangles": lambda T, x: [T.tril_indices(3, 4), T.triu_indices(3, 3, 1)],
        "unravel_index": lambda T, x: list(T.unravel_index(T.tensor([5, 7]), (3, 4))),
        "tensor_split": lambda T, x: [*T.tensor_split(x, 3, 1), *x.tensor_split([1, 2], 1), *T.hsplit(x, 2), *T.vsplit(x, 3)],
        "split_with_sizes": lambda T, x: list(x.split_with_sizes([1, 3], 1)),
        "unfold_method": lambda T, x: x.unfold(1, 3, 1) ** 2,
        "diagonal_scatter": lambda T, x: T.diagonal_scatter(x, x[:, 0] * 2),
        "diag_embed_offset": lambda T, x: T.diag_embed(x, 1, 0, 2),
        "scatter_reduce": lambda T, x: [
            (x * 1).scatter_reduce(1, T.tensor([[0, 0, 1, 2], [1, 1, 1, 1], [3, 2, 1, 0]]), x * 2 + 3, r, include_self=s)
            for r in ("sum", "prod", "mean", "amax", "amin")
            for s in (True, False)
        ],
        "fill_diagonal_": lambda T, x: (x * 1).fill_diagonal_(3.0),
        "sum_to_size": lambda T, x: [x.sum_to_size(1, 4), x.sum_to_size(4)],
        "reshaped_in_place": lambda T, x: [x.detach().clone().unsqueeze_(1).squeeze_().t_(), x.detach().clone().transpose_(0, 1)],
        "torch_layers": lambda T, x: [T.layer_norm(x, (4,)), T.dropout(x, 0.5, False), T.conv1d(x[None], T.ones(2, 3, 2).double())],
        "methods": lambda T, x: [x.nansum(), x.nanmean(), x.detach().sgn(), x.fix(), T.logdet(x[:, :3] @ x[:, :3].t() + T.eye(3).double())],
        "vander": lambda T, x: T.linalg.vander(x[0], N=3),
        "softmax_dtype": lambda T, x: T.softmax(x, 1, dtype=T.float64),
        "polygamma": lambda T, x: [T.polygamma(n, x.abs() + 0.5) for n in (0, 1, 2)],
        "complex_numbers": lambda T, x: [T.view_as_real(T.complex(x, x * 2)), T.polar(x.abs(), x).real, T.angle(T.complex(x, x))],
        "fft": lambda T, x: [
            T.view_as_real(T.fft.fft(x)),
            T.fft.irfft(T.fft.rfft(x, dim=1) * 2),
            T.view_as_real(T.fft.fft2(x)),
            T.fft.fftfreq(5, 0.1),
        ],
        "ranks": lambda T, x: [T.linalg.matrix_rank(x), T.linalg.cond(x), T.linalg.svdvals(x)],
        "pinv": lambda T, x: [T.pinverse(x), T.linalg.pinv(x)],
        "triangular": lambda T, x: [
            T.linalg.solve_triangular(x[:, :3].tril() + 3 * T.eye(3).double(), x, upper=False),
            T.linalg.solve_triangular(x[:, :3], x.t(), upper=True, left=False, unitriangular=True),
        ],
        "lstsq": lambda T, x: T.linalg.lstsq(x.t(), x.t()[:, :2] + 1).solution,
    },
    (3, 4),
)
each(
    {
        "addmv": lambda T, a, b, x: T.addmv(x, a, x, beta=2, alpha=3),
        "addr": lambda T, a, b, x: T.addr(a, x, x * 2, alpha=2),
        "addbmm": lambda T, a, b, x: T.addbmm(a, T.stack([a, b]), T.stack([b, a])),
        "chain_matmul": lambda T, a, b, x: T.chain_matmul(a, b, a),
        "vdot": lambda T, a, b, x: T.vdot(x, x * 2),
        "ger": lambda T, a, b, x: T.ger(x, x),
        "kron_method": lambda T, a, b, x: a.kron(b),
        "qr_products": lambda T, a, b, x: T.linalg.qr(a).Q.abs(),
        "svd_values": lambda T, a, b, x: [T.svd(a).S, T.linalg.svd(b).S],
        "eigvals_sum": lambda T, a, b, x: T.linalg.eigvals(a).sum().real,
        "tensorsolve": lambda T, a, b, x: T.linalg.tensorsolve(a, x),
    },
    (3, 3),
    (3, 3),
    (3,),
)
each(
    {
        "gcd": lambda T: [T.gcd(T.tensor([12, 18]), T.tensor([8, 27])), T.lcm(T.tensor([4, 6]), T.tensor([6, 8]))],
        "limits": lambda T: [float(T.finfo(T.float32).eps), int(T.iinfo(T.int32).max), float(T.finfo(T.float64).max)],
        "kinds": lambda T: [
            T.is_complex(T.ones(1)),
            T.is_nonzero(T.ones(1)),
            T.can_cast(T.float64, T.int32),
            T.ones(1).is_sparse,
            T.ones(1).is_cpu,
        ],
        "promoted": lambda T: [str(T.promote_types(T.int64, T.float32)), str(T.result_type(T.ones(1, dtype=T.int32), T.ones(2)))],
        "flags": lambda T: [T.isposinf(T.tensor([1.0, float("inf")])), T.isneginf(T.tensor([-float("inf"), 0.0])), T.isreal(T.ones(2))],
        "machine": lambda T: [T.cuda.is_available(), T.cuda.device_count(), T.backends.mps.is_available(), str(T.device("cpu"))],
    }
)


def plain(x):
    if isinstance(x, tuple | list):
        return [plain(v) for v in x]
    return summary(x) if hasattr(x, "detach") else x


def arguments(name):
    _, shapes, positive = CASES[name]
    draw = Draw(str(zlib.crc32(name.encode())))
    return [draw.u(*s) if positive else draw.x(*s) for s in shapes]


def run(T, name, dtype="float64"):
    """What a function returns, and its arguments after a backward pass."""
    given = tensors(T, arguments(name), dtype)
    out = CASES[name][0](T, *given)
    backward(T, out)
    return out, given


def answers(T, name):
    out, given = run(T, name)
    return [plain(out if isinstance(out, tuple | list) else [out]), [summary(x.grad) for x in given]]
