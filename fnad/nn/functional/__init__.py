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
from fnad.nn.functional.convolution import conv1d as conv1d
from fnad.nn.functional.convolution import conv2d as conv2d
from fnad.nn.functional.convolution import conv3d as conv3d
from fnad.nn.functional.convolution import conv_transpose1d as conv_transpose1d
from fnad.nn.functional.convolution import conv_transpose2d as conv_transpose2d
from fnad.nn.functional.convolution import conv_transpose3d as conv_transpose3d
from fnad.nn.functional.convolution import fold as fold
from fnad.nn.functional.convolution import unfold as unfold
from fnad.nn.functional.linear import bilinear as bilinear
from fnad.nn.functional.linear import embedding as embedding
from fnad.nn.functional.linear import linear as linear
from fnad.nn.functional.linear import one_hot as one_hot
from fnad.nn.functional.losses import cross_entropy as cross_entropy
from fnad.nn.functional.losses import mse_loss as mse_loss
from fnad.nn.functional.losses import nll_loss as nll_loss
from fnad.nn.functional.normalization import batch_norm as batch_norm
from fnad.nn.functional.normalization import group_norm as group_norm
from fnad.nn.functional.normalization import instance_norm as instance_norm
from fnad.nn.functional.normalization import layer_norm as layer_norm
from fnad.nn.functional.normalization import local_response_norm as local_response_norm
from fnad.nn.functional.normalization import normalize as normalize
from fnad.nn.functional.normalization import rms_norm as rms_norm
from fnad.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from fnad.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from fnad.nn.functional.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from fnad.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from fnad.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from fnad.nn.functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from fnad.nn.functional.pooling import avg_pool1d as avg_pool1d
from fnad.nn.functional.pooling import avg_pool2d as avg_pool2d
from fnad.nn.functional.pooling import avg_pool3d as avg_pool3d
from fnad.nn.functional.pooling import lp_pool1d as lp_pool1d
from fnad.nn.functional.pooling import lp_pool2d as lp_pool2d
from fnad.nn.functional.pooling import lp_pool3d as lp_pool3d
from fnad.nn.functional.pooling import max_pool1d as max_pool1d
from fnad.nn.functional.pooling import max_pool2d as max_pool2d
from fnad.nn.functional.pooling import max_pool3d as max_pool3d
