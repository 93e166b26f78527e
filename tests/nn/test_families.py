"""Families of `fnad.nn.functional` against recorded values and gradients of PyTorch, eagerly, compiled and batched."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import fnad
from fnad.nn import functional as F
from fnad.testing import assert_trees_close, check_vmap

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("recorded", HERE / "recorded.py")
recorded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recorded)
CASES = json.loads((HERE / "families_torch.json").read_text())["cases"]
TOLERANCE = {np.float32: 2e-5, np.float64: 2e-12}
FUNCTIONS = {"ctc_of_logits": lambda x, *rest, **options: F.ctc_loss(F.log_softmax(x, -1), *rest, **options)}
LOOSE = {"hardsigmoid": 1e-7, "binary_cross_entropy": 1e-8}  # where PyTorch has a constant in single precision
FIRST = {case["name"]: case for case in reversed(CASES)}
each_case = pytest.mark.parametrize("case", CASES, ids=[f"{c['name']}-{k}" for k, c in enumerate(CASES)])


def prepared(case, dtype):
    """A function of the arrays that are differentiated, and these."""
    floats, places = [], []

    def taken(value, fixed):
        """A function of the floats that gives the argument."""
        if recorded.holds_arrays(value):
            parts = [taken(v, fixed) for v in value]
            return lambda given: [p(given) for p in parts]
        found = recorded.array(value) if isinstance(value, dict) else value
        found = found.astype(dtype) if isinstance(found, np.ndarray) and found.dtype.kind == "f" else found
        if isinstance(found, np.ndarray) and found.dtype.kind == "f" and not fixed:
            floats.append(found)
            return lambda given, k=len(floats) - 1: given[k]
        found = tuple(found) if isinstance(found, list) else found
        return lambda given: found

    for place, value in [*enumerate(case["args"]), *case["options"].items()]:
        places.append((place, taken(value, place in case["fixed"])))
    function = FUNCTIONS.get(case["name"]) or getattr(F, case["name"])

    def call(*given):
        out = function(
            *[make(given) for place, make in places if isinstance(place, int)],
            **{place: make(given) for place, make in places if isinstance(place, str)},
        )
        return tuple(recorded.flat(out))

    return call, floats


def weighted(outs):
    return sum(np.sum(o * np.reshape(np.cos(np.arange(np.size(o), dtype=o.dtype)), np.shape(o))) for o in outs)


@each_case
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients_of_pytorch(case, dtype):
    call, floats = prepared(case, dtype)
    tolerance = max(TOLERANCE[dtype], LOOSE.get(case["name"], 0))

    def total(*given):
        outs = call(*given)
        return weighted(outs), outs

    chosen = dtype is np.float32 and case is FIRST[case["name"]]  # once per function, for compiling takes its time
    gradients, outs = fnad.grad(total, argnums=tuple(range(len(floats))), has_aux=True)(*floats) if floats else ((), call())
    compiled = (
        fnad.jit(fnad.grad(lambda *given: total(*given)[0], argnums=tuple(range(len(floats)))))(*floats) if floats and chosen else gradients
    )
    assert len(outs) == len(case["out"])
    for got, want in zip(outs, case["out"], strict=True):
        assert got.dtype == dtype
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, np.array(want, float), tolerance, tolerance)
    for got, fast, want in zip(gradients, compiled, case["grads"], strict=True):
        assert got.dtype == fast.dtype == dtype
        np.testing.assert_allclose(got, np.array(want, float), 10 * tolerance, 10 * tolerance)
        np.testing.assert_allclose(fast, np.array(want, float), 10 * tolerance, 10 * tolerance)


@each_case
def test_vmap_is_a_loop(case):
    call, floats = prepared(case, np.float64)
    if floats:
        check_vmap(call, tuple(np.stack([x, 0.5 * x]) for x in floats))
        check_vmap(call, (np.stack([floats[0], 0.5 * floats[0]]), *floats[1:]), (0, *(None,) * (len(floats) - 1)))


@each_case
def test_layouts_make_no_difference(case):
    call, floats = prepared(case, np.float64)
    assert_trees_close(call(*[np.asfortranarray(x) for x in floats]), call(*floats))
    assert_trees_close(call(*[np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in floats]), call(*floats))
