"""Record the trajectories of PyTorch's optimizers and schedulers: `python tests/peers/record_torch_optim.py` where torch is installed.

The file holds inputs, options and results, so that the tests need no torch.
"""

import itertools
import pathlib

import torch
from record_torch import DTYPES, TESTS, write

KEPT = (1, 2, 5, 20)
SHAPES = {"w": (3, 2), "b": (3,), "s": ()}
SKIP = [[0, "b"], [1, "b"], [4, "w"], [5, "w"], [5, "b"], [5, "s"]]
ADAM = [
    {},
    {"lr": 0.1},
    {"lr": 0.0},
    {"lr": 0.1, "betas": (0.5, 0.9)},
    {"lr": 0.05, "betas": (0.3, 0.99)},
    {"lr": 0.05, "betas": (0.0, 0.0)},
    {"lr": 0.1, "eps": 0.1},
    {"lr": 0.1, "weight_decay": 0.1},
    {"lr": 0.1, "maximize": True},
    {"lr": 0.1, "amsgrad": True},
    {"lr": 0.1, "betas": (0.8, 0.7), "weight_decay": 0.05, "amsgrad": True, "maximize": True, "eps": 1e-3},
    {"lr": 0.1, "weight_decay": 0.0, "schedule": "0.1 / (1 + t)"},
    {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True, "skip": SKIP},
]
RUNS = {
    "SGD": [
        {},
        {"lr": 0.1},
        {"lr": 0.0},
        {"lr": 0.1, "weight_decay": 0.05},
        {"lr": 0.1, "maximize": True},
        {"lr": 0.1, "maximize": True, "weight_decay": 0.05},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5},
        {"lr": 0.1, "momentum": 0.9, "dampening": 1.0},
        {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1},
        {"lr": 0.05, "momentum": 0.8, "nesterov": True},
        {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.2, "maximize": True},
        {"lr": 0.02, "momentum": 0.95, "dampening": 0.1, "weight_decay": 0.01, "maximize": True},
        {"lr": 0.1, "momentum": 0.9, "schedule": "0.1 / (1 + t)"},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1, "skip": SKIP},
    ],
    "Adam": ADAM,
    "AdamW": ADAM,
    "Adamax": [
        {},
        {"lr": 0.1, "betas": (0.3, 0.9), "eps": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
        {"lr": 0.1, "skip": SKIP},
    ],
    "NAdam": [
        {},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.05, "betas": (0.4, 0.9), "momentum_decay": 0.1, "eps": 0.1, "maximize": True},
        {"lr": 0.1, "skip": SKIP},
        {"lr": 0.1, "schedule": "0.1 / (1 + t)"},
    ],
    "RAdam": [
        {},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.05, "betas": (0.4, 0.9), "eps": 0.1, "maximize": True},
        {"lr": 0.1, "betas": (0.9, 0.5)},
        {"lr": 0.1, "skip": SKIP},
    ],
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 0.1, "maximize": True},
        {"lr": 0.1, "lr_decay": 0.1, "skip": SKIP},
    ],
    "Adadelta": [
        {},
        {"lr": 0.5, "rho": 0.5, "eps": 0.01, "weight_decay": 0.1},
        {"eps": 0.01, "maximize": True},
        {"rho": 0.8, "skip": SKIP},
    ],
    "RMSprop": [
        {"lr": 0.05},
        {"lr": 0.1, "alpha": 0.9, "eps": 0.1},
        {"lr": 0.05, "centered": True, "alpha": 0.7, "eps": 0.1},
        {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1, "alpha": 0.4, "maximize": True},
        {"lr": 0.05, "momentum": 0.9, "centered": True, "weight_decay": 0.1, "eps": 1e-2, "skip": SKIP},
    ],
    "Rprop": [
        {},
        {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.06, 0.2)},
        {"lr": 0.1, "maximize": True},
        {"lr": 0.1, "skip": SKIP},
    ],
    "ASGD": [
        {},
        {"lr": 0.1, "lambd": 0.01, "alpha": 0.6, "t0": 2.0, "weight_decay": 0.1},
        {"lr": 0.1, "lambd": 0.1, "maximize": True},
        {"lr": 0.1, "t0": 1.0, "skip": SKIP},
        {"lr": 0.1, "t0": 3.0, "schedule": "0.1 / (1 + t)"},
    ],
    "Adafactor": [
        {},
        {"lr": 0.1, "beta2_decay": -0.5, "weight_decay": 0.1},
        {"lr": 0.5, "eps": (0.1, 0.01), "d": 1.5, "maximize": True},
        {"lr": 0.1, "skip": SKIP},
    ],
    "Muon": [
        {},
        {"lr": 0.1, "nesterov": False, "momentum": 0.3},
        {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0},
        {"lr": 0.1, "ns_coefficients": (2.0, -1.5, 0.5), "ns_steps": 3, "eps": 10.0, "adjust_lr_fn": "original"},
    ],
}


