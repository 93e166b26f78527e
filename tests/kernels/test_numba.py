"""`fnad._numba.kernel`: compiled on the first call, cached on disk, never an error because of the cache."""

import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from fnad._numba import kernel
from fnad.kernels import softmax

MODULE = """
import sys
import numpy as np
from fnad._numba import kernel

@kernel
def double(x):
    return 2 * x

@kernel
def total(x, out):
    for i in range(x.size):
        out[0] += double(x[i])

if __name__ == "__main__":
    assert "numba" not in sys.modules
    out = np.zeros(1)
    total(np.ones(3), out)
    stats = total._compiled.stats
    print(out[0], "hit" if stats.cache_hits else "miss", "cached" if stats.cache_path else "uncached")
"""


def run(path: pathlib.Path, **environment: str) -> str:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "kernels_of_a_test.py"
    path.write_text(MODULE)
    return path


def test_a_second_process_finds_the_machine_code(module):
    assert run(module) == "6.0 miss cached"
    assert run(module) == "6.0 hit cached"


@pytest.mark.parametrize("pattern", ["*total*.nbi", "*total*.nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x04garbage"])
def test_a_damaged_cache_costs_a_compilation(module, pattern, content):
    spec = importlib.util.spec_from_file_location(module.stem, module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    out = np.zeros(1)
    loaded.total(np.ones(3), out)
    files = list(module.parent.rglob(pattern))
    assert files
    for f in files:
        f.write_bytes(content)
    kernel(loaded.total.py_func)(np.ones(3), out)  # as a new process would meet it
    assert out[0] == 12
    assert run(module) == "6.0 miss uncached"


def test_no_directory_to_cache_in():
    """numba raises "no locator available" for such a function; here because it has no file."""
    names = {}
    exec("def total(x, out):\n    for i in range(x.size):\n        out[0] += x[i]", names)
    out = np.zeros(1)
    total = kernel(names["total"])
    total(np.ones(3), out)
    total(np.ones(3), out)
    assert out[0] == 6


def test_errors_of_the_kernel_itself_pass_through():
    with pytest.raises(Exception, match=r"(?i)typ"):
        softmax.row_sum("not an array")


def test_first_calls_from_many_threads():
    @kernel
    def total(x, out):
        for i in range(x.size):
            out[0] += x[i]

    outs, barrier = [np.zeros(1) for _ in range(8)], threading.Barrier(8)

    def call(out):
        barrier.wait()
        total(np.ones(5), out)

    threads = [threading.Thread(target=call, args=(out,)) for out in outs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [out[0] for out in outs] == [5.0] * 8


def test_a_kernel_is_named_like_its_function_and_pickles_by_name():
    assert softmax.row_sum.__name__ == "row_sum"
    assert softmax.row_sum.__doc__ == softmax.row_sum.py_func.__doc__
    assert pickle.loads(pickle.dumps(softmax.row_sum)) is softmax.row_sum


def test_no_python_warnings_and_numpy_division():
    @kernel
    def divide(x, y):
        return x / y

    assert divide(1.0, 0.0) == np.inf
    assert np.isnan(divide(0.0, 0.0))
