"""Random bits from keys, and the draws that need a loop for each number.

A key is an array (..., 2) of uint64; leading axes are a batch of keys. Everything is computed from the key and a counter by
Philox4x64-10 (`kernels/_philox.py`); the counter's highest word says what for, so that no two purposes share bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from fnad import _scipy
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.lowering import Scalar
from fnad.errors import DTypeError, ShapeError, UnsupportedError
from fnad.kernels import draws
from fnad.kernels._philox import rounds
from fnad.kernels.codegen.numpy_expr import mulhi
from fnad.primitives._families import Primitive, Pullback, align, broadcast_shapes, guarded
from fnad.primitives.indexing import iota
from fnad.typing import Shape

KEY = np.dtype(np.uint64)
_DRAW, _CHILD, _FOLD = 0, 1, 2  # purposes; `kernels.draws` has another
_FEW = 32  # so many keys are cheaper one after the other by NumPy's generator


def _number(n: int) -> Any:
    return KEY.type(n)


def philox(k0: Any, k1: Any, low: Any, purpose: Any) -> tuple[Any, Any, Any, Any]:
    """The four words of a block for plain arrays that broadcast."""
    zero = np.zeros((), KEY)
    with np.errstate(over="ignore"):
        return rounds((low, zero, zero, purpose), (k0, k1), mulhi, _number)


class OfWords(Primitive):
    """A function of the elements of broadcast arrays of uint64."""

    constant = True
    strong = True

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.function = function

    def infer(self, *avals: Aval) -> Aval:
        if any(a.dtype != KEY and not (a.weak and a.dtype.kind in "iu") for a in avals):
            raise DTypeError(f"{self.name} takes arrays of uint64", got={"operands": avals})
        return Aval(broadcast_shapes(self.name, *avals), KEY)

    def impl(self, *args: Any) -> Any:
        return self.function(*[np.asarray(a, KEY) for a in args])[()]

    def lower(self, *avals: Aval) -> Scalar:
        return Scalar(self.name, (KEY,) * len(avals))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(*align(args, batched))


def _word(number: int) -> OfWords:
    """One word of a block: (key 0, key 1, lowest word of the counter, purpose) -> word."""
    return OfWords(f"philox_{number}", lambda *args: philox(*args)[number])


WORDS = [_word(k) for k in range(4)]
high_product = OfWords("high_product", mulhi)
"""The upper half of the product: a random word times n is a random integer below n."""


def check_key(name: str, key: Any) -> None:
    aval = aval_of(key)
    if aval.dtype != KEY or aval.shape[-1:] != (2,):
        raise DTypeError(f"{name}: a key is an array of two uint64", got={"key": aval}, fix="make one with fnad.random.key(seed)")


class RandomBits(Primitive):
    """Random unsigned integers of 32 or 64 bits: (*lead, 2) -> (*lead, *shape). Those of `np.random.Philox(key=key)`."""

    constant = True

    def infer(self, key: Aval, *, shape: Shape, bits: int) -> Aval:
        check_key(self.name, key)
        return Aval((*key.shape[:-1], *shape), np.dtype(f"u{bits // 8}"))

    def impl(self, key: Any, *, shape: Shape, bits: int) -> Any:
        check_key(self.name, key)
        n = math.prod(shape)
        words = -(-n * bits // 64)
        keys = np.reshape(key, (math.prod(key.shape[:-1]), 2))
        if len(keys) <= _FEW:
            rows = [np.random.Philox(key=k).random_raw(words) if words else np.zeros(0, KEY) for k in keys]
            out = np.stack(rows) if len(rows) != 1 and rows else np.reshape(rows, (len(rows), words)).astype(KEY, copy=False)
        else:
            counter = np.arange(1, -(-words // 4) + 1, dtype=KEY)
            blocks = philox(keys[:, :1], keys[:, 1:], counter, _number(_DRAW))
            out = np.stack(blocks, -1).reshape(len(keys), 4 * len(counter))
        if bits == 32:
            out = out.astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)
        return np.reshape(out[:, :n], (*key.shape[:-1], *shape))[()]

    def compose(self, key: Any, *, shape: Shape, bits: int) -> Any:
        lead, n = shape_of(key)[:-1], math.prod(shape)
        if 0 in (*lead, n):
            return np.zeros((*lead, *shape), np.dtype(f"u{bits // 8}"))
        blocks = -(-n * bits // 256)
        counter = iota(np.broadcast_to(np.zeros((), KEY), (blocks,)), axis=0, dtype=KEY) + _number(1)
        k0, k1 = key[..., 0], key[..., 1]
        parts = [word(k0[..., None], k1[..., None], counter, _number(_DRAW)) for word in WORDS]
        if bits == 32:
            parts = [half for w in parts for half in (w.astype(np.uint32), (w >> _number(32)).astype(np.uint32))]
        flat = np.reshape(np.stack(parts, axis=-1), (*lead, blocks * len(parts)))
        return np.reshape(flat[..., :n], (*lead, *shape))

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        return self(args[0], **params)


def _stream(key: Any, first: int, purpose: int, words: int) -> Any:
    """Words from the block with this lowest word on, by NumPy's generator, which adds 1 to the counter before each block."""
    return np.random.Philox(key=key, counter=((purpose << 192) + first - 1) % (1 << 256)).random_raw(words)


