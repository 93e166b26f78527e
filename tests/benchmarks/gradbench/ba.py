"""Bundle adjustment: the sparse Jacobian of reprojection errors by cameras, points and weights."""

import numpy as np

import fnad


def project(camera, point, weight, feature):
    """The two components of an observation's error; every argument is a list of scalars, or of arrays with an entry for each."""
    r, c, (f, u0, v0, k1, k2) = camera[0:3], camera[3:6], camera[6:11]
    y = [p - q for p, q in zip(point, c, strict=True)]
    angle = np.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
    small = angle == 0
    a = [q / np.where(small, 1.0, angle) for q in r]
    sine, cosine = np.sin(angle), np.cos(angle)
    along = (a[0] * y[0] + a[1] * y[1] + a[2] * y[2]) * (1 - cosine)
    turned = [q * cosine + s * sine + p * along for p, q, s in zip(a, y, cross(a, y), strict=True)]
    z = [np.where(small, q + s, t) for q, s, t in zip(y, cross(r, y), turned, strict=True)]
    g = z[0] / z[2], z[1] / z[2]
    rho = g[0] * g[0] + g[1] * g[1]
    bent = f * (1 + k1 * rho + k2 * rho * rho)
    return weight * (bent * g[0] + u0 - feature[0]), weight * (bent * g[1] + v0 - feature[1])


def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def observations(cameras, points, weights):
    """What each observation depends on: 15 arrays, and its camera and its point."""
    i = np.arange(weights.size)
    camera, point = i % len(cameras), i % len(points)
    return [*cameras[camera].T, *points[point].T, weights], camera, point


def errors(inputs, features):
    return project(inputs[:11], inputs[11:14], inputs[14], features.T)


def objective(cameras, points, weights, features):
    inputs, _, _ = observations(cameras, points, weights)
    return np.stack(errors(inputs, features), axis=1), 1 - weights**2


def jacobian(cameras, points, weights, features):
    inputs, camera, point = observations(cameras, points, weights)
    n, m, p = len(cameras), len(points), weights.size
    _, pull = fnad.vjp(lambda *inputs: errors(inputs, features), *inputs)
    one, zero = np.ones(p), np.zeros(p)
    blocks = np.stack([np.stack(pull(c), axis=1) for c in ((one, zero), (zero, one))], axis=1)
    by_weight = fnad.grad(lambda w: np.sum(1 - w * w))(weights)
    own = 11 * n + 3 * m + np.arange(p)
    row = np.concatenate([11 * camera[:, None] + np.arange(11), 11 * n + 3 * point[:, None] + np.arange(3), own[:, None]], axis=1)
    return {
        "rows": np.concatenate([15 * np.arange(2 * p + 1), 30 * p + 1 + np.arange(p)]),
        "cols": np.concatenate([np.repeat(row, 2, axis=0).reshape(-1), own]),
        "vals": np.concatenate([blocks.reshape(-1), by_weight]),
    }


def prepare(input):
    cameras = np.tile(np.array(input["cam"], float), (input["n"], 1))
    points = np.tile(np.array(input["x"], float), (input["m"], 1))
    weights = np.full(input["p"], float(input["w"]))
    return cameras, points, weights, np.tile(np.array(input["feat"], float), (input["p"], 1))


def answer(name, result, args):
    if name == "jacobian":
        return {k: [*v[:30], v[-1]] for k, v in result.items()}
    e, by_weight = result
    return {
        "reproj_error": {"elements": e[0], "repeated": len(e)},
        "w_err": {"element": by_weight[0], "repeated": len(by_weight)},
    }


FUNCTIONS = {"objective": fnad.jit(objective), "jacobian": fnad.jit(jacobian)}
