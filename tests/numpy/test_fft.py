"""np.fft: every function with its lengths, axes and norms, in both modes, under vmap and jit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import DTypeError, InPlaceError

from .agree import agrees, same

RNG = np.random.default_rng(4)
X = RNG.normal(size=(4, 5))
Z = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))


def parts(z):
    """A complex result as real numbers."""
    return np.concatenate([np.real(z).ravel(), np.imag(z).ravel()])


OF_REAL = {
    "fft": lambda x: parts(np.fft.fft(x)),
    "fft shorter": lambda x: parts(np.fft.fft(x, 3, axis=0)),
    "fft longer": lambda x: parts(np.fft.fft(x, n=8, norm="ortho")),
    "ifft": lambda x: parts(np.fft.ifft(x, axis=0)),
    "rfft": lambda x: parts(np.fft.rfft(x)),
    "rfft longer": lambda x: parts(np.fft.rfft(x, 7, 0, "forward")),
    "ihfft": lambda x: parts(np.fft.ihfft(x, 4)),
    "ihfft ortho": lambda x: parts(np.fft.ihfft(x, axis=0, norm="ortho")),
    "irfft": lambda x: np.fft.irfft(x),
    "irfft odd": lambda x: np.fft.irfft(np.fft.rfft(x, axis=0), 5, axis=0),
    "hfft": lambda x: np.fft.hfft(x, norm="forward"),
    "hfft odd": lambda x: np.fft.hfft(np.fft.fft(x), 7),
    "fftn": lambda x: parts(np.fft.fftn(x)),
    "fftn sizes": lambda x: parts(np.fft.fftn(x, s=(3, -1), axes=(1, 0), norm="ortho")),
    "ifftn": lambda x: parts(np.fft.ifftn(x, axes=(0,))),
    "fftn axis twice": lambda x: parts(np.fft.fftn(x, axes=(0, 0))),
    "fft2": lambda x: parts(np.fft.fft2(x)),
    "ifft2": lambda x: parts(np.fft.ifft2(x, (6, 2))),
    "rfft2": lambda x: parts(np.fft.rfft2(x)),
    "rfftn": lambda x: parts(np.fft.rfftn(x, axes=(1, 0))),
    "irfft2": lambda x: np.fft.irfft2(x),
    "irfftn": lambda x: np.fft.irfftn(np.fft.rfftn(x, norm="ortho"), s=(4, 5), axes=(0, 1), norm="ortho"),
    "irfftn whole axis": lambda x: np.fft.irfftn(x, s=(-1, -1), axes=(0, 1)),
    "fftshift": lambda x: np.fft.fftshift(x) * np.fft.ifftshift(x, axes=1) + np.fft.fftshift(x, 0),
    "filter": lambda x: np.fft.irfft(np.fft.rfft(x) * np.exp(-np.fft.rfftfreq(5)), 5),
    "power": lambda x: np.abs(np.fft.fft(x)) ** 2,
}


@pytest.mark.parametrize("name", OF_REAL)
def test_as_numpy(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agrees(OF_REAL[name], X, rounds=name in ("filter", "power", "irfft odd", "irfftn"))


@pytest.mark.parametrize("name", ["fft", "ifft", "fftn", "fft2", "irfft", "hfft", "irfftn", "fftshift"])
def test_of_complex_numbers(name):
    function = getattr(np.fft, name)
    same(fnad.vjp(function, Z)[0], function(Z))
    fnad.testing.check_grads(function, (Z,))
    same(fnad.jit(function)(Z), function(Z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int64, np.float16])
def test_dtypes(dtype):
    x = np.arange(6).astype(dtype)
    for f in (np.fft.fft, np.fft.rfft, np.fft.ifft, np.fft.fftn):
        if f is np.fft.rfft and np.dtype(dtype).kind == "c":
            continue
        same(fnad.jit(f)(x), f(x))
        if np.dtype(dtype).kind != "i":
            out, pull = fnad.vjp(f, x)
            assert pull(np.ones_like(out))[0].dtype == dtype


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([None, "backward", "ortho", "forward"]))
def test_transposes_of_each_other(have, n, norm):
    """<y, F x> == <F' y, x> as real numbers, for each length and norm."""
    rng = np.random.default_rng(have * 10 + n)
    z = rng.normal(size=have) + 1j * rng.normal(size=have)
    for f, x in ((np.fft.fft, z), (np.fft.ifft, z), (np.fft.irfft, z), (np.fft.hfft, z), (np.fft.rfft, z.real), (np.fft.ihfft, z.real)):
        out, pull = fnad.vjp(lambda x, f=f: f(x, n, norm=norm), x)
        same(out, f(x, n, norm=norm))
        y = rng.normal(size=out.shape) + (1j * rng.normal(size=out.shape) if out.dtype.kind == "c" else 0)
        np.testing.assert_allclose(np.sum(y * out).real, np.sum(pull(y)[0] * x).real, atol=1e-12)


def test_parseval():
    """The gradient of the energy of a spectrum is that of the signal."""
    x = RNG.normal(size=16)
    loss = lambda x: np.sum(np.abs(np.fft.fft(x, norm="ortho")) ** 2)
    np.testing.assert_allclose(fnad.grad(loss)(x), 2 * x, atol=1e-13)
    np.testing.assert_allclose(fnad.jit(fnad.grad(loss))(x), 2 * x, atol=1e-13)
    np.testing.assert_allclose(fnad.hvp(loss, (x,), (np.ones(16),)), 2 * np.ones(16), atol=1e-13)
    assert "fft" in [h.equation.primitive.name for h in fnad.explain(loss)(x).hosts]


def test_frequencies_of_a_traced_spacing():
    slope = fnad.grad(lambda d: np.sum(np.fft.fftfreq(5, d) ** 2))(2.0)
    np.testing.assert_allclose(slope, -2 * np.sum(np.fft.fftfreq(5, 1.0) ** 2) / 2.0**3, rtol=1e-14)


def test_mistakes():
    x = np.ones(4)
    for bad in (
        lambda x: np.fft.fft(x, 0),
        lambda x: np.fft.fft(x, norm="of"),
        lambda x: np.fft.fft2(x[None], (3,)),
        lambda x: np.fft.rfftn(x, axes=()),
        lambda x: np.fft.irfftn(x, axes=()),
        lambda x: np.fft.irfft(x[:1]),
    ):
        with pytest.raises(ValueError):
            fnad.vjp(bad, x)
    with pytest.raises(np.exceptions.AxisError):
        fnad.vjp(lambda x: np.fft.fft(x, axis=1), x)
    with pytest.raises(DTypeError):
        fnad.vjp(lambda x: np.fft.rfft(x * 1j), x)
    with pytest.raises(InPlaceError):
        fnad.vjp(lambda x: np.fft.fft(x, out=np.empty(4, complex)), x)
