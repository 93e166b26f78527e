"""The programs in PyTorch's style: what they print, and what they reach."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(name, *options, cwd):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *options], capture_output=True, text=True, timeout=300, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def test_linear_prints_parameters_losses_and_gradients_that_belong_together(tmp_path):
    text = run("torch_style_linear.py", cwd=tmp_path).stdout
    losses = [float(x) for x in re.findall(r"^Epoch \d, Loss: (.*)$", text, re.M)]
    assert len(losses) == 3
    assert losses == sorted(losses, reverse=True)
    number = r"\s*(-?\d+\.\d{4})"
    weights = np.array(re.findall(rf"^weight: tensor\(\[\[{number},{number}\]\]\)", text, re.M), float)
    gradients = np.array(re.findall(rf"^weight gradient: tensor\(\[\[{number},{number}\]\]\)$", text, re.M), float)
    np.testing.assert_allclose(np.diff(weights, axis=0), -0.1 * gradients, atol=2e-4)
    assert len(re.findall(rf"^bias: tensor\(\[{number}\]\), requires_grad: True$", text, re.M)) == 3


def test_classifier_learns(tmp_path):
    for needed in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(needed)
    done = run("torch_style_classifier.py", "--epochs", "12", "--out", "out", cwd=tmp_path)
    loss, accuracy, count = re.search(r"loss ([\d.]+), test accuracy ([\d.]+) on (\d+) held-out", done.stdout).groups()
    assert float(loss) < 0.15
    assert float(accuracy) > 0.93
    assert count == "360"
    assert "loss=" in done.stderr
    assert (tmp_path / "out" / "loss.png").read_bytes().startswith(b"\x89PNG")
