"""Neural networks as pure functions of arrays.

`functional` has PyTorch's names and argument order, data first; `init` makes initial weights from keys; `layers` joins both to pairs of
functions `init(key) -> params` and `apply(params, x)`.
"""

from fnad.nn import functional as functional
from fnad.nn import init as init
from fnad.nn import layers as layers
