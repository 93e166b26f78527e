"""SciPy functions spelled on primitives: those which are no ufuncs, and so cannot be reached through NumPy's protocols.

`special` stands in for `scipy.special`, `linalg` for `scipy.linalg`.
"""

from fnad.scipy import linalg as linalg
from fnad.scipy import special as special
