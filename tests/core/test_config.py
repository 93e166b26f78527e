"""fnad.config: options for the process and for a block; what deterministic promises."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import fnad
from fnad._config import CHANGED, option
from fnad.errors import ArgumentError, DTypeError


def in_thread(f):
    found = []
    thread = threading.Thread(target=lambda: found.append(f()))
    thread.start()
    thread.join()
    return found[0]


def test_a_call_holds_for_the_process():
    try:
        fnad.config(debug_nans=True)
        assert option("debug_nans")
        assert in_thread(lambda: option("debug_nans"))
    finally:
        fnad.config(debug_nans=False)
    assert not option("debug_nans")
    assert not CHANGED.get(), "while all options have their defaults, there is nothing to look up"


def test_a_block_holds_for_its_thread_and_gives_back_what_was():
    with fnad.config(debug_nans=True):
        assert option("debug_nans")
        assert not in_thread(lambda: option("debug_nans"))
        with fnad.config(debug_nans=False):
            assert not option("debug_nans")
        assert option("debug_nans")
    assert not option("debug_nans")
    assert not CHANGED.get()


def test_a_block_inside_a_process_setting():
    try:
        fnad.config(debug_nans=True)
        with fnad.config(debug_nans=False):
            assert not option("debug_nans")
            assert in_thread(lambda: option("debug_nans"))
        assert option("debug_nans")
    finally:
        fnad.config(debug_nans=False)


def test_blocks_of_different_options_add_up():
    with fnad.config(debug_nans=True), fnad.disable_jit():
        assert option("debug_nans")
        assert option("disable_jit")
    assert not option("disable_jit")


def test_an_error_ends_the_block():
    with pytest.raises(ZeroDivisionError), fnad.config(debug_nans=True):
        raise ZeroDivisionError
    assert not option("debug_nans")


def test_one_object_for_several_blocks():
    debugging = fnad.config(debug_nans=True)
    for _ in range(2):
        with debugging, debugging:
            assert option("debug_nans")
        assert not option("debug_nans")


def test_errors():
    with pytest.raises(ArgumentError, match=r"debug_nan\n.*debug_nans"):
        fnad.config(debug_nan=True)
    with pytest.raises(DTypeError, match=r"debug_nans: 1 \(int\)"):
        fnad.config(debug_nans=1)
    with pytest.raises(DTypeError, match="deterministic"):
        fnad.config(debug_nans=True, deterministic="yes")
    assert not option("debug_nans"), "nothing is set if anything is wrong"


def test_deterministic_runs_every_blas_on_one_thread():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with fnad.config(deterministic=True):  # both libraries are loaded by now
        pass

    def counts():
        return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]

    before = counts()
    with fnad.config(deterministic=True):
        assert set(counts()) == {1}
        with fnad.config(deterministic=True):
            fnad.jit(lambda x: np.linalg.inv(x @ x))(np.eye(64))
        assert set(counts()) == {1}
    assert counts() == before
    try:
        fnad.config(deterministic=True)
        fnad.config(deterministic=True)
        assert set(counts()) == {1}
    finally:
        fnad.config(deterministic=False)
    assert counts() == before


BITS = """
import hashlib, sys
import numpy as np, fnad

fnad.config(deterministic=sys.argv[1] == "deterministic")
rng = np.random.default_rng(0)
x, w = rng.normal(size=(300, 257)), rng.normal(size=(257, 190))
big = rng.normal(size=700_001).astype(np.float32)

def loops(x):
    return np.sum(np.exp(np.sin(x)) / 3), np.max(x), np.cumsum(x)[-1], np.tanh(x) * 2

def products(x, w):
    a = x @ w
    return np.sum(np.tanh(a) ** 2) + np.sum(np.linalg.inv(a.T @ a + np.eye(190)))

found = [*fnad.jit(loops)(big), fnad.jit(fnad.grad(lambda x: loops(x)[0]))(big)]
if sys.argv[1] == "deterministic":
    for f in (fnad.grad(products, (0, 1)), fnad.jit(fnad.grad(products, (0, 1)))):
        found += f(x, w)
print(hashlib.sha256(b"".join(np.asarray(f).tobytes() for f in found)).hexdigest())
"""


@pytest.mark.parametrize("mode", ["deterministic", "usual"])
def test_results_have_the_same_bits_for_any_number_of_threads(mode):
    """fnad's own loops always, products and solvers under deterministic=True; eager and compiled."""

    def bits(threads: str) -> str:
        env = {**os.environ, "NUMBA_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        return subprocess.run([sys.executable, "-c", BITS, mode], check=True, capture_output=True, text=True, env=env).stdout

    assert bits("1") == bits("2")
