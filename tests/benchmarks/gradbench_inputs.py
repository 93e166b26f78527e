"""Small inputs of GradBench's problems, in the protocol's form, for the parity tests and for who records their answers."""

import numpy as np


def gmm(rng, d=3, k=4, n=6):
    arrays = {"x": (n, d), "alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2)}
    return {"d": d, "k": k, "n": n, "m": 1, "gamma": 1.5, **{name: rng.normal(size=s).tolist() for name, s in arrays.items()}}


def ba(rng, n=2, m=3, p=5):
    camera = [*(0.3 * rng.normal(size=6)), 400.0, 5.0, -8.0, 0.08, 0.003]
    return {"n": n, "m": m, "p": p, "cam": camera, "x": [0.7, -0.4, 5.0], "w": 0.4, "feat": [27.0, 83.0]}


def ht(rng, complicated, vertices=9, triangles=5, correspondences=4):
    bones = 22
    relatives, inverses = (np.tile(np.eye(4), (bones, 1, 1)) for _ in range(2))
    relatives[:, :3] += 0.3 * rng.normal(size=(bones, 3, 4))
    inverses[:, :3] += 0.3 * rng.normal(size=(bones, 3, 4))
    model = {
        "bone_count": bones,
        "parents": [-1, *(int(rng.integers(b)) for b in range(1, bones))],
        "base_relatives": relatives.tolist(),
        "inverse_base_absolutes": inverses.tolist(),
        "base_positions": np.hstack([rng.normal(size=(vertices, 3)), np.ones((vertices, 1))]).tolist(),
        "weights": rng.random((vertices, bones)).tolist(),
        "triangles": rng.integers(vertices, size=(triangles, 3)).tolist(),
        "is_mirrored": False,
    }
    pointed = triangles if complicated else vertices
    data = {"correspondences": rng.integers(pointed, size=correspondences).tolist(), "model": model}
    data["points"] = rng.normal(size=(correspondences, 3)).tolist()
    us = rng.random((correspondences, 2)).tolist() if complicated else []
    return {"theta": (0.3 * rng.normal(size=26)).tolist(), "us": us, "data": data}


def kmeans(rng, n=12, d=3, k=4):
    points = rng.random((n, d))
    return {"points": points.tolist(), "centroids": points[-k:].tolist()}


def lstm(rng, layers=2, bits=3, characters=6):
    sizes = {"main_params": (2 * layers, 4 * bits), "extra_params": (3, bits), "state": (2 * layers, bits)}
    text = rng.integers(2, size=(characters, bits)).astype(float)
    return {**{name: rng.random(size).tolist() for name, size in sizes.items()}, "sequence": text.tolist()}


def inputs():
    """(problem, functions, input) of every case."""
    rng = np.random.default_rng(0)
    return {
        "hello": ("hello", ("square", "double"), 3.0),
        "det": ("det", ("primal", "gradient"), {"A": rng.random(16).tolist(), "ell": 4}),
        "gmm": ("gmm", ("objective", "jacobian"), gmm(rng)),
        "ba": ("ba", ("objective", "jacobian"), ba(rng)),
        "ht, on vertices": ("ht", ("objective", "jacobian"), ht(rng, False)),
        "ht, on triangles": ("ht", ("objective", "jacobian"), ht(rng, True)),
        "kmeans": ("kmeans", ("cost", "dir"), kmeans(rng)),
        "llsq": ("llsq", ("primal", "gradient"), {"x": rng.random(5).tolist(), "n": 9}),
        "lse": ("lse", ("primal", "gradient"), {"x": rng.random(7).tolist()}),
        "lstm": ("lstm", ("objective", "jacobian"), lstm(rng)),
        "ode": ("ode", ("primal", "gradient"), {"x": rng.random(10).tolist(), "s": 1000}),
    }
