"""The audit of every primitive in the registry. A primitive without samples fails."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import zlib

import numpy as np
import pytest

import fnad
import fnad.primitives
from fnad.core.primitive import REGISTRY
from fnad.errors import UnsupportedError
from fnad.primitives._families import Elementwise
from fnad.testing.audit import check_primitive, foretells

from . import samples_fft as samples_fft
from . import samples_indexing as samples_indexing  # registers its samples
from . import samples_linalg as samples_linalg
from . import samples_nn as samples_nn
from . import samples_numpy as samples_numpy
from . import samples_random as samples_random
from .samples import SAMPLES, Sample

for module in pkgutil.iter_modules(fnad.primitives.__path__):
    importlib.import_module(f"fnad.primitives.{module.name}")  # those that `import fnad` leaves for later
fnad.primitives.special.load_all()

SHAPES = {
    1: [[(2, 3)], [()], [(1,)], [(0,)]],
    2: [[(3,), (3,)], [(2, 1), (3,)], [(), (2,)], [(), ()], [(0,), (1,)], [(1,), (1,)]],
    3: [[(3,), (3,), (3,)], [(2, 1), (3,), ()], [(), (), ()], [(0,), (1,), ()], [(1,), (1,), (1,)]],
}
SCALARS = (True, 2, 0.5, 0.5 + 1j)
DTYPES = ("bool", "int8", "int32", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128")


def draw(rng: np.random.Generator, kind: str, domain: tuple[float, float], shape: tuple[int, ...]) -> np.ndarray:
    low, high = domain
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape).astype(bool))
    if kind in "iu":
        return np.asarray(rng.integers(int(np.ceil(low)), int(np.floor(high)) + 1, shape), dtype=np.int64 if kind == "i" else np.uint64)
    x = rng.uniform(low, high, shape)
    return np.asarray(x + 1j * rng.uniform(-1.0, 1.0, shape) if kind == "c" else x)


def refuses(slope) -> bool:
    """Whether asking for a slope is an error: there is no rule for that operand."""
    try:
        return callable(slope) and not isinstance(slope, np.ufunc) and not inspect.signature(slope).parameters and slope() is None
    except UnsupportedError:
        return True


def family_samples(p: Elementwise, rng: np.random.Generator) -> list[Sample]:
    """Samples of an elementwise primitive: by its domain, its kinds and its arity; and its special points."""
    arity = len(p.slopes)
    fixed = tuple(i for i, slope in enumerate(p.slopes) if refuses(slope))
    out = [Sample(tuple(draw(rng, kind, p.domain, shape) for shape in shapes), fixed=fixed) for kind in p.kinds for shapes in SHAPES[arity]]
    if p.special:
        columns = np.array([point if isinstance(point, tuple) else (point,) for point in p.special]).T
        out.append(Sample(tuple(np.array(c) for c in columns), smooth=False, fixed=fixed))
    return out


def samples_of(name: str) -> list[Sample]:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if name in SAMPLES:
        return SAMPLES[name](rng)
    primitive = REGISTRY[name]
    return family_samples(primitive, rng) if isinstance(primitive, Elementwise) else []


NAMES = sorted(REGISTRY)
CASES = [pytest.param(name, sample, id=f"{name}-{sample}") for name in NAMES for sample in samples_of(name)]


@pytest.mark.parametrize("name", NAMES)
def test_has_samples(name):
    assert samples_of(name), f"give {name} samples in tests/primitives/samples.py"


def test_no_samples_without_a_primitive():
    assert not set(SAMPLES) - set(REGISTRY)


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_audit(name, sample):
    options = {"fixed": sample.fixed, "through": sample.through, "smooth": sample.smooth, "order": sample.order}
    check_primitive(REGISTRY[name], sample.args, sample.params, **options)


@pytest.mark.parametrize("name", [n for n in NAMES if isinstance(REGISTRY[n], Elementwise)])
def test_infer_of_all_dtypes(name):
    operands = [*SCALARS, *(np.ones((), d) for d in DTYPES), *(np.ones(2, d) for d in DTYPES)]
    arity = len(REGISTRY[name].slopes)
    if arity > 2:
        operands = operands[:: len(operands) // 8]
    if name == "power":
        operands = [a for a in operands if np.asarray(a).dtype != bool]  # NumPy's own ** and np.power differ for them
    if name == "polygamma":
        operands = [a for a in operands if np.asarray(a).dtype.kind != "c"]  # SciPy casts them, with a warning
    for args in itertools.product(operands, repeat=arity):
        foretells(REGISTRY[name], *args)


@pytest.mark.parametrize("name", [n for n in NAMES if REGISTRY[n].constant])
def test_constant_has_no_derivative(name):
    for sample in samples_of(name):
        if not all(np.asarray(a).dtype.kind in "fc" for a in sample.args):
            continue
        with np.errstate(all="ignore"):
            outs = lambda *args: REGISTRY[name](*args, **sample.params)  # noqa: B023
            for t in fnad.tree.leaves(fnad.jvp(outs, sample.args, sample.args)[1]):
                assert not np.any(t)
