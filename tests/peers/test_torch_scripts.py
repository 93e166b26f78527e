"""Whole scripts of PyTorch with nothing but their imports changed print what PyTorch prints."""

import contextlib
import io
import math
import pathlib
import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.peers
SCRIPTS = sorted((pathlib.Path(__file__).parent / "scripts").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+")


def with_other_imports(text):
    """`import torch` and `from torch...` name the facade."""
    text = re.sub(r"^import torch$", "import fnad.torch as torch", text, flags=re.MULTILINE)
    text = re.sub(r"^import torch\.nn as nn$", "import fnad.torch.nn as nn", text, flags=re.MULTILINE)
    text = re.sub(r"^import torch\.([\w.]+)( as \w+)?$", r"import fnad.torch.\1\2", text, flags=re.MULTILINE)
    return re.sub(r"^from torch\b", "from fnad.torch", text, flags=re.MULTILINE)


def fill(torch, model):
    """First values of parameters that are the same in both libraries."""
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            values = np.sin(0.7 * np.arange(p.numel()) * (k + 1) + k).reshape(tuple(p.shape)) / max(fan, 1) ** 0.5
            p.copy_(torch.from_numpy(values.astype(np.float32)))


def printed(text, path):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "script", "exec"), {"__name__": "__main__", "fill": fill, "path": str(path / "model.npz")})
    return out.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_scripts(script, tmp_path):
    text = script.read_text()
    changed = with_other_imports(text)
    assert not re.search(r"^(import|from) torch\b", changed, re.MULTILINE)
    want, got = printed(text, tmp_path), printed(changed, tmp_path)
    assert NUMBER.sub("#", got) == NUMBER.sub("#", want)
    for g, w in zip(NUMBER.findall(got), NUMBER.findall(want), strict=True):
        assert math.isclose(float(g), float(w), rel_tol=5e-3, abs_tol=1.1e-3), (g, w)
