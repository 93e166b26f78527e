"""Answers GradBench's requests on standard input: `python -m tests.benchmarks.gradbench`, or this folder's path from anywhere."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.benchmarks.gradbench.protocol import serve

serve(sys.stdin, sys.stdout)
