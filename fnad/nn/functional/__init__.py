"""Functions of neural networks with the names, argument order and special points of `torch.nn.functional`.

They take arrays and tracers alike, keep float32 and change nothing in place: `F.relu(x)`, `F.softmax(x, -1)`.
`activations` are elementwise or along one axis, `layers` take weights or windows, `losses` end in a number.
"""

from fnad.nn.functional.activations import gelu as gelu
from fnad.nn.functional.activations import log_softmax as log_softmax
from fnad.nn.functional.activations import logsumexp as logsumexp
from fnad.nn.functional.activations import relu as relu
from fnad.nn.functional.activations import sigmoid as sigmoid
from fnad.nn.functional.activations import silu as silu
from fnad.nn.functional.activations import softmax as softmax
from fnad.nn.functional.activations import softplus as softplus
from fnad.nn.functional.activations import tanh as tanh
from fnad.nn.functional.layers import avg_pool2d as avg_pool2d
from fnad.nn.functional.layers import conv2d as conv2d
from fnad.nn.functional.layers import layer_norm as layer_norm
from fnad.nn.functional.layers import linear as linear
from fnad.nn.functional.layers import max_pool2d as max_pool2d
from fnad.nn.functional.losses import cross_entropy as cross_entropy
from fnad.nn.functional.losses import mse_loss as mse_loss
from fnad.nn.functional.losses import nll_loss as nll_loss
