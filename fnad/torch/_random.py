"""Random tensors. Their streams are NumPy's (Philox), not PyTorch's."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError
from fnad.torch import _dtypes
from fnad.torch._call import rebind, writable
from fnad.torch._creation import finished
from fnad.torch._dtypes import as_numpy
from fnad.torch._shapes import sizes_of
from fnad.torch._streams import CURRENT, Keyed, plain
from fnad.torch._tensor import Tensor, make, method


class Generator:
    """A stream of random numbers.

    Args:
        device: The CPU.

    Example:
        >>> import fnad.torch as torch
        >>> g = torch.Generator().manual_seed(0)
        >>> a = torch.rand(3, generator=g)
        >>> torch.equal(a, torch.rand(3, generator=g.manual_seed(0)))
        True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream of a seed."""
        self._seed = operator.index(seed)
        self.numpy = np.random.Generator(np.random.Philox(self._seed % 2**64))
        return self

    def seed(self) -> int:
        """Begin a stream that nobody knows."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1))
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> Any:
        """The state, as a tensor of bytes."""
        s = self.numpy.bit_generator.state
        numbers = np.array([s["buffer_pos"], s["has_uint32"], s["uinteger"], self._seed % 2**64], np.uint64)
        words = np.concatenate([s["state"]["counter"], s["state"]["key"], s["buffer"], numbers])
        return make(words.astype(np.uint64).view(np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        """Go on from a state of `get_state`."""
        words = np.ascontiguousarray(state._data).view(np.uint64)
        if words.size != 14:
            raise ArgumentError("the state of a Generator is what get_state() gave", got={"bytes": state._data.size})
        self._seed = int(words[13])
        self.numpy.bit_generator.state = {
            "bit_generator": "Philox",
            "state": {"counter": words[:4].copy(), "key": words[4:6].copy()},
            "buffer": words[6:10].copy(),
            "buffer_pos": int(words[10]),
            "has_uint32": int(words[11]),
            "uinteger": int(words[12]),
        }
        return self


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Begin the stream of a seed for everything that draws without a Generator of its own."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Begin a stream that nobody knows, and return its seed."""
    return default_generator.seed()


def initial_seed() -> int:
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    default_generator.set_state(state)


def draws(generator: Generator | None) -> Any:
    """What draws: a generator, or the key of a module that runs as a pure function."""
    if generator is None and CURRENT.stream is not None:
        return CURRENT.stream
    return (default_generator if generator is None else generator).numpy


def draw_key(generator: Generator | None = None) -> Any:
    """A key of `fnad.random` from the stream that `torch.manual_seed` begins."""
    source = draws(generator)
    return source.next() if isinstance(source, Keyed) else source.integers(0, 2**64, 2, np.uint64)


def _dtype(dtype: Any) -> np.dtype[Any]:
    return _dtypes.DEFAULT.floating if dtype is None else as_numpy(dtype)


def _wide(dtype: np.dtype[Any]) -> Any:
    return np.float64 if dtype.itemsize > 4 else np.float32


def _as(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


def _uniform(shape: tuple[int, ...], dtype: np.dtype[Any], generator: Generator | None) -> Any:
    return _as(draws(generator).random(shape, _wide(dtype)), dtype)


def _normal(shape: tuple[int, ...], dtype: np.dtype[Any], generator: Generator | None) -> Any:
    return _as(draws(generator).standard_normal(shape, _wide(dtype)), dtype)


def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Uniform numbers in [0, 1)."""
    return finished(plain(_uniform(sizes_of(size), _dtype(dtype), generator)), requires_grad)


def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Normal numbers."""
    return finished(plain(_normal(sizes_of(size), _dtype(dtype), generator)), requires_grad)


def rand_like(input: Any, *, dtype: Any = None, generator: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Uniform numbers, shaped like a tensor."""
    return rand(input._data.shape, dtype=input.dtype if dtype is None else dtype, generator=generator, requires_grad=requires_grad)


def randn_like(input: Any, *, dtype: Any = None, generator: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Normal numbers, shaped like a tensor."""
    return randn(input._data.shape, dtype=input.dtype if dtype is None else dtype, generator=generator, requires_grad=requires_grad)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """Integers from `low` (0 if there is one number only) up to, and without, `high`."""
    if size is None:
        low, high, size = 0, low, high
    out = draws(generator).integers(low, high, sizes_of((size,)))
    return make(plain(_as(plain(out), np.int64 if dtype is None else as_numpy(dtype))))


def randint_like(input: Any, low: int, high: Any = None, **options: Any) -> Any:
    """Integers, shaped like a tensor, in its dtype."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input._data.shape, dtype=options.pop("dtype", input.dtype), **options)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """The numbers from 0 to n - 1 in random order."""
    return make(_as(draws(generator).permutation(n), np.int64 if dtype is None else as_numpy(dtype)))


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> Any:
    """Normal numbers of given means and standard deviations."""
    m, s = (x._data if isinstance(x, Tensor) else x for x in (mean, std))
    shape = np.broadcast_shapes(np.shape(m), np.shape(s)) if size is None else sizes_of((size,))
    return make(_as(plain(_normal(shape, _dtypes.DEFAULT.floating, generator) * s + m), _dtypes.DEFAULT.floating))


@method()
def bernoulli(input: Any, *, generator: Any = None) -> Any:
    """1 with the given probabilities, else 0."""
    return make(_as(plain(draws(generator).random(input._data.shape) < input._data), input._data.dtype))


@method()
def multinomial(input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Positions drawn with given weights, from each row."""
    rows = np.atleast_2d(input._data).astype(np.float64)
    g = draws(generator)
    out = np.stack([g.choice(rows.shape[1], num_samples, replace=replacement, p=row / row.sum()) for row in rows])
    return make((out if input._data.ndim == 2 else out[0]).astype(np.int64))


def _fill(x: Any, values: Any) -> Any:
    writable(x)
    if isinstance(x._data, Tracer) or isinstance(values, Tracer):
        rebind(x, make(_as(values, x._data.dtype)))
        return x
    np.copyto(x._data, values, casting="unsafe")
    x._counter[0] += 1
    return x


@method()
def uniform_(self: Any, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Any:
    """Uniform numbers in [a, b), in place."""
    return _fill(self, a + (b - a) * _uniform(self._data.shape, self._data.dtype, generator))


@method()
def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Normal numbers, in place."""
    return _fill(self, mean + std * _normal(self._data.shape, self._data.dtype, generator))


@method()
def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """1 with the given probabilities, else 0, in place."""
    return _fill(self, draws(generator).random(self._data.shape) < (p._data if isinstance(p, Tensor) else p))


@method()
def random_(self: Any, low: int = 0, high: Any = None, *, generator: Any = None) -> Any:
    """Integers, in place."""
    low, high = (0, low if low else 2**24) if high is None else (low, high)
    return _fill(self, draws(generator).integers(low, high, self._data.shape))


@method()
def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Exponential numbers, in place."""
    return _fill(self, draws(generator).exponential(1 / lambd, self._data.shape))
