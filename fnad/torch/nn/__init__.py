"""`torch.nn`: modules."""

from typing import NoReturn

from fnad.errors import UnknownNameError
from fnad.torch.nn import functional as functional
from fnad.torch.nn import init as init
from fnad.torch.nn import utils as utils
from fnad.torch.nn.activations import CELU as CELU
from fnad.torch.nn.activations import ELU as ELU
from fnad.torch.nn.activations import GELU as GELU
from fnad.torch.nn.activations import GLU as GLU
from fnad.torch.nn.activations import SELU as SELU
from fnad.torch.nn.activations import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from fnad.torch.nn.activations import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from fnad.torch.nn.activations import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from fnad.torch.nn.activations import AvgPool1d as AvgPool1d
from fnad.torch.nn.activations import Hardshrink as Hardshrink
from fnad.torch.nn.activations import Hardsigmoid as Hardsigmoid
from fnad.torch.nn.activations import Hardswish as Hardswish
from fnad.torch.nn.activations import Hardtanh as Hardtanh
from fnad.torch.nn.activations import LeakyReLU as LeakyReLU
from fnad.torch.nn.activations import LogSigmoid as LogSigmoid
from fnad.torch.nn.activations import LogSoftmax as LogSoftmax
from fnad.torch.nn.activations import MaxPool1d as MaxPool1d
from fnad.torch.nn.activations import Mish as Mish
from fnad.torch.nn.activations import PixelShuffle as PixelShuffle
from fnad.torch.nn.activations import ReLU as ReLU
from fnad.torch.nn.activations import ReLU6 as ReLU6
from fnad.torch.nn.activations import Sigmoid as Sigmoid
from fnad.torch.nn.activations import SiLU as SiLU
from fnad.torch.nn.activations import Softmax as Softmax
from fnad.torch.nn.activations import Softplus as Softplus
from fnad.torch.nn.activations import Softshrink as Softshrink
from fnad.torch.nn.activations import Softsign as Softsign
from fnad.torch.nn.activations import Tanh as Tanh
from fnad.torch.nn.activations import Tanhshrink as Tanhshrink
from fnad.torch.nn.containers import ModuleDict as ModuleDict
from fnad.torch.nn.containers import ModuleList as ModuleList
from fnad.torch.nn.containers import ParameterDict as ParameterDict
from fnad.torch.nn.containers import ParameterList as ParameterList
from fnad.torch.nn.containers import Sequential as Sequential
from fnad.torch.nn.layers import AvgPool2d as AvgPool2d
from fnad.torch.nn.layers import BatchNorm1d as BatchNorm1d
from fnad.torch.nn.layers import BatchNorm2d as BatchNorm2d
from fnad.torch.nn.layers import Conv1d as Conv1d
from fnad.torch.nn.layers import Conv2d as Conv2d
from fnad.torch.nn.layers import Conv3d as Conv3d
from fnad.torch.nn.layers import ConvTranspose2d as ConvTranspose2d
from fnad.torch.nn.layers import Dropout as Dropout
from fnad.torch.nn.layers import Dropout2d as Dropout2d
from fnad.torch.nn.layers import Embedding as Embedding
from fnad.torch.nn.layers import Flatten as Flatten
from fnad.torch.nn.layers import GroupNorm as GroupNorm
from fnad.torch.nn.layers import Identity as Identity
from fnad.torch.nn.layers import LayerNorm as LayerNorm
from fnad.torch.nn.layers import Linear as Linear
from fnad.torch.nn.layers import MaxPool2d as MaxPool2d
from fnad.torch.nn.layers import RMSNorm as RMSNorm
from fnad.torch.nn.layers import Unflatten as Unflatten
from fnad.torch.nn.losses import BCELoss as BCELoss
from fnad.torch.nn.losses import BCEWithLogitsLoss as BCEWithLogitsLoss
from fnad.torch.nn.losses import CosineEmbeddingLoss as CosineEmbeddingLoss
from fnad.torch.nn.losses import CrossEntropyLoss as CrossEntropyLoss
from fnad.torch.nn.losses import GaussianNLLLoss as GaussianNLLLoss
from fnad.torch.nn.losses import HingeEmbeddingLoss as HingeEmbeddingLoss
from fnad.torch.nn.losses import HuberLoss as HuberLoss
from fnad.torch.nn.losses import KLDivLoss as KLDivLoss
from fnad.torch.nn.losses import L1Loss as L1Loss
from fnad.torch.nn.losses import MarginRankingLoss as MarginRankingLoss
from fnad.torch.nn.losses import MSELoss as MSELoss
from fnad.torch.nn.losses import NLLLoss as NLLLoss
from fnad.torch.nn.losses import PoissonNLLLoss as PoissonNLLLoss
from fnad.torch.nn.losses import SmoothL1Loss as SmoothL1Loss
from fnad.torch.nn.losses import SoftMarginLoss as SoftMarginLoss
from fnad.torch.nn.losses import TripletMarginLoss as TripletMarginLoss
from fnad.torch.nn.module import Module as Module
from fnad.torch.nn.parameter import Buffer as Buffer
from fnad.torch.nn.parameter import Parameter as Parameter
from fnad.torch.nn.sequences import GRU as GRU
from fnad.torch.nn.sequences import LSTM as LSTM
from fnad.torch.nn.sequences import RNN as RNN
from fnad.torch.nn.sequences import MultiheadAttention as MultiheadAttention


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownNameError(
        f"torch.nn.{name} does not exist in fnad.torch",
        fix="write it as a Module of the functions of torch.nn.functional; docs/torch.md lists what there is",
    )
