"""Settings shared by all tests."""

from __future__ import annotations

import os
import tempfile

import hypothesis

# Programs of this run alone: tests clear the cache, and count what is compiled.
_cache = tempfile.TemporaryDirectory(prefix="fnad-tests-")
os.environ["FNAD_CACHE_DIR"] = _cache.name

# The same examples in every run, so that a failure can be repeated and a green run stays green.
hypothesis.settings.register_profile("fnad", derandomize=True, deadline=None, database=None, max_examples=50)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000)  # pytest --hypothesis-profile=search
hypothesis.settings.load_profile("fnad")
