"""SciPy functions spelled on primitives: those which are no ufuncs, and so cannot be reached through NumPy's protocols.

`special` stands in for `scipy.special`.
"""

from fnad.scipy import special as special
