"""NumPy functions spelled on primitives: what happens when `np.mean(x)` meets a tracer.

metadata answers questions about shape and dtype; the other files follow NumPy's own chapters: elementwise, reductions,
shaping, joining, creation, indexing, algebra. Each function has NumPy's signature and is registered with `implements`.
"""

from fnad.numpy import algebra as algebra
from fnad.numpy import elementwise as elementwise
from fnad.numpy import metadata as metadata
from fnad.numpy import reductions as reductions
from fnad.numpy import shaping as shaping
