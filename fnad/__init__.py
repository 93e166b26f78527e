"""fnad differentiates plain NumPy code on the CPU."""

from fnad import numpy as _numpy  # registers what NumPy functions mean for tracers
from fnad import tree as tree
from fnad.core.dispatch import implements as implements
from fnad.core.graph import eval_shape as eval_shape
from fnad.core.graph import make_graph as make_graph
from fnad.transforms.jvp import jvp as jvp
from fnad.transforms.vjp import grad as grad
from fnad.transforms.vjp import value_and_grad as value_and_grad
from fnad.transforms.vjp import vjp as vjp
from fnad.transforms.vmap import vmap as vmap

__version__ = "0.1.0"
