"""Functions of `torch` and methods of tensors give what PyTorch 2.13 gave: see `function_cases.py`."""

import json
import math
import pathlib

import pytest

import fnad.torch

from . import function_cases

RECORDED = json.loads((pathlib.Path(__file__).with_name("functions.json")).read_text())["cases"]


def same(got, want, path=""):
    if isinstance(want, list):
        assert isinstance(got, list), path
        assert len(got) == len(want), path
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            same(g, w, f"{path}[{i}]")
    elif isinstance(want, float) and math.isfinite(want):
        assert math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), (path, got, want)
    else:
        assert got == want or (got != got and want != want), (path, got, want)


@pytest.mark.parametrize("name", function_cases.CASES)
def test_as_pytorch(name):
    same(json.loads(json.dumps(function_cases.answers(fnad.torch, name))), RECORDED[name])


def test_every_recorded_function_is_run():
    assert set(function_cases.CASES) == set(RECORDED)
