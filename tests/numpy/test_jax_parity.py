"""Values, gradients and second derivatives as JAX computes them (recorded by `tests/peers/record_jax.py`)."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import fnad
import fnad.scipy.linalg

from . import jax_programs

RECORDED = json.loads((pathlib.Path(__file__).parent / "functions_jax.json").read_text())["programs"]
PROGRAMS = jax_programs.programs(np, fnad.scipy.linalg, np.maximum.accumulate)
ARGUMENTS = {
    "SIGNAL": np.array(jax_programs.SIGNAL),
    "MATRIX": np.array(jax_programs.MATRIX),
    "SPECTRUM": np.array(jax_programs.SPECTRUM) @ [1.0, 1.0j],
}


def test_all_are_recorded():
    assert list(RECORDED) == list(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name):
    argument, f = PROGRAMS[name]
    x, want = ARGUMENTS[argument], RECORDED[name]
    value, gradient = fnad.value_and_grad(f)(x)
    np.testing.assert_allclose(value, want["value"], rtol=1e-11)
    real, imaginary = map(np.array, want["gradient"])
    np.testing.assert_allclose(gradient, real + 1j * imaginary if x.dtype.kind == "c" else real, rtol=1e-9, atol=1e-11)
    if "hvp" in want:
        np.testing.assert_allclose(fnad.hvp(f, (x,), (np.ones_like(x),)), want["hvp"], rtol=1e-8, atol=1e-9)
