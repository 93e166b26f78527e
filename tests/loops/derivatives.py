"""The generated derivative code of a loop function, run as plain Python."""

import math
import re

import numpy as np

from fnad.loops.frontend import build
from fnad.loops.ir import Array, Scalar
from fnad.loops.printer import source
from fnad.loops.reverse_printer import adjoint
from fnad.loops.support import HELPERS
from fnad.loops.tangent import tangent


def type_of(x):
    a = np.asarray(x)
    return Array(a.dtype, a.ndim) if a.ndim else Scalar(a.dtype)


def run(text, namespace, name):
    """The function that the source defines."""
    names = {"np": np, "math": math, "prange": range}
    names |= {k: getattr(v, "py_func", v) for k, v in {**HELPERS, **namespace}.items()}
    exec(text, names)
    return names[name]


def balanced(text):
    """The adjoint's source with a check that it takes from its tapes all that it has put there."""
    tops = sorted(set(re.findall(r"^    (top_[fi]) = 0$", text, re.MULTILINE)))
    lists = sorted(set(re.findall(r"^    (\w+)\.pop\(\)$", text, re.MULTILINE)))
    checks = [f"    assert {t} == 0" for t in tops] + [f"    assert not {name}" for name in lists]
    body, last = text.rstrip("\n").rsplit("\n", 1)
    return "\n".join([body, *checks, last]) + "\n"


class Derivatives:
    """Value, tangent and adjoint of a function for arguments of the types of `args`; every float argument is active."""

    def __init__(self, function, args):
        self.build_from(build(function, tuple(map(type_of, args))))

    def build_from(self, fn):
        """The derivatives of a function of the loop language."""
        self.fn = fn
        self.wanted = tuple(a.type.dtype.kind == "f" for a in self.fn.args)
        self.tangent_fn = tangent(self.fn, self.wanted)
        self.value = run(*source(self.fn), self.fn.name)
        self.tangent = run(*source(self.tangent_fn), self.tangent_fn.name)
        text, names = adjoint(self.fn, self.wanted, True)
        self.text = balanced(text)
        self.adjoint = run(self.text, names, f"{self.fn.name}_adjoint")

    @staticmethod
    def floats(outs):
        return [o for o in outs if np.asarray(o).dtype.kind == "f"]

    def draw(self, rng, likes):
        return [np.asarray(rng.normal(size=np.shape(x)), dtype=np.asarray(x).dtype)[()] for x in likes]

    def check(self, args, seed=0, numeric=True, rtol=1e-9):
        """Both modes against each other, and against differences of the value."""
        rng = np.random.default_rng(seed)
        copies = lambda xs: [x.copy() if isinstance(x, np.ndarray) else x for x in xs]
        outs = self.floats(self.value(*copies(args)))
        cts = self.draw(rng, outs)
        active = [a for a, w in zip(args, self.wanted, strict=True) if w]
        directions = self.draw(rng, active)
        results = self.adjoint(*copies(args), *copies(cts))
        grads = results[-len(active) :]
        for g, a in zip(grads, active, strict=True):
            assert np.shape(g) == np.shape(a)
        forward = self.floats(self.tangent(*copies(args), *copies(directions)))
        for o, v, w in zip(outs, forward, self.floats(results), strict=False):
            np.testing.assert_allclose(v, o, rtol=1e-12)
            np.testing.assert_allclose(w, o, rtol=1e-12)
        pushed = sum(np.sum(c * t) for c, t in zip(cts, forward[len(outs) :], strict=True))
        pulled = sum(np.sum(g * d) for g, d in zip(grads, directions, strict=True))
        np.testing.assert_allclose(pushed, pulled, rtol=rtol, atol=rtol * 10)
        if numeric:
            h = 1e-6

            def moved(s):
                rest = iter(directions)
                return self.floats(
                    self.value(
                        *[np.asarray(a + s * h * next(rest))[()] if w else a for a, w in zip(copies(args), self.wanted, strict=True)]
                    )
                )

            slope = sum(np.sum(c * (p - m)) for c, p, m in zip(cts, moved(1), moved(-1), strict=True)) / (2 * h)
            np.testing.assert_allclose(pulled, slope, rtol=1e-5, atol=1e-5)
