"""The programs that differentiate numba loops: what they reach, and their plots."""

import pathlib
import re
import subprocess
import sys

import pytest

for needed in ("matplotlib", "tqdm"):
    pytest.importorskip(needed)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(name, *options, out):
    command = [sys.executable, str(EXAMPLES / name), "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=out.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_heat_inverse_finds_the_profile(tmp_path):
    text = run("heat_inverse.py", "--iterations", "150", out=tmp_path / "out")
    before, after, error = map(float, re.search(r"loss ([\d.]+) to ([\d.]+), error of the profile ([\d.]+)", text).groups())
    assert after < 1e-3 * before
    assert error < 0.1
    assert (tmp_path / "out" / "heat.png").read_bytes().startswith(b"\x89PNG")
