"""Samples of the Fourier transforms."""

from __future__ import annotations

import numpy as np

from .samples import Sample, cplx, real, samples

NORMS = ("backward", "ortho", "forward")


def transforms(rng):
    return [
        *(Sample((cplx(rng, 2, n),), {"axis": 1, "norm": norm}) for n, norm in zip((5, 4, 6), NORMS, strict=True)),
        *(Sample((real(rng, n, 2),), {"axis": 0, "norm": norm}) for n, norm in zip((4, 5, 3), NORMS, strict=True)),
        Sample((cplx(rng, 1),), {"axis": 0, "norm": "ortho"}),
        Sample((cplx(rng, 0, 3),), {"axis": 1, "norm": "backward"}),
    ]


samples("fft")(transforms)
samples("ifft")(transforms)


@samples("rfft")
def _(rng):
    return [
        *(Sample((real(rng, n, 2),), {"axis": 0, "norm": norm}) for n in (1, 2, 5, 6) for norm in NORMS),
        Sample((real(rng, 2, 4),), {"axis": 1, "norm": "backward"}),
        Sample((real(rng, 0, 3),), {"axis": 1, "norm": "backward"}),
        Sample((np.arange(4),), {"axis": 0, "norm": "backward"}),
    ]


@samples("irfft")
def _(rng):
    return [
        *(Sample((cplx(rng, n // 2 + 1, 2),), {"axis": 0, "n": n, "norm": norm}) for n in (1, 2, 5, 6) for norm in NORMS),
        Sample((cplx(rng, 2, 3),), {"axis": 1, "n": 4, "norm": "backward"}),
        Sample((cplx(rng, 0, 3),), {"axis": 1, "n": 5, "norm": "backward"}),
    ]
