"""`import fnad` is light: it loads nothing it may not need, and takes little longer than what it stands on."""

import os
import statistics
import subprocess
import sys

HEAVY = ["numba", "llvmlite", "scipy", "hypothesis", "sklearn", "matplotlib"]
TIMER = """
import time
start = time.process_time()
import numpy, optree
middle = time.process_time()
import fnad
print((time.process_time() - start) / (middle - start))
"""


def python(code: str, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | environment
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100, env=env).stdout.strip()


def test_import_loads_nothing_heavy():
    assert python(f"import sys, fnad; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


def test_kernels_and_optimizers_import_without_numba():
    rooms = "fnad.kernels.softmax, fnad.optim, fnad.nn"
    assert python(f"import sys, fnad, {rooms}; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


def test_import_time(tmp_path):
    """At most 1.3 times that of NumPy and optree: in CPU time, both in one process, the median of several processes."""
    compiled = {"PYTHONPYCACHEPREFIX": str(tmp_path)}  # as installed packages are; the first process writes it
    ratios = [float(python(TIMER, **compiled)) for _ in range(8)][1:]
    assert statistics.median(ratios) <= 1.3, ratios
