"""A Gaussian mixture: the posterior of its weights, means and inverse square roots of covariances, given points."""

import math

import numpy as np

import fnad


def logsumexp(x):
    top = np.max(x, axis=-1)
    return top + np.log(np.sum(np.exp(x - top[..., None]), axis=-1))


def objective(independents, x, m, gamma):
    alpha, mu, q, lower = (independents[name] for name in ("alpha", "mu", "q", "l"))
    (n, d), k = x.shape, alpha.size
    columns, rows = np.triu_indices(d, 1)
    factors = fnad.at(np.zeros((k, d, d)))[:, rows, columns].set(lower) + np.exp(q)[:, :, None] * np.eye(d)
    scale = q.sum(axis=1)
    moved = x @ factors.reshape(k * d, d).T  # every component's factor times every point
    centre = np.sum(factors * mu[:, None, :], axis=2)
    distance = np.sum((moved.reshape(n, k, d) - centre) ** 2, axis=2)
    likelihood = np.sum(logsumexp(alpha + scale - 0.5 * distance)) - n * logsumexp(alpha)
    wishart = 0.5 * gamma**2 * np.sum(factors**2) - m * np.sum(scale)
    return likelihood - wishart + constant(n, d, k, m, gamma)


def constant(n, d, k, m, gamma):
    w = d + m + 1
    gamma_d = d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma((w + 1 - j) / 2) for j in range(1, d + 1))
    return k * (w * d * (math.log(gamma) - 0.5 * math.log(2)) - gamma_d) - n * d / 2 * math.log(2 * math.pi)


def prepare(input):
    independents = {name: np.array(input[name], float) for name in ("alpha", "mu", "q", "l")}
    return independents, np.array(input["x"], float), input["m"], float(input["gamma"])


FUNCTIONS = {
    "objective": fnad.jit(objective, static_argnums=(2, 3)),
    "jacobian": fnad.jit(fnad.grad(objective), static_argnums=(2, 3)),
}
