"""GradBench's problems answer what JAX's programs for them answer; the two descents, what the suite itself has written down.

Most of them run as plain Python here, loops included. Compiled they are in `slow`, and some everywhere.
"""

from __future__ import annotations

import importlib
import io
import json
import pathlib

import numpy as np
import pytest

import fnad
from fnad import _numba
from fnad.loops import ir

from .gradbench import descent, particle, protocol, saddle
from .gradbench_inputs import inputs

CASES = inputs()
ANSWERS = json.loads((pathlib.Path(__file__).parent / "gradbench_answers.json").read_text())["answers"]
CALLS = [(case, function) for case, (_, functions, _) in CASES.items() for function in functions]
QUICK = {"hello", "lse", "llsq", "kmeans"}
KNOWN = {"particle": 0.2071918746486116, "saddle": [8.246324826140356e-06] * 4}
STARTS = {"particle": {"w": 0.0}, "saddle": {"start": [1.0, 1.0]}}
MODES = ("rr", "rf", "fr", "ff")


def blocks(output, path=""):
    """The numbers of an answer, by the path of keys that leads to them."""
    if isinstance(output, dict):
        return {k: v for key, item in output.items() for k, v in blocks(item, f"{path}.{key}").items()}
    return {path: np.array(output, float)}


def agree(found, expected):
    found, expected = blocks(found), blocks(expected)
    assert found.keys() == expected.keys()
    for path, want in expected.items():
        assert found[path].shape == want.shape, path
        np.testing.assert_allclose(found[path], want, rtol=0, atol=1e-10 * np.max(np.abs(want)), err_msg=path)


@pytest.mark.parametrize(("case", "function"), CALLS)
def test_answers_agree(case, function):
    problem, _, input = CASES[case]
    with fnad.disable_jit():
        agree(protocol.evaluate(problem, function, input)[0], ANSWERS[case][function])


@pytest.mark.parametrize(("case", "function"), [pytest.param(*c, marks=[] if c[0] in QUICK else pytest.mark.slow) for c in CALLS])
def test_compiled_answers_agree(case, function):
    problem, _, input = CASES[case]
    agree(protocol.evaluate(problem, function, input)[0], ANSWERS[case][function])


@pytest.fixture
def as_python(monkeypatch):
    """What numba would compile runs as it is."""

    def kind(x):
        if isinstance(x, tuple):
            return tuple(map(kind, x))
        a = np.asarray(x)
        return ir.Array(a.dtype, a.ndim) if a.ndim else ir.Scalar(a.dtype)

    monkeypatch.setattr(_numba, "compiled", lambda function, options: function)
    monkeypatch.setattr(_numba, "by_types", lambda text, *_: lambda *args: text(tuple(map(kind, args)))(*args))
    monkeypatch.setattr(_numba.Kernel, "__call__", lambda self, *args: self.py_func(*args))
    for f in (descent.argmin, descent.moved, descent.norm, particle.potential, saddle.height, saddle.depth):
        monkeypatch.setattr(f, "_compiled", f.py_func)


@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize("problem", KNOWN)
def test_descents_in_all_modes(problem, modes, as_python):
    module = importlib.import_module(f".gradbench.{problem}", __package__)
    search = module.search(*(descent.MODES[m] for m in modes))
    args = module.prepare(STARTS[problem])
    found = search(*args)
    found = module.answer(modes, found, args) if problem == "saddle" else found
    np.testing.assert_allclose(found, KNOWN[problem], rtol=1e-12)


@pytest.mark.parametrize("modes", [pytest.param(m, marks=[] if m == "fr" else pytest.mark.slow) for m in MODES])
@pytest.mark.parametrize("problem", KNOWN)
def test_compiled_descents_in_all_modes(problem, modes):
    np.testing.assert_allclose(protocol.evaluate(problem, modes, STARTS[problem])[0], KNOWN[problem], rtol=1e-12)


def test_protocol():
    requests = [
        {"kind": "start", "eval": "hello"},
        {"kind": "define", "module": "hello"},
        {"kind": "evaluate", "module": "hello", "function": "double", "input": 3.0},
        {"kind": "evaluate", "module": "lse", "function": "primal", "input": {"x": [0.0, 0.0], "min_runs": 3, "min_seconds": 0.0}},
        {"kind": "evaluate", "module": "hello", "function": "triple", "input": 3.0},
        {"kind": "define", "module": "nothing"},
        {"kind": "analysis", "of": 2, "valid": True},
    ]
    lines = io.StringIO("".join(json.dumps({"id": k, **r}) + "\n" for k, r in enumerate(requests)))
    out = io.StringIO()
    protocol.serve(lines, out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [a.pop("id") for a in answers] == list(range(len(requests)))
    start, define, double, primal, triple, nothing, analysis = answers
    assert start == {"tool": "fnad"}
    assert define == {"success": True}
    assert double["output"] == 6.0
    assert primal["output"] == pytest.approx(np.log(2.0))
    assert [t["name"] for t in primal["timings"]].count("evaluate") == 3
    assert not triple["success"]
    assert "KeyError" in triple["error"]
    assert not nothing["success"]
    assert "no problem 'nothing'" in nothing["error"]
    assert analysis == {}
