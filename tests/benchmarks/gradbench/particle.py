"""A charge that steers a particle to a point of the floor: descent on a cost that follows the particle, by derivatives of a potential."""

import math

import fnad
from tests.benchmarks.gradbench.descent import MODES, argmin


@fnad.njit
def potential(x, y, w):
    """Of charges at (10, 10 - w) and (10, 0)."""
    return 1.0 / math.sqrt((x - 10.0) ** 2 + (y - 10.0 + w) ** 2) + 1.0 / math.sqrt((x - 10.0) ** 2 + y**2)


def search(outer, inner):
    """The descent, with one mode for the derivative of the cost and one for the force in it."""
    force = fnad.njit(inner(potential, argnums=(0, 1)))

    @fnad.njit
    def cost(controls):
        w, dt = controls[0], 0.1  # the other one has no influence
        x, y, vx, vy = 0.0, 8.0, 0.75, 0.0
        while True:
            ax, ay = force(x, y, w)
            x += dt * vx
            y += dt * vy
            if y <= 0.0:
                break
            vx -= dt * ax
            vy -= dt * ay
        return (x - y / vy * vx) ** 2

    slope = fnad.njit(outer(cost))

    @fnad.njit
    def best(w):
        return argmin(cost, slope, (w, 0.0))[0]

    return best


def prepare(input):
    return (float(input["w"]),)


FUNCTIONS = {a + b: search(MODES[a], MODES[b]) for a in MODES for b in MODES}
