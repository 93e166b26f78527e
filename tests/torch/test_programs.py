"""Programs of PyTorch give what PyTorch 2.13 gave: values, gradients, dtypes, texts, kinds of errors."""

from __future__ import annotations

import json
import math
import pathlib

import pytest

import fnad.torch

from .more_programs import program as _  # noqa: F401  registers its programs
from .nn_programs import PROGRAMS
from .programs import plain

RECORDED = json.loads(pathlib.Path(__file__).with_name("recorded.json").read_text())["programs"]
# PyTorch keeps some numbers of NAdam's and ASGD's state in float32, fnad in float64.
TOLERANCE = {"optimizers": 1e-8}


def differences(got, want, tolerance, path=""):
    if isinstance(want, dict):
        assert isinstance(got, dict), path
        assert list(got) == list(want), path
        for k in want:
            differences(got[k], want[k], tolerance, f"{path}[{k!r}]")
    elif isinstance(want, list):
        assert isinstance(got, list), path
        assert len(got) == len(want), path
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            differences(g, w, tolerance, f"{path}[{i}]")
    elif isinstance(want, float) and math.isfinite(want):
        assert isinstance(got, float), path
        assert math.isclose(got, want, rel_tol=tolerance, abs_tol=tolerance), (path, got, want)
    else:
        assert type(got) is type(want), path
        assert got == want or (got != got and want != want), (path, got, want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    got = json.loads(json.dumps(plain(PROGRAMS[name](fnad.torch))))
    differences(got, RECORDED[name], TOLERANCE.get(name, 1e-12), name)


def test_every_recorded_program_is_run():
    assert set(RECORDED) == set(PROGRAMS)