class Children(Primitive):
    """Keys made of keys: (*lead, 2) -> (*lead, count, 2). Child k does not depend on the count."""

    constant = True

    def infer(self, key: Aval, *, count: int) -> Aval:
        check_key(self.name, key)
        return Aval((*key.shape[:-1], count, 2), KEY)

    def impl(self, key: Any, *, count: int) -> Any:
        check_key(self.name, key)
        if key.size > 2 * _FEW or count == 0:
            return _keys(key[..., None, 0], key[..., None, 1], np.arange(count, dtype=KEY), _CHILD)
        rows = [_stream(k, 0, _CHILD, 4 * count).reshape(count, 4)[:, :2] for k in np.reshape(key, (-1, 2))]
        return np.reshape(np.array(rows, KEY), (*key.shape[:-1], count, 2))

    def compose(self, key: Any, *, count: int) -> Any:
        if count == 0:
            return np.zeros((*shape_of(key)[:-1], 0, 2), KEY)
        number = iota(np.broadcast_to(np.zeros((), KEY), (count,)), axis=0, dtype=KEY)
        return np.stack([word(key[..., None, 0], key[..., None, 1], number, _number(_CHILD)) for word in WORDS[:2]], axis=-1)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, count: int) -> Any:
        return self(args[0], count=count)


class Fold(Primitive):
    """Keys from keys and numbers: (*lead, 2), (*lead) uint64 -> (*lead, 2), where leading axes broadcast."""

    constant = True

    def infer(self, key: Aval, data: Aval) -> Aval:
        check_key(self.name, key)
        return Aval((*np.broadcast_shapes(key.shape[:-1], data.shape), 2), KEY)

    def impl(self, key: Any, data: Any) -> Any:
        check_key(self.name, key)
        data = np.asarray(data, KEY)
        if key.ndim == 1 and data.ndim == 0:
            return _stream(key, int(data), _FOLD, 2)
        return _keys(key[..., 0], key[..., 1], data, _FOLD)

    def compose(self, key: Any, data: Any) -> Any:
        return np.stack([word(key[..., 0], key[..., 1], data, _number(_FOLD)) for word in WORDS[:2]], axis=-1)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        key, data = args
        rank = max(np.ndim(key) - 1 - batched[0], np.ndim(data) - batched[1])
        if batched[0]:
            n, *rest, two = shape_of(key)
            key = np.reshape(key, (n, *(1,) * (rank - len(rest)), *rest, two))
        if batched[1]:
            n, *rest = shape_of(data)
            data = np.reshape(data, (n, *(1,) * (rank - len(rest)), *rest))
        return self(key, data)


def _keys(k0: Any, k1: Any, low: Any, purpose: int) -> Any:
    """The first two words of blocks, as keys."""
    return np.stack(np.broadcast_arrays(*philox(k0, k1, low, _number(purpose))[:2]), axis=-1)


random_bits = RandomBits("random_bits")
children = Children("split_key")
fold = Fold("fold_in_key")


# -- draws with a loop for each number ------------------------------------------------------------------------------------


