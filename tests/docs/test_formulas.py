"""The formulas of schedules in docs/optim.md, read from the page, give what the schedules give."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fnad.optim import schedules

PAGE = Path(__file__).parents[2] / "docs" / "optim.md"
OPTIONS = {
    "step_lr": {"lr": 0.3, "step_size": 7, "gamma": 0.5},
    "exponential_lr": {"lr": 0.3, "gamma": 0.9},
    "constant_lr": {"lr": 0.3, "factor": 0.25, "total_iters": 6},
    "linear_lr": {"lr": 0.3, "start_factor": 0.25, "end_factor": 0.9, "total_iters": 6},
    "polynomial_lr": {"lr": 0.3, "total_iters": 9, "power": 2.0},
    "cosine_annealing_lr": {"lr": 0.3, "T_max": 9, "eta_min": 0.1},
    "swa_lr": {"lr": 0.3, "swa_lr": 0.1, "anneal_epochs": 9},
}


def formulas():
    """name -> what the table says, where that is one expression."""
    text = PAGE.read_text(encoding="utf-8").split("| function | like | learning rate at step `t` |")[1].split("\n\n")[0]
    rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in text.splitlines()[2:]]
    return {re.match(r"`(\w+)", row[0])[1]: row[-1].strip("`") for row in rows if re.fullmatch(r"`[^`]+`", row[-1].strip())}


def test_every_schedule_is_in_the_table():
    text = PAGE.read_text(encoding="utf-8")
    for name, thing in vars(schedules).items():
        if callable(thing) and not name.startswith("_") and name.islower():
            assert f"`{name}" in text, name


@pytest.mark.parametrize("name", OPTIONS)
def test_formula(name):
    options, formula = OPTIONS[name], formulas()[name]
    schedule = getattr(schedules, name)(**options)
    for t in range(30):
        want = eval(formula, {"cos": np.cos, "pi": np.pi, "t": t, **options})
        np.testing.assert_allclose(schedule(t), want, rtol=1e-12, atol=1e-15)
