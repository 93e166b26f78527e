"""Where compiled programs are kept, and when those on disk are of no use any more."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import fnad
from fnad.kernels.codegen import cache

PACKAGE = pathlib.Path(fnad.__file__).parent
DECIDES = sorted(p.relative_to(PACKAGE) for pattern in cache.SOURCES for p in PACKAGE.glob(pattern))


def test_the_version_is_that_of_this_package():
    assert cache.version() == cache.version_of(PACKAGE)


def test_every_file_of_the_compiler_and_its_kernels_counts():
    """Whatever takes part in making machine code from a program's text."""
    rooms = {p.relative_to(PACKAGE) for room in ("compiler", "kernels") for p in (PACKAGE / room).rglob("*.py")}
    doors = {pathlib.Path(f"_{name}.py") for name in ("llvm", "blas", "scipy", "threads", "version")}
    assert rooms | doors <= set(DECIDES)


def test_a_change_of_any_file_changes_the_version(tmp_path):
    for file in DECIDES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / file, tmp_path / file)
    seen = {cache.version_of(tmp_path)}
    assert seen == {cache.version()}
    for file in DECIDES:
        with open(tmp_path / file, "a") as f:
            f.write("\n")
        seen.add(cache.version_of(tmp_path))
    (tmp_path / "compiler" / "another.py").write_text("")
    seen.add(cache.version_of(tmp_path))
    assert len(seen) == len(DECIDES) + 2


RELATIVE = """
import os, sys
import numpy as np, fnad
os.makedirs("elsewhere")
os.chdir("elsewhere")
fnad.jit(lambda x: np.sum(np.sin(x)))(np.ones(3))
print(fnad.cache_info().directory)
os.chdir(os.pardir)
print(fnad.cache_info().directory)
"""


@pytest.mark.parametrize("name", ["FNAD_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_relative_directory_stays_where_it_is(name, tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "FNAD_CACHE_DIR"}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path), name: "here"}
    done = subprocess.run([sys.executable, "-c", RELATIVE], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, second = map(pathlib.Path, done.stdout.split("\n")[:2])
    assert first == second
    assert first.is_relative_to((tmp_path / "here").resolve())
    assert not any((tmp_path / "elsewhere").iterdir())