def numbers(shapes: dict) -> dict:
    return {name: torch.randn(shape, dtype=torch.float64).round(decimals=3) for name, shape in shapes.items()}


def listed(tree: dict) -> dict:
    return {k: v if v is None else v.tolist() for k, v in tree.items()}


def short(x: object, dtype: str) -> object:
    """Numbers with as many digits as their dtype has."""
    if isinstance(x, dict):
        return {k: short(v, dtype) for k, v in x.items()}
    if isinstance(x, list):
        return [short(v, dtype) for v in x]
    return float(f"{x:.9g}") if isinstance(x, float) and dtype == "float32" else x


class InTheDtypeOfTheLeaf:
    """Muon iterates in bfloat16, whatever the leaf is; here it does in the dtype of the leaf, as fnad's."""

    def __enter__(self) -> None:
        self.kept, torch.Tensor.bfloat16 = torch.Tensor.bfloat16, torch.Tensor.clone

    def __exit__(self, *error: object) -> None:
        torch.Tensor.bfloat16 = self.kept


def trajectory(name: str, options: dict, start: dict, grads: list, dtype: torch.dtype, schedule: str | None, skip: list) -> dict:
    """Parameters after some steps, and the whole state after the last."""
    torch.set_default_dtype(dtype)  # PyTorch keeps its scalars in it
    params = {k: torch.nn.Parameter(v.to(dtype).clone()) for k, v in start.items()}
    opt = getattr(torch.optim, name)(params.values(), **options)
    out = {}
    for t, g in enumerate(grads):
        for k, p in params.items():
            p.grad = None if [t, k] in skip else g[k].to(dtype)
        if schedule:
            opt.param_groups[0]["lr"] = eval(schedule, {"t": t})
        with InTheDtypeOfTheLeaf():
            opt.step()
        if t + 1 in KEPT:
            out[str(t + 1)] = listed(params)
    fields = {f for p in params.values() for f in opt.state[p] if f != "step"}
    out["state"] = {f: listed({k: opt.state[p].get(f) for k, p in params.items()}) for f in sorted(fields)}
    torch.set_default_dtype(torch.float32)
    return out


def optimizers() -> dict:
    """Trajectories for given gradients: 20 steps."""
    torch.manual_seed(0)
    start, grads = numbers(SHAPES), [numbers(SHAPES) for _ in range(20)]
    runs = []
    for name, several in RUNS.items():
        for given in several:
            options = {k: v for k, v in given.items() if k not in ("schedule", "skip")}
            schedule, skip = given.get("schedule"), given.get("skip", [])
            leaves = {"w": start["w"]} if name == "Muon" else start
            run = {"name": name, "options": options, "schedule": schedule, "skip": skip}
            for key, dtype in DTYPES.items():
                run[key] = short(trajectory(name, options, leaves, grads, dtype, schedule, skip), key)
            runs.append(run)
    return {"torch": torch.__version__, "start": listed(start), "grads": [listed(g) for g in grads], "runs": runs}


