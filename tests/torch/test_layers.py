"""Layers and losses give what PyTorch 2.13 gave: see `layer_cases.py`."""

import json
import math
import pathlib

import pytest

import fnad.torch

from . import layer_cases

RECORDED = json.loads(pathlib.Path(__file__).with_name("layers.json").read_text())["cases"]
CASES = dict(layer_cases.each())
TOLERANCE = {"Hardsigmoid": 1e-7, "CELU": 1e-7}  # PyTorch's constants are float32


@pytest.mark.filterwarnings("ignore:Using padding=:UserWarning")
@pytest.mark.parametrize("call", CASES)
def test_as_pytorch(call):
    tolerance = TOLERANCE.get(call.split("(")[0], 1e-10)
    (text, names, found), (their_text, their_names, wanted) = layer_cases.answers(fnad.torch, call, CASES[call]), RECORDED[call]
    assert (text == their_text or "Loss" in call, names) == (True, their_names)
    assert len(found) == len(wanted)
    for k, (f, w) in enumerate(zip(found, wanted, strict=True)):
        assert (f is None) == (w is None), k
        if w is not None:
            assert f[:2] == w[:2], k
            for a, b in zip(f[2:], w[2:], strict=True):
                assert math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance * (1 + w[3])), (k, f, w)


def test_every_recorded_case_is_run():
    assert set(CASES) == set(RECORDED)
