"""Programs that run under NumPy's and JAX's namespaces alike: what `record_jax.py` records and `test_jax_parity.py` compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SPECTRUM = [[1.0, 2.0], [0.5, -1.0], [-0.3, 0.2], [2.0, 0.0], [0.0, 1.0]]
"""Real and imaginary parts."""
SIGNAL = [1.0, 2.0, -1.0, 0.5, 3.0, 0.2]
MATRIX = [[4.0, 1.0, 0.3], [2.0, 5.0, 1.0], [0.5, 1.5, 3.0]]


def programs(np: Any, linalg: Any, running_max: Callable[[Any], Any]) -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Name -> the argument's name and a function of it that returns a real number."""
    weights = np.arange(1.0, 6.0)
    return {
        "fft": ("SPECTRUM", lambda z: np.sum(np.abs(np.fft.fft(z)) ** 2 * weights)),
        "ifft": ("SPECTRUM", lambda z: np.sum(np.real(np.fft.ifft(z, 4, norm="ortho") ** 3))),
        "irfft odd": ("SPECTRUM", lambda z: np.sum(np.fft.irfft(z, 7) ** 3)),
        "irfft even": ("SPECTRUM", lambda z: np.sum(np.fft.irfft(z) ** 3)),
        "hfft": ("SPECTRUM", lambda z: np.sum(np.fft.hfft(z) ** 3)),
        "rfft": ("SIGNAL", lambda x: np.sum(np.real(np.fft.rfft(x)) * weights[:4] + np.imag(np.fft.rfft(x)) ** 2)),
        "rfft2": ("MATRIX", lambda a: np.sum(np.abs(np.fft.rfft2(a)) ** 4)),
        "sort": ("SIGNAL", lambda x: np.sum(np.sort(x)[1:] ** 2 * weights)),
        "quantile": ("SIGNAL", lambda x: np.quantile(x, 0.3) ** 2 + np.median(x) * np.percentile(x, 90, method="linear")),
        "interp": ("SIGNAL", lambda x: np.sum(np.interp(x, weights, np.sin(weights)) ** 2)),
        "running maximum": ("SIGNAL", lambda x: np.sum(running_max(x) ** 3)),
        "convolve": ("SIGNAL", lambda x: np.sum(np.convolve(x, weights, "same") ** 2)),
        "cov": ("MATRIX", lambda a: np.sum(np.cov(a) ** 2) + np.corrcoef(a)[0, 1]),
        "svd values": ("MATRIX", lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 3)),
        "svd": ("MATRIX", lambda a: np.sum(np.linalg.svd(a, full_matrices=False)[0] ** 2 * a)),
        "qr": ("MATRIX", lambda a: np.sum(np.sin(np.linalg.qr(a)[0])) + np.sum(np.cos(np.linalg.qr(a)[1]))),
        "pinv": ("MATRIX", lambda a: np.sum(np.linalg.pinv(a[:, :2]) ** 2)),
        "lstsq": ("MATRIX", lambda a: np.sum(np.linalg.lstsq(a[:, :2], a[:, 2])[0] ** 2)),
        "eigvals": ("MATRIX", lambda a: np.sum(np.real(np.linalg.eigvals(a) ** 3))),
        "lu": ("MATRIX", lambda a: np.sum(linalg.lu_factor(a)[0] ** 2)),
        "cho_solve": ("MATRIX", lambda a: np.sum(linalg.cho_solve(linalg.cho_factor(a @ a.T), a[0]) ** 2)),
        "solve_triangular": ("MATRIX", lambda a: np.sum(linalg.solve_triangular(a, a[:, 0], lower=True, trans=1) ** 2)),
        "expm": ("MATRIX", lambda a: np.sum(linalg.expm(0.3 * a) ** 2)),
    }
