"""`torch.linalg`."""

from typing import NoReturn

from fnad.errors import UnknownNameError
from fnad.torch._factors import cond as cond
from fnad.torch._factors import eig as eig
from fnad.torch._factors import eigvals as eigvals
from fnad.torch._factors import linalg_diagonal as diagonal  # noqa: F401
from fnad.torch._factors import linalg_qr as qr  # noqa: F401
from fnad.torch._factors import linalg_svd as svd  # noqa: F401
from fnad.torch._factors import lstsq as lstsq
from fnad.torch._factors import matrix_rank as matrix_rank
from fnad.torch._factors import pinv as pinv
from fnad.torch._factors import solve_triangular as solve_triangular
from fnad.torch._factors import svdvals as svdvals
from fnad.torch._factors import tensorinv as tensorinv
from fnad.torch._factors import tensorsolve as tensorsolve
from fnad.torch._factors import vander as vander
from fnad.torch._factors import vecdot as vecdot
from fnad.torch._linalg import cholesky as cholesky
from fnad.torch._linalg import cross as cross
from fnad.torch._linalg import det as det
from fnad.torch._linalg import eigh as eigh
from fnad.torch._linalg import eigvalsh as eigvalsh
from fnad.torch._linalg import inv as inv
from fnad.torch._linalg import linalg_norm as norm  # noqa: F401
from fnad.torch._linalg import matmul as matmul
from fnad.torch._linalg import matrix_norm as matrix_norm
from fnad.torch._linalg import matrix_power as matrix_power
from fnad.torch._linalg import multi_dot as multi_dot
from fnad.torch._linalg import slogdet as slogdet
from fnad.torch._linalg import solve as solve
from fnad.torch._linalg import vector_norm as vector_norm


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownNameError(f"torch.linalg.{name} does not exist in fnad.torch", fix="docs/torch.md lists what there is")
