"""Hand tracking: distances of measured points to a posed hand model, by the pose (and by the points' places on its triangles)."""

import numpy as np

import fnad


def rotations(angles):
    """Matrices that turn about x, then y, then z, by angles in the order x, z, y: [bone, 3, 3]."""
    (x, z, y), one = angles.T, np.ones(len(angles))
    zero = 0 * one

    def matrices(rows):
        return np.stack([np.stack(row, axis=1) for row in rows], axis=1)

    about_x = matrices([[one, zero, zero], [zero, np.cos(x), -np.sin(x)], [zero, np.sin(x), np.cos(x)]])
    about_y = matrices([[np.cos(y), zero, np.sin(y)], [zero, one, zero], [-np.sin(y), zero, np.cos(y)]])
    about_z = matrices([[np.cos(z), -np.sin(z), zero], [np.sin(z), np.cos(z), zero], [zero, zero, one]])
    return about_z @ about_y @ about_x


def pose(theta, bones):
    """The pose table: [bone + 3, 3]."""
    rows = [theta[0:3], np.ones(3), theta[3:6]] + [np.zeros(3)] * bones
    zero = np.zeros(2)
    for finger in range(5):
        a, b, c, d = (theta[6 + 4 * finger + k : 7 + 4 * finger + k] for k in range(4))
        rows[5 + 4 * finger] = np.concatenate([a, b, zero[:1]])
        rows[6 + 4 * finger] = np.concatenate([c, zero])
        rows[7 + 4 * finger] = np.concatenate([d, zero])
    return np.stack(rows)


def turn(axis_angle):
    """The matrix of an axis-angle vector: [3, 3]."""
    square = axis_angle @ axis_angle
    small = square < 1e-8
    angle = np.sqrt(np.where(small, 1.0, square))
    a = axis_angle / angle
    zero = 0 * angle
    k = np.stack([zero, -a[2], a[1], a[2], zero, -a[0], -a[1], a[0], zero]).reshape(3, 3)
    return np.eye(3) + np.where(small, 0.0, np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k))


def vertices(theta, parents, relatives, inverses, base, weights):
    """The posed vertices: [vertex, 3]."""
    table = pose(theta, len(parents))
    local = relatives[:, :, :3] @ rotations(table[3:])
    local = np.concatenate([local, relatives[:, :, 3:]], axis=2)
    absolute = []
    for bone, parent in enumerate(parents):
        absolute.append(local[bone] if parent < 0 else absolute[parent] @ local[bone])
    moves = (np.stack(absolute) @ inverses)[:, :3, :]
    weighted = (weights[:, :, None] * base[:, None, :]).reshape(len(base), -1)
    positions = weighted @ np.swapaxes(moves, 1, 2).reshape(-1, 3)
    return positions @ (turn(table[0]) * table[1]).T + table[2]


def objective(theta, us, parents, model, corners, points):
    positions = vertices(theta, parents, *model)
    if us is None:
        return (points - positions[corners]).reshape(-1)
    a, b, c = (positions[corners[:, k]] for k in range(3))
    u, v = us[:, :1], us[:, 1:]
    return (points - (u * a + v * b + (1 - u - v) * c)).reshape(-1)


def jacobian(theta, us, parents, model, corners, points):
    by_theta = fnad.jacfwd(objective)(theta, us, parents, model, corners, points)
    if us is None:
        return by_theta
    unit = [np.broadcast_to(e, us.shape) for e in np.eye(2)]
    by_us = [fnad.jvp(lambda us: objective(theta, us, parents, model, corners, points), (us,), (e,))[1] for e in unit]
    return np.concatenate([np.stack(by_us, axis=1), by_theta], axis=1)


def prepare(input):
    data, hand = input["data"], input["data"]["model"]
    arrays = (np.array(hand[k], float) for k in ("base_relatives", "inverse_base_absolutes", "base_positions", "weights"))
    corners = np.array(data["correspondences"])
    us = np.array(input["us"], float) if input["us"] else None
    if us is not None:
        corners = np.array(hand["triangles"])[corners]
    return np.array(input["theta"], float), us, tuple(hand["parents"]), tuple(arrays), corners, np.array(data["points"], float)


FUNCTIONS = {"objective": fnad.jit(objective, static_argnums=2), "jacobian": fnad.jit(jacobian, static_argnums=2)}
