"""NumPy functions spelled on primitives: what happens when `np.mean(x)` meets a tracer.

metadata answers questions about shape and dtype; the other files follow NumPy's own chapters: elementwise, reductions,
shaping, padding, joining, creation, indexing, sorting, algebra; at holds functional updates. Each function has
NumPy's signature and is registered with `implements`. What fewer programs use (calculus, decompositions, fft, statistics) is imported when
a function without a row is met.
"""

import importlib

from fnad.core import dispatch
from fnad.numpy import algebra as algebra
from fnad.numpy import at as at
from fnad.numpy import creation as creation
from fnad.numpy import einsum as einsum
from fnad.numpy import elementwise as elementwise
from fnad.numpy import indexing as indexing
from fnad.numpy import joining as joining
from fnad.numpy import linalg as linalg
from fnad.numpy import metadata as metadata
from fnad.numpy import padding as padding
from fnad.numpy import reductions as reductions
from fnad.numpy import refused as refused
from fnad.numpy import shaping as shaping
from fnad.numpy import sorting as sorting

LATER = ("calculus", "decompositions", "fft", "statistics")


def load_all() -> None:
    """Import what `import fnad` leaves for later. Rows that are there already are the user's own, and stay."""
    before = dict(dispatch.ROWS)
    for name in LATER:
        importlib.import_module(f"fnad.numpy.{name}")
    dispatch.ROWS.update(before)


dispatch.PROVIDERS.append(lambda function: load_all())
