"""`torch.linalg`."""

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
