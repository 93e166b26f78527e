"""The two networks that are trained in both styles: a few steps, what they print, and that both styles learn the same things."""

import pathlib
import re
import subprocess
import sys

import pytest

for needed in ("sklearn", "matplotlib", "tqdm"):
    pytest.importorskip(needed)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
STYLES = ("pure", "torch")


def run(name, *options, cwd, code=0):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *options], capture_output=True, text=True, timeout=300, cwd=cwd)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("style", STYLES)
def test_lenet(style, tmp_path):
    done = run("lenet.py", "--style", style, "--steps", "200", "--seed", "1", "--plot", "a.png", cwd=tmp_path)
    pattern = rf"^style {style}: loss ([\d.]+), test loss ([\d.]+), test accuracy ([\d.]+) on 360 held-out images$"
    loss, test_loss, accuracy = map(float, re.search(pattern, done.stdout, re.M).groups())
    assert loss < 0.8
    assert test_loss < 0.4
    assert accuracy > 0.9
    assert re.search(r"^first step [\d.]+ s, then [\d,]+ images per second; plot: a.png$", done.stdout, re.M)
    assert "200/200" in done.stderr  # the progress bar
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("style", STYLES)
def test_char_gpt(style, tmp_path):
    done = run("char_gpt.py", "--style", style, "--steps", "40", "--batch-size", "16", "--sample", "30", cwd=tmp_path)
    found, count, guess = re.search(
        rf"^style {style}: ([\d.]+) bits per character on (\d+) held-out ones \(frequencies alone: ([\d.]+)\)$", done.stdout, re.M
    ).groups()
    assert 3 < float(found) < float(guess) - 0.4  # 40 steps learn more than how often each character occurs
    assert int(count) > 20_000
    sample = done.stdout.split("\n\nfirst step")[0]
    assert len(sample) == 30
    assert "40/40" in done.stderr
    assert (tmp_path / "char_gpt.png").read_bytes().startswith(b"\x89PNG")


def test_char_gpt_learns_a_text_of_ones_own(tmp_path):
    """A text that repeats itself costs next to nothing, once it is known."""
    (tmp_path / "own.txt").write_text("abcdefgh" * 4000)
    text = run("char_gpt.py", "--text", "own.txt", "--steps", "60", "--batch-size", "8", "--sample", "16", cwd=tmp_path).stdout
    assert float(re.search(r"([\d.]+) bits per character", text)[1]) < 0.2
    assert text.splitlines()[0] == "abcdefgh" * 2


def test_bad_options_are_named(tmp_path):
    assert "--steps" in run("lenet.py", "--steps", "0", cwd=tmp_path, code=2).stderr
    (tmp_path / "short.txt").write_text("too short")
    assert "9 characters" in run("char_gpt.py", "--text", "short.txt", cwd=tmp_path, code=1).stderr
