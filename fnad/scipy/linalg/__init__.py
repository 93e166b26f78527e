"""Functions of `scipy.linalg` for plain arrays and traced values alike, with SciPy's names and arguments.

What is not here comes from SciPy itself, for plain arrays only; `np.linalg` (solve, inv, det, svd, qr ...) can be traced
as it stands. Stacks of matrices are taken by all functions.
"""

from typing import Any

from fnad import _scipy
from fnad.scipy.linalg.factors import cho_factor as cho_factor
from fnad.scipy.linalg.factors import cho_solve as cho_solve
from fnad.scipy.linalg.factors import cholesky as cholesky
from fnad.scipy.linalg.factors import lu as lu
from fnad.scipy.linalg.factors import lu_factor as lu_factor
from fnad.scipy.linalg.factors import lu_solve as lu_solve
from fnad.scipy.linalg.factors import solve_triangular as solve_triangular
from fnad.scipy.linalg.functions import block_diag as block_diag
from fnad.scipy.linalg.functions import det as det
from fnad.scipy.linalg.functions import eigh as eigh
from fnad.scipy.linalg.functions import expm as expm
from fnad.scipy.linalg.functions import inv as inv
from fnad.scipy.linalg.functions import solve as solve
from fnad.scipy.linalg.functions import svdvals as svdvals
from fnad.scipy.linalg.functions import toeplitz as toeplitz


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return getattr(_scipy.linalg(), name)