def groups() -> dict:
    """Parameter groups with settings of their own, and clipping."""
    torch.manual_seed(1)
    start, grads = numbers(SHAPES), [numbers(SHAPES) for _ in range(5)]
    out = {"torch": torch.__version__, "start": listed(start), "grads": [listed(g) for g in grads], "runs": []}
    settings = [{"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.01}]
    for name, norm_type, key in itertools.product(("SGD", "AdamW"), (2.0, 1.0, float("inf")), DTYPES):
        params = {k: torch.nn.Parameter(v.to(DTYPES[key]).clone()) for k, v in start.items()}
        members = [[params["w"]], [params["b"], params["s"]]]
        opt = getattr(torch.optim, name)([{"params": p, **s} for p, s in zip(members, settings, strict=True)])
        for g in grads:
            for k, p in params.items():
                p.grad = g[k].to(DTYPES[key]).clone()
            torch.nn.utils.clip_grad_norm_(params.values(), 1.5, norm_type)
            opt.step()
        out["runs"].append({"name": name, "norm_type": str(norm_type), "dtype": key, "params": short(listed(params), key)})
    return out


OBJECTIVES = {
    "rosenbrock": ("(1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2", [-1.2, 1.0]),
    "quartic": ("((x - 1) ** 4).sum() + (x * x).sum() / 10", [3.0, -2.0, 0.5]),
    "quadratic": ("(x[0] + 3 * x[1]) ** 2 + (x[1] - 2) ** 2 / 2", [4.0, 4.0]),
}
LBFGS = [
    {},
    {"lr": 0.1, "max_iter": 5},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 8},
    {"lr": 0.5, "line_search_fn": "strong_wolfe", "max_eval": 7, "tolerance_change": 1e-3},
]


def lbfgs() -> dict:
    """Loss and parameters of six steps of LBFGS, and how often the closure was called."""
    runs = []
    for (name, (code, start)), options, (key, dtype) in itertools.product(OBJECTIVES.items(), LBFGS, DTYPES.items()):
        if name == "rosenbrock" and not options.get("line_search_fn"):
            continue  # it diverges without one
        x = torch.tensor(start, dtype=dtype, requires_grad=True)
        opt = torch.optim.LBFGS([x], **options)

        def closure(x=x, opt=opt, code=code) -> torch.Tensor:
            opt.zero_grad()
            loss = eval(code, {"x": x})
            loss.backward()
            return loss

        steps = []
        for _ in range(6):
            loss = opt.step(closure).item()
            state = opt.state[x]
            steps.append({"loss": loss, "x": x.tolist(), "func_evals": state["func_evals"], "n_iter": state["n_iter"]})
        runs.append({"objective": name, "options": options, "dtype": key, "steps": short(steps, key)})
    return {"torch": torch.__version__, "objectives": OBJECTIVES, "runs": runs}


SCHEDULERS = [
    ("LambdaLR", {"lr_lambda": "1.0 / (1.0 + t)"}),
    ("MultiplicativeLR", {"lr_lambda": "0.5 + 0.4 * (t % 2)"}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.1}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 2}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 0.5, "end_factor": 0.1, "total_iters": 4}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.5}),
    ("CosineAnnealingLR", {"T_max": 5}),
    ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 3}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 2, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "step_size_down": 3, "mode": "exp_range", "gamma": 0.9}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "scale_fn": "1 / t"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "scale_fn": "0.5 + 0 * t", "scale_mode": "iterations"}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 20, "pct_start": 0.45, "anneal_strategy": "linear", "div_factor": 10}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 20, "three_phase": True, "final_div_factor": 100}),
    ("SWALR", {"swa_lr": 0.02, "anneal_epochs": 6}),
    ("SWALR", {"swa_lr": 0.5, "anneal_epochs": 3, "anneal_strategy": "linear"}),
    ("SWALR", {"swa_lr": 0.5, "anneal_epochs": 0}),
]
SEQUENCES = [
    ([("LinearLR", {"start_factor": 0.1, "total_iters": 4}), ("CosineAnnealingLR", {"T_max": 10})], [4]),
    ([("ConstantLR", {}), ("ExponentialLR", {"gamma": 0.8}), ("StepLR", {"step_size": 2})], [3, 9]),
]
CHAINS = [
    [("ConstantLR", {"total_iters": 4}), ("ExponentialLR", {"gamma": 0.9})],
    [("LinearLR", {}), ("MultiStepLR", {"milestones": [3, 9]})],
]
PLATEAUS = [
    {"factor": 0.5, "patience": 1},
    {"factor": 0.1, "patience": 0, "cooldown": 2, "min_lr": 1e-3, "threshold": 0.2, "threshold_mode": "abs"},
    {"mode": "max", "patience": 1, "factor": 0.3, "eps": 1e-3},
]
METRICS = [3.0, 2.5, 2.6, 2.4, 2.4, 2.39999, 2.5, 1.0, 1.5, 1.2, 1.1, 1.3, 1.4, 0.5, 0.7, 0.6, 0.55, 0.8, 0.9, 1.0]