class Draws(Primitive):
    """A number for each entry of the arguments, which have one shape (*lead, *shape), by a loop that ends by chance.

    Entry i of the rest of a row uses the blocks of key and i, so it does not depend on the other entries.
    """

    constant = True

    def __init__(self, name: str, kernel: Callable[..., Any], dtype: type[Any]) -> None:
        super().__init__(name)
        self.kernel, self.dtype = kernel, np.dtype(dtype)

    def infer(self, key: Aval, *args: Aval, **params: Any) -> Aval:
        check_key(self.name, key)
        lead = key.shape[:-1]
        if any(a.shape[: len(lead)] != lead or a.shape != args[0].shape for a in args):
            raise ShapeError(f"{self.name}: one key for each row", got={"key": key, "arguments": args})
        return Aval(args[0].shape, self.dtype)

    def impl(self, key: Any, *args: Any, **params: Any) -> Any:
        out = self.infer(aval_of(key), *map(aval_of, args))
        keys = math.prod(key.shape[:-1])
        rows = [np.require(a, np.float64, ["C", "W"]).reshape(keys, math.prod(out.shape[key.ndim - 1 :])) for a in args]
        drawn = np.empty(rows[0].shape, out.dtype)
        self.kernel(np.require(key, KEY, ["C", "W"]).reshape(keys, 2), *rows, *params.values(), drawn)
        return drawn.reshape(out.shape)[()]

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        n = next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)
        return self(*[a if b else np.broadcast_to(a, (n, *shape_of(a))) for a, b in zip(args, batched, strict=True)], **params)


class GammaDraws(Draws):
    """Of the gamma distribution with the scale 1, or their logarithms.

    The derivative by the shape parameter a moves the draw so that its quantile stays: dx/da = -(dF/da) / (dF/dx).
    """

    constant = False

    def vjp(self, out: Any, key: Any, a: Any, *, log: bool) -> Sequence[Pullback | None]:
        return None, lambda g: guarded(g, gamma_slope(a, out, log=log))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, log: bool) -> Any:
        return None if tangents[1] is None else guarded(tangents[1], gamma_slope(args[1], out, log=log))


@functools.cache
def _legendre() -> tuple[Any, Any]:
    """Nodes and weights of the quadrature of Gauss and Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    return 0.5 + 0.5 * nodes, 0.5 * weights


class GammaSlope(Primitive):
    """How a draw x of the gamma distribution moves with a, at a fixed quantile: dx/da, or dlog(x)/da for log(x)."""

    def infer(self, a: Aval, x: Aval, *, log: bool) -> Aval:
        return Aval(np.broadcast_shapes(a.shape, x.shape), np.dtype(np.float64))

    def impl(self, a: Any, x: Any, *, log: bool) -> Any:
        a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
        out = np.empty(a.shape)
        flat = [np.array(v, order="C").ravel() for v in (a, x)]
        with np.errstate(all="ignore"):
            psi = np.asarray(_scipy.special().digamma(flat[0]))
        draws.gamma_slope(*flat, psi, log, *_legendre(), out.reshape(-1))
        return out[()]

    def vjp(self, out: Any, *args: Any, **params: Any) -> NoReturn:
        raise UnsupportedError(
            "a draw of the gamma distribution has one derivative by its parameter, and no second one",
            fix="differentiate once, or pass the parameter through fnad.stop_gradient",
        )

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> NoReturn:
        self.vjp(out, *args)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, log: bool) -> Any:
        return self(*args, log=log) if all(batched) else self(*[a if b else a[None] for a, b in zip(args, batched, strict=True)], log=log)


class Orthonormal(Primitive):
    """The orthonormal columns of the QR decomposition whose R has a positive diagonal: (..., n, m) -> (..., n, m), n >= m."""

    def infer(self, x: Aval) -> Aval:
        return x

    def impl(self, x: Any) -> Any:
        q, r = np.linalg.qr(x)
        return q * np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, q.dtype.type(-1), q.dtype.type(1))[..., None, :]

    def vjp(self, out: Any, x: Any) -> NoReturn:
        raise UnsupportedError("the columns of a random orthogonal matrix have no derivative")

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> NoReturn:
        self.vjp(out, *args)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


orthonormal = Orthonormal("orthonormal_columns")
gamma_draws = GammaDraws("gamma_draws", draws.gamma, np.float64)
gamma_slope = GammaSlope("gamma_slope")
poisson_draws = Draws("poisson_draws", draws.poisson, np.int64)
binomial_draws = Draws("binomial_draws", draws.binomial, np.int64)
