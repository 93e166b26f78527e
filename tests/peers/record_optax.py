"""Record the trajectories of optimizers that PyTorch lacks, as optax computes them: `python tests/peers/record_optax.py`.

The file holds inputs, options and results, so that the tests need no optax. It runs where jax and optax are installed.
"""

import json
import pathlib

import jax
import numpy as np
import optax

jax.config.update("jax_enable_x64", True)
TESTS = pathlib.Path(__file__).resolve().parent.parent
RUNS = [
    ("lion", {"lr": 0.05}, lambda lr: optax.lion(lr, weight_decay=0.0)),
    ("lion", {"lr": 0.05, "betas": [0.5, 0.8], "weight_decay": 0.1}, lambda lr: optax.lion(lr, 0.5, 0.8, weight_decay=0.1)),
    ("adabelief", {"lr": 0.05}, lambda lr: optax.adabelief(lr, eps=1e-16, eps_root=1e-16)),
    ("adabelief", {"lr": 0.05, "betas": [0.4, 0.9], "eps": 1e-3}, lambda lr: optax.adabelief(lr, 0.4, 0.9, 1e-3, 1e-3)),
    ("lamb", {"lr": 0.05}, optax.lamb),
    (
        "lamb",
        {"lr": 0.05, "betas": [0.4, 0.9], "eps": 0.01, "weight_decay": 0.1},
        lambda lr: optax.lamb(lr, 0.4, 0.9, 0.01, weight_decay=0.1),
    ),
    ("schedule_free_sgd", {"lr": 0.3}, lambda lr: optax.contrib.schedule_free(optax.sgd(lr), lr, 0.9)),
    ("schedule_free_sgd", {"lr": 0.3, "momentum": 0.5}, lambda lr: optax.contrib.schedule_free(optax.sgd(lr), lr, 0.5)),
    (
        "schedule_free_adamw",
        {"lr": 0.1, "betas": [0.8, 0.9], "weight_decay": 0.1},
        lambda lr: optax.contrib.schedule_free(optax.adamw(lr, 0.0, 0.9, weight_decay=0.1), lr, 0.8),
    ),
]
SHAPES = {"w": (3, 2), "b": (3,), "s": ()}


def draw(rng: np.random.Generator) -> dict:
    return {k: np.array(rng.normal(size=shape)).round(3) for k, shape in SHAPES.items()}


def listed(tree: dict, digits: int = 17) -> dict:
    return {
        k: json.loads(json.dumps(np.asarray(v, np.float64).tolist()), parse_float=lambda x: float(f"{float(x):.{digits}g}"))
        for k, v in tree.items()
    }


def optimizers() -> dict:
    """Parameters after 1, 2, 5 and 20 steps for given gradients; of schedule-free ones their averages too."""
    rng = np.random.default_rng(0)
    start, grads = draw(rng), [draw(rng) for _ in range(20)]
    runs = []
    for name, options, make in RUNS:
        run = {"name": name, "options": options}
        for dtype, digits in (("float32", 9), ("float64", 17)):
            params = {k: jax.numpy.asarray(v, dtype) for k, v in start.items()}
            opt = make(options["lr"])
            state, found = opt.init(params), {}
            for t, g in enumerate(grads):
                updates, state = opt.update({k: jax.numpy.asarray(v, dtype) for k, v in g.items()}, state, params)
                params = optax.apply_updates(params, updates)
                if t + 1 in (1, 2, 5, 20):
                    found[str(t + 1)] = listed(params, digits)
            if name.startswith("schedule_free"):
                found["average"] = listed(optax.contrib.schedule_free_eval_params(state, params), digits)
            run[dtype] = found
        runs.append(run)
    steps = np.arange(20)
    rates = {
        "warmup_cosine": optax.warmup_cosine_decay_schedule(0.01, 0.3, 5, 15, 0.02)(steps),
        "warmup_cosine_without": optax.warmup_cosine_decay_schedule(0.0, 0.3, 0, 15)(steps),
    }
    return {
        "optax": optax.__version__,
        "start": listed(start),
        "grads": [listed(g) for g in grads],
        "runs": runs,
        "schedules": {k: np.asarray(v, np.float64).tolist() for k, v in rates.items()},
    }


if __name__ == "__main__":
    data = optimizers()
    rows = ",\n".join(
        f"{json.dumps(k)}: " + ("[\n" + ",\n".join(map(json.dumps, v)) + "\n]" if isinstance(v, list) else json.dumps(v))
        for k, v in data.items()
    )
    (TESTS / "optim" / "optimizers_optax.json").write_text("{\n" + rows + "\n}\n")
