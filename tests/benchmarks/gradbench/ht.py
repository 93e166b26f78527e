"""Hand tracking: distances of measured points to a posed hand model, by the pose (and by the points' places on its triangles)."""

import numpy as np

import fnad


def rotations(angles):
    """Matrices that turn about x, then y, then z, by angles in the order x, z, y: [bone, 3, 3]."""
    (sx, sz, sy), (cx, cz, cy) = np.sin(angles).T, np.cos(angles).T
    rows = [
        [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
        [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
        [-sy, cy * sx, cy * cx],
    ]
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)


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


def vertices(table, parents, relatives, inverses, base, weights):
    """The vertices of the bent hand: [3, vertex], so that all tangents of the moves are rows of one matrix product."""
    local = relatives[:, :, :3] @ rotations(table[3:])
    local = np.concatenate([local, relatives[:, :, 3:]], axis=2)
    absolute = []
    for bone, parent in enumerate(parents):
        absolute.append(local[bone, :3] if parent < 0 else absolute[parent] @ local[bone])
    moves = np.stack(absolute) @ inverses
    weighted = (weights.T[:, None, :] * base.T).reshape(-1, len(base))
    return np.swapaxes(moves, 0, 1).reshape(3, -1) @ weighted


def objective(theta, us, parents, model, corners, points):
    table = pose(theta, len(parents))
    bent = vertices(table, parents, *model)
    if us is None:
        found = bent[:, corners]
    else:
        (a, b, c), (u, v) = (bent[:, k] for k in corners.T), us.T
        found = u * a + v * b + (1 - u - v) * c
    placed = (turn(table[0]) * table[1]) @ found + table[2][:, None]
    return (points - placed.T).reshape(-1)


def jacobian(theta, us, parents, model, corners, points):
    if us is None:
        return fnad.jacfwd(objective)(theta, us, parents, model, corners, points)

    def shifted(shift, theta):  # each observation has an u of its own: all are moved at once
        return objective(theta, us + shift, parents, model, corners, points)

    return np.concatenate(fnad.jacfwd(shifted, argnums=(0, 1))(np.zeros(2), theta), axis=1)


def prepare(input):
    data, hand = input["data"], input["data"]["model"]
    arrays = (np.array(hand[k], float) for k in ("base_relatives", "inverse_base_absolutes", "base_positions", "weights"))
    corners = np.array(data["correspondences"])
    us = np.array(input["us"], float) if input["us"] else None
    if us is not None:
        corners = np.array(hand["triangles"])[corners]
    return np.array(input["theta"], float), us, tuple(hand["parents"]), tuple(arrays), corners, np.array(data["points"], float)


FUNCTIONS = {"objective": fnad.jit(objective, static_argnums=2), "jacobian": fnad.jit(jacobian, static_argnums=2)}
