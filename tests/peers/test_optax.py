"""Live comparison with optax, where it is installed; `record_optax.py` made the file that the other tests use."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

pytest.importorskip("optax")
pytestmark = pytest.mark.peers
HERE = pathlib.Path(__file__).parent


def numbers(tree):
    """The numbers of nested JSON data, in order."""
    if isinstance(tree, dict):
        return [x for v in tree.values() for x in numbers(v)]
    if isinstance(tree, list):
        return [x for v in tree for x in numbers(v)]
    return [tree] if isinstance(tree, int | float) else []


def test_the_record_is_what_optax_computes():
    spec = importlib.util.spec_from_file_location("record_optax", HERE / "record_optax.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    now = json.loads(json.dumps(module.optimizers()))
    then = json.loads((HERE.parent / "optim" / "optimizers_optax.json").read_text())
    np.testing.assert_allclose(numbers(now), numbers(then), 1e-5, 1e-6)
