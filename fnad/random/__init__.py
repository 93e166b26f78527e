"""Random numbers as functions of keys, under the names and with the argument order of `jax.random`.

    >>> from fnad import random
    >>> key = random.key(0)
    >>> random.normal(key, (2,)).round(3)
    array([0.029, 0.648])

A key is an array of two uint64. The same key gives the same numbers, in every process, for any number of threads, eagerly and
compiled (there up to the rounding of functions such as `log`); `split` makes independent keys. The bits are those of
`np.random.Philox(key=key)`.
"""

from typing import NoReturn as _NoReturn

from fnad.core import hints as _hints
from fnad.random.continuous import ball as ball
from fnad.random.continuous import cauchy as cauchy
from fnad.random.continuous import double_sided_maxwell as double_sided_maxwell
from fnad.random.continuous import exponential as exponential
from fnad.random.continuous import gumbel as gumbel
from fnad.random.continuous import laplace as laplace
from fnad.random.continuous import logistic as logistic
from fnad.random.continuous import lognormal as lognormal
from fnad.random.continuous import maxwell as maxwell
from fnad.random.continuous import multivariate_normal as multivariate_normal
from fnad.random.continuous import orthogonal as orthogonal
from fnad.random.continuous import pareto as pareto
from fnad.random.continuous import rayleigh as rayleigh
from fnad.random.continuous import triangular as triangular
from fnad.random.continuous import truncated_normal as truncated_normal
from fnad.random.continuous import weibull_min as weibull_min
from fnad.random.discrete import bernoulli as bernoulli
from fnad.random.discrete import binomial as binomial
from fnad.random.discrete import categorical as categorical
from fnad.random.discrete import choice as choice
from fnad.random.discrete import geometric as geometric
from fnad.random.discrete import permutation as permutation
from fnad.random.discrete import poisson as poisson
from fnad.random.discrete import rademacher as rademacher
from fnad.random.discrete import randint as randint
from fnad.random.gammas import beta as beta
from fnad.random.gammas import chisquare as chisquare
from fnad.random.gammas import dirichlet as dirichlet
from fnad.random.gammas import f as f
from fnad.random.gammas import gamma as gamma
from fnad.random.gammas import generalized_normal as generalized_normal
from fnad.random.gammas import loggamma as loggamma
from fnad.random.gammas import t as t
from fnad.random.keys import PRNGKey as PRNGKey
from fnad.random.keys import bits as bits
from fnad.random.keys import fold_in as fold_in
from fnad.random.keys import key as key
from fnad.random.keys import split as split
from fnad.random.uniform import normal as normal
from fnad.random.uniform import uniform as uniform


def __getattr__(name: str) -> _NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise _hints.missing_in(__name__, name, globals(), _hints.RANDOM)
