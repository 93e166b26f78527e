"""The operations, by subject. Each primitive is declared once, with all its rules, in one place.

`_families` first: it holds what whole families of operations share. Then any subject file: arithmetic, elementary,
reduction, shape, indexing, sorting, linalg, special. Functions made of others live in `fnad/numpy` and `fnad/scipy`.
"""

from fnad.primitives import arithmetic as arithmetic
from fnad.primitives import elementary as elementary
from fnad.primitives import indexing as indexing
from fnad.primitives import linalg as linalg
from fnad.primitives import reduction as reduction
from fnad.primitives import shape as shape
from fnad.primitives import sorting as sorting
from fnad.primitives import special as special