def made(opt: torch.optim.Optimizer, name: str, options: dict) -> object:
    given = {k: (lambda t, code=v: eval(code, {"t": t})) if k in ("lr_lambda", "scale_fn") else v for k, v in options.items()}
    module = torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler
    return getattr(module, name)(opt, **given)


def schedulers() -> dict:
    """Learning rate, and momentum where it moves, before each of 20 steps."""
    L = torch.optim.lr_scheduler

    def optimizer() -> torch.optim.Optimizer:
        return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)

    def rates(opt: torch.optim.Optimizer, scheduler: object, metrics: list | None = None) -> dict:
        lrs, momenta = [], []
        for t in range(20):
            lrs.append(float(opt.param_groups[0]["lr"]))
            momenta.append(float(opt.param_groups[0]["momentum"]))
            opt.step()
            scheduler.step(metrics[t]) if metrics else scheduler.step()
        return {"lr": lrs, "momentum": momenta if len(set(momenta)) > 1 else None}

    runs = []
    for name, options in SCHEDULERS:
        opt = optimizer()
        runs.append({"name": name, "options": options, **rates(opt, made(opt, name, options))})
    for parts, milestones in SEQUENCES:
        opt = optimizer()
        scheduler = L.SequentialLR(opt, [made(opt, *part) for part in parts], milestones=milestones)
        runs.append({"name": "SequentialLR", "options": {"schedules": parts, "milestones": milestones}, **rates(opt, scheduler)})
    for parts in CHAINS:
        opt = optimizer()
        scheduler = L.ChainedScheduler([made(opt, *part) for part in parts])
        runs.append({"name": "ChainedScheduler", "options": {"factors": parts}, **rates(opt, scheduler)})
    plateaus = []
    for options in PLATEAUS:
        opt = optimizer()
        plateaus.append({"options": options, **rates(opt, L.ReduceLROnPlateau(opt, **options), METRICS)})
    return {"torch": torch.__version__, "metrics": METRICS, "runs": runs, "plateaus": plateaus}


def averages() -> dict:
    """What AveragedModel holds while its model's parameter takes given values."""
    torch.manual_seed(2)
    values = torch.randn(8, 2, dtype=torch.float64).round(decimals=3)
    out = {"torch": torch.__version__, "values": values.tolist(), "runs": []}
    for decay in (None, 0.9, 0.5):
        model = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
        rule = {} if decay is None else {"multi_avg_fn": torch.optim.swa_utils.get_ema_multi_avg_fn(decay)}
        averaged = torch.optim.swa_utils.AveragedModel(model, **rule)
        seen = []
        for v in values:
            model.weight.data[:] = v
            averaged.update_parameters(model)
            seen.append(averaged.module.weight.data[0].tolist())
        out["runs"].append({"decay": decay, "averages": seen})
    return out


RECORDS = {"optimizers": optimizers, "groups": groups, "lbfgs": lbfgs, "schedulers": schedulers, "averages": averages}

if __name__ == "__main__":
    for name, record in RECORDS.items():
        write(pathlib.Path(TESTS) / "optim" / f"{name}_torch.json", record())
