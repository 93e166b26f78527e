"""What docs/migrating.md says is the same gives the same numbers: the left column as recorded, the right one now."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fnad
from fnad import optim
from fnad.nn import functional as F
from fnad.optim import schedules

from . import equivalents

ROWS = equivalents.rows()
RECORDED = json.loads(equivalents.RECORD.read_text())
NAMES = {"np": np, "fnad": fnad, "optim": optim, "schedules": schedules, "F": F}
TOLERANCE = 1e-7  # optax guards divisions by small numbers here and there


def each(kind):
    return pytest.mark.parametrize(("theirs", "ours"), [pytest.param(*row, id=row[0].split("(")[0]) for row in ROWS[kind]])


def test_the_tables_are_recorded():
    """Otherwise run: python tests/peers/record_equivalents.py."""
    assert {kind: [theirs for theirs, _ in rows] for kind, rows in ROWS.items()} == {kind: list(RECORDED[kind]) for kind in ROWS}
    assert min(map(len, ROWS.values())) > 10


@each("optimizers")
def test_optimizers(theirs, ours):
    got, want = equivalents.trained(eval(ours, NAMES), optim.apply_updates), RECORDED["optimizers"][theirs]
    for name in want:
        np.testing.assert_allclose(got[name], want[name], TOLERANCE, TOLERANCE)


@each("schedules")
def test_schedules(theirs, ours):
    schedule = eval(ours, NAMES)
    np.testing.assert_allclose([schedule(t) for t in equivalents.STEPS], RECORDED["schedules"][theirs], 1e-12, 1e-15)


@each("functions")
def test_functions(theirs, ours):
    np.testing.assert_allclose(eval(ours, {**NAMES, **equivalents.values()}), RECORDED["functions"][theirs], 1e-12, 1e-13)
