"""A diagonal LSTM over a text: the loss by its parameters."""

import numpy as np

import fnad
from fnad.scipy.special import expit


def objective(parameters, state, sequence):
    main, extra = parameters
    layers, b = state.shape[0] // 2, state.shape[1]
    weights, biases = main[0::2].reshape(layers, 4, b), main[1::2].reshape(layers, 4, b)

    def step(carry, characters):
        x, target = characters
        z, carried = x * extra[0], []
        for (h, c), w, bias in zip(carry, weights, biases, strict=True):
            forget, output = expit(z * w[0] + bias[0]), expit(z * w[2] + bias[2])
            c = c * forget + expit(h * w[1] + bias[1]) * np.tanh(h * w[3] + bias[3])
            z = output * np.tanh(c)
            carried.append((z, c))
        y = z * extra[1] + extra[2]
        return carried, np.sum(target * (y - np.log(2 + np.sum(np.exp(y)))))

    _, terms = fnad.scan(step, [(state[2 * i], state[2 * i + 1]) for i in range(layers)], (sequence[:-1], sequence[1:]))
    return -np.sum(terms) / (b * (len(sequence) - 1))


def prepare(input):
    main, extra, state, sequence = (np.array(input[k], float) for k in ("main_params", "extra_params", "state", "sequence"))
    return (main, extra), state, sequence


def answer(name, result, args):
    return float(result) if name == "objective" else np.concatenate([g.ravel() for g in result])


FUNCTIONS = {"objective": fnad.jit(objective), "jacobian": fnad.jit(fnad.grad(objective))}
