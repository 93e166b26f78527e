"""The meaning of the loop language, statement by statement: what printed and transformed programs are compared with."""

from __future__ import annotations

import math

import numpy as np

from fnad.loops.ir import Const, For, If, Op
from fnad.loops.spelling import expression

NAMES = {"np": np, "math": math}


class Raised(Exception):
    """The program reached a `raise`."""


def run(fn, *args):
    """The flat tuple of what a function returns."""
    env = dict(zip(fn.args, args, strict=True))
    _block(fn.body, env)
    return tuple(_read(env, r) for r in fn.returns)


def _read(env, operand):
    return operand.value if isinstance(operand, Const) else env[operand]


def _block(block, env):
    for item in block.items:
        if isinstance(item, Op):
            _op(item, env)
        elif isinstance(item, If):
            taken = bool(_read(env, item.condition))
            _block(item.then if taken else item.orelse, env)
            ends = item.then_yields if taken else item.else_yields
            env.update(zip(item.results, [_read(env, e) for e in ends], strict=True))
        else:
            _loop(item, env)


def _loop(item, env):
    versions = [_read(env, i) for i in item.inits]
    numbers = iter(range(*(int(_read(env, x)) for x in (item.lo, item.hi, item.step)))) if isinstance(item, For) else None
    count = 0
    while True:
        env.update(zip(item.params, versions, strict=True))
        if numbers is not None:
            number = next(numbers, None)
            if number is None:
                break
            env[item.iv] = number
        else:
            _block(item.head, env)
            if not _read(env, item.condition):
                break
        count += 1
        _block(item.body, env)
        versions = [_read(env, y) for y in item.yields]
        if item.stop is not None and _read(env, item.stop):
            break
    env.update(zip(item.results, versions, strict=True))
    if item.count is not None:
        env[item.count] = count


def _op(op, env):
    if op.kind == "raise":
        raise Raised(op.attrs["text"])
    args = [None if a is None else _read(env, a) for a in op.args]
    if op.kind == "store":
        args[0][tuple(args[1:-1])] = args[-1]
        return
    names = [f"x{k}" for k in range(len(args))]
    text = expression(op, ["" if a is None else n for a, n in zip(op.args, names, strict=True)])
    env[op.out] = eval(text, NAMES | dict(zip(names, args, strict=True)))
