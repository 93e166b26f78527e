"""The main job: it reaches its accuracy, writes its plots, and repeats itself."""

import pathlib
import re
import subprocess
import sys

import pytest

for needed in ("sklearn", "matplotlib", "tqdm"):
    pytest.importorskip(needed)

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "train_digits.py"


def run(out, *options):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--out", str(out), *options], capture_output=True, text=True, timeout=300, cwd=out.parent
    )
    assert done.returncode == 0, done.stderr
    return done


def results(done):
    return re.search(r"test loss ([\d.]+), test accuracy ([\d.]+) on (\d+) held-out images", done.stdout.splitlines()[-1]).groups()


def test_accuracy_and_plots(tmp_path):
    done = run(tmp_path / "out")
    _, accuracy, count = results(done)
    assert float(accuracy) >= 0.97
    assert count == "360"
    assert "loss=" in done.stderr  # the progress bar
    for name in ("loss.png", "mistakes.png"):
        content = (tmp_path / "out" / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5000


def test_same_seed_same_result(tmp_path):
    options = ["--epochs", "2", "--batch-size", "64", "--lr", "0.05"]
    first, second, other = (run(tmp_path / n, *options, "--seed", seed) for n, seed in (("a", "1"), ("b", "1"), ("c", "2")))
    assert results(first) == results(second) != results(other)
    assert (tmp_path / "a" / "mistakes.png").read_bytes() == (tmp_path / "b" / "mistakes.png").read_bytes()


def test_without_jit_the_result_is_the_same(tmp_path):
    compiled, eager = (run(tmp_path / n, "--epochs", "3", *more) for n, more in (("a", ()), ("b", ("--no-jit",))))
    assert results(compiled) == results(eager)
    assert re.search(r"[\d,]+ images per second, ", compiled.stdout)
    assert re.search(r"[\d,]+ images per second without jit", eager.stdout)


def test_options_are_checked(tmp_path):
    done = subprocess.run([sys.executable, str(SCRIPT), "--epochs", "0"], capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.returncode == 2
    assert "--epochs" in done.stderr
