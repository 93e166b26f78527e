"""Functions of neural networks with the names, argument order and special points of `torch.nn.functional`.

They take arrays and tracers alike, keep float32 and change nothing in place: `F.relu(x)`, `F.softmax(x, -1)`.
Files are by subject: `activations`, `rectifiers` and `gates` are nonlinearities; `linear`, `convolution`, `normalization`,
`dropout`, `recurrent`, `attention` what layers do; `pooling`, `adaptive`, `images` and `sampling` windows and grids; the others losses.
"""

from typing import NoReturn as _NoReturn

from fnad.core import hints as _hints
from fnad.nn.functional.activations import gelu as gelu
from fnad.nn.functional.activations import log_softmax as log_softmax
from fnad.nn.functional.activations import logsumexp as logsumexp
from fnad.nn.functional.activations import relu as relu
from fnad.nn.functional.activations import sigmoid as sigmoid
from fnad.nn.functional.activations import silu as silu
from fnad.nn.functional.activations import softmax as softmax
from fnad.nn.functional.activations import softplus as softplus
from fnad.nn.functional.activations import tanh as tanh
from fnad.nn.functional.adaptive import adaptive_avg_pool1d as adaptive_avg_pool1d
from fnad.nn.functional.adaptive import adaptive_avg_pool2d as adaptive_avg_pool2d
from fnad.nn.functional.adaptive import adaptive_avg_pool3d as adaptive_avg_pool3d
from fnad.nn.functional.adaptive import adaptive_max_pool1d as adaptive_max_pool1d
from fnad.nn.functional.adaptive import adaptive_max_pool2d as adaptive_max_pool2d
from fnad.nn.functional.adaptive import adaptive_max_pool3d as adaptive_max_pool3d
from fnad.nn.functional.attention import multi_head_attention_forward as multi_head_attention_forward
from fnad.nn.functional.attention import rotary_embedding as rotary_embedding
from fnad.nn.functional.attention import scaled_dot_product_attention as scaled_dot_product_attention
from fnad.nn.functional.attention import sinusoidal_positions as sinusoidal_positions
from fnad.nn.functional.convolution import conv1d as conv1d
from fnad.nn.functional.convolution import conv2d as conv2d
from fnad.nn.functional.convolution import conv3d as conv3d
from fnad.nn.functional.convolution import conv_transpose1d as conv_transpose1d
from fnad.nn.functional.convolution import conv_transpose2d as conv_transpose2d
from fnad.nn.functional.convolution import conv_transpose3d as conv_transpose3d
from fnad.nn.functional.convolution import fold as fold
from fnad.nn.functional.convolution import unfold as unfold
from fnad.nn.functional.ctc import ctc_loss as ctc_loss
from fnad.nn.functional.dropout import alpha_dropout as alpha_dropout
from fnad.nn.functional.dropout import dropout as dropout
from fnad.nn.functional.dropout import dropout1d as dropout1d
from fnad.nn.functional.dropout import dropout2d as dropout2d
from fnad.nn.functional.dropout import dropout3d as dropout3d
from fnad.nn.functional.dropout import feature_alpha_dropout as feature_alpha_dropout
from fnad.nn.functional.gates import glu as glu
from fnad.nn.functional.gates import gumbel_softmax as gumbel_softmax
from fnad.nn.functional.gates import logsigmoid as logsigmoid
from fnad.nn.functional.gates import mish as mish
from fnad.nn.functional.gates import softmin as softmin
from fnad.nn.functional.gates import softsign as softsign
from fnad.nn.functional.gates import tanhshrink as tanhshrink
from fnad.nn.functional.images import channel_shuffle as channel_shuffle
from fnad.nn.functional.images import interpolate as interpolate
from fnad.nn.functional.images import pad as pad
from fnad.nn.functional.images import pixel_shuffle as pixel_shuffle
from fnad.nn.functional.images import pixel_unshuffle as pixel_unshuffle
from fnad.nn.functional.linear import bilinear as bilinear
from fnad.nn.functional.linear import embedding as embedding
from fnad.nn.functional.linear import embedding_bag as embedding_bag
from fnad.nn.functional.linear import linear as linear
from fnad.nn.functional.linear import one_hot as one_hot
from fnad.nn.functional.losses import cross_entropy as cross_entropy
from fnad.nn.functional.losses import linear_cross_entropy as linear_cross_entropy
from fnad.nn.functional.losses import nll_loss as nll_loss
from fnad.nn.functional.margins import cosine_embedding_loss as cosine_embedding_loss
from fnad.nn.functional.margins import cosine_similarity as cosine_similarity
from fnad.nn.functional.margins import hinge_embedding_loss as hinge_embedding_loss
from fnad.nn.functional.margins import margin_ranking_loss as margin_ranking_loss
from fnad.nn.functional.margins import multi_margin_loss as multi_margin_loss
from fnad.nn.functional.margins import multilabel_margin_loss as multilabel_margin_loss
from fnad.nn.functional.margins import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from fnad.nn.functional.margins import pairwise_distance as pairwise_distance
from fnad.nn.functional.margins import pdist as pdist
from fnad.nn.functional.margins import soft_margin_loss as soft_margin_loss
from fnad.nn.functional.margins import triplet_margin_loss as triplet_margin_loss
from fnad.nn.functional.margins import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from fnad.nn.functional.normalization import batch_norm as batch_norm
from fnad.nn.functional.normalization import group_norm as group_norm
from fnad.nn.functional.normalization import instance_norm as instance_norm
from fnad.nn.functional.normalization import layer_norm as layer_norm
from fnad.nn.functional.normalization import local_response_norm as local_response_norm
from fnad.nn.functional.normalization import normalize as normalize
from fnad.nn.functional.normalization import rms_norm as rms_norm
from fnad.nn.functional.pooling import avg_pool1d as avg_pool1d
from fnad.nn.functional.pooling import avg_pool2d as avg_pool2d
from fnad.nn.functional.pooling import avg_pool3d as avg_pool3d
from fnad.nn.functional.pooling import lp_pool1d as lp_pool1d
from fnad.nn.functional.pooling import lp_pool2d as lp_pool2d
from fnad.nn.functional.pooling import lp_pool3d as lp_pool3d
from fnad.nn.functional.pooling import max_pool1d as max_pool1d
from fnad.nn.functional.pooling import max_pool2d as max_pool2d
from fnad.nn.functional.pooling import max_pool3d as max_pool3d
from fnad.nn.functional.pooling import max_unpool1d as max_unpool1d
from fnad.nn.functional.pooling import max_unpool2d as max_unpool2d
from fnad.nn.functional.pooling import max_unpool3d as max_unpool3d
from fnad.nn.functional.probabilities import binary_cross_entropy as binary_cross_entropy
from fnad.nn.functional.probabilities import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from fnad.nn.functional.probabilities import kl_div as kl_div
from fnad.nn.functional.rectifiers import celu as celu
from fnad.nn.functional.rectifiers import elu as elu
from fnad.nn.functional.rectifiers import hardshrink as hardshrink
from fnad.nn.functional.rectifiers import hardsigmoid as hardsigmoid
from fnad.nn.functional.rectifiers import hardswish as hardswish
from fnad.nn.functional.rectifiers import hardtanh as hardtanh
from fnad.nn.functional.rectifiers import leaky_relu as leaky_relu
from fnad.nn.functional.rectifiers import prelu as prelu
from fnad.nn.functional.rectifiers import relu6 as relu6
from fnad.nn.functional.rectifiers import rrelu as rrelu
from fnad.nn.functional.rectifiers import selu as selu
from fnad.nn.functional.rectifiers import softshrink as softshrink
from fnad.nn.functional.rectifiers import threshold as threshold
from fnad.nn.functional.recurrent import gru as gru
from fnad.nn.functional.recurrent import gru_cell as gru_cell
from fnad.nn.functional.recurrent import lstm as lstm
from fnad.nn.functional.recurrent import lstm_cell as lstm_cell
from fnad.nn.functional.recurrent import rnn as rnn
from fnad.nn.functional.recurrent import rnn_relu_cell as rnn_relu_cell
from fnad.nn.functional.recurrent import rnn_tanh_cell as rnn_tanh_cell
from fnad.nn.functional.regression import gaussian_nll_loss as gaussian_nll_loss
from fnad.nn.functional.regression import huber_loss as huber_loss
from fnad.nn.functional.regression import l1_loss as l1_loss
from fnad.nn.functional.regression import mse_loss as mse_loss
from fnad.nn.functional.regression import poisson_nll_loss as poisson_nll_loss
from fnad.nn.functional.regression import smooth_l1_loss as smooth_l1_loss
from fnad.nn.functional.sampling import affine_grid as affine_grid
from fnad.nn.functional.sampling import grid_sample as grid_sample


def __getattr__(name: str) -> _NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise _hints.missing_in(__name__, name, globals(), {})
