"""Settings shared by all tests, and a check that runs along: both printers of the compiler on what the suite compiles."""

from __future__ import annotations

import os
import tempfile

import hypothesis
import numpy as np
import pytest

from fnad.compiler.pipeline import Executable

from . import printers

# Programs of this run alone: tests clear the cache, and count what is compiled.
_cache = tempfile.TemporaryDirectory(prefix="fnad-tests-")
os.environ["FNAD_CACHE_DIR"] = _cache.name

# The same examples in every run, so that a failure can be repeated and a green run stays green.
hypothesis.settings.register_profile("fnad", derandomize=True, deadline=None, database=None, max_examples=50)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000)  # pytest --hypothesis-profile=search
hypothesis.settings.load_profile("fnad")

LIMIT, SLOW_LIMIT = 6_000, 1_000_000
"""Scalar operations beyond which a program is not run as plain Python; the latter if slow tests are asked for."""
_seen: set[str] = set()


@pytest.fixture(autouse=True, scope="session")
def both_printers(request):
    """The first small call of each compiled program is repeated by its readable source.

    `pytest -m "slow or not slow"` runs everything, and by the source all but the largest calls.
    """
    native = Executable.convert
    limit = LIMIT if request.config.option.markexpr == "not slow" else SLOW_LIMIT

    def convert(self, inputs):
        key = " ".join(p.name for p in self.programs)
        repeatable = not any(e.has_effect for e in self.graph.equations)
        if key in _seen or not repeatable or sum(printers.work(p.nodes) for p in self.programs) > limit:
            return native(self, inputs)
        before = [np.array(x) for x in (*inputs, *self.constants)]
        outs = native(self, inputs)
        _seen.add(key)
        printers.compare(self, before, outs)
        return outs

    Executable.convert = convert
    yield
    Executable.convert = native
