"""Random loop programs: source text and arguments, drawn by hypothesis."""

import linecache
import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

SCALARS = ("s", "t", "a", "b")
ARRAYS = ("u", "v", "x", "y")
"""u and v are local, y is an argument that the program may write, x one that it only reads."""
SIZES = (1, 2, 4)


def plain(f):
    """Stands for `njit`: the function as it is, marked as one that loop functions may call."""
    f.py_func = f
    return f


@dataclass
class LoopProgram:
    """A loop function as text, with arguments (x, y, a, b, n): arrays, numbers and an integer.

    It returns numbers and arrays; it may write into y. `smooth` says that its branches look at integers only, so that it
    equals its own differences (its values stay moderate in any case).
    """

    source: str
    args: tuple
    smooth: bool

    def function(self, njit=plain):
        """The function, with `njit` on itself and on the helper that it calls."""
        path = f"<loop program {hash(self.source):x}>"
        linecache.cache[path] = (len(self.source), None, self.source.splitlines(True), path)
        names = {"np": np, "math": math, "njit": njit}
        exec(compile(self.source, path, "exec"), names)
        return names["program"]

    def copies(self):
        """The arguments, with arrays of their own."""
        return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in self.args)

    def __repr__(self):
        return f"args {self.args}\n{self.source}"


HELPER = """\
@njit
def helper(p, q, c):
    total = 0.0
    for i in range(p.size):
        if i == 2:
            continue
        q[i] = np.sin(p[i] + c) * 0.5 + q[-1 - i] * 0.25
        total += q[i]
        if i > 3:
            return total
    return total * 0.5


"""


class Writer:
    """Writes the statements of one program."""

    def __init__(self, draw, smooth):
        self.draw, self.smooth = draw, smooth
        self.lines, self.depth, self.names = [], 1, 0
        self.indices, self.loops, self.fuel = [], [], 14

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    # expressions

    def index(self, array):
        """An index that is inside of any array: sizes are at least 1 and all the same."""
        options = ["0", "-1", f"n % {array}.size"]
        options += [f"({i} + {k}) % {array}.size" for i in self.indices for k in (0, 1)] + [
            f"-1 - {i} % {array}.size" for i in self.indices
        ]
        return self.pick(options)

    def number(self, depth=0):
        """An expression of a moderate float."""
        array = self.pick(ARRAYS)
        leaves = [*SCALARS, "0.5", "-1.25", f"{array}[{self.index(array)}]", *[f"0.1 * {i}" for i in self.indices]]
        if depth > 2:
            return self.pick(leaves)
        kind = self.draw(st.integers(0, 12))
        if kind <= 3:
            return self.pick(leaves)
        one, two = self.number(depth + 1), self.number(depth + 1)
        forms = ["{0} + {1}", "{0} - {1}", "0.5 * ({0}) * np.cos({1})", "({0}) / (2.0 + np.sin({1}))", "np.tanh({0})"]
        forms += [
            "math.exp(-({0}) * ({0}))",
            "({0} if {2} else {1})",
            "0.25 * ({0}) ** 2",
            "np.sqrt(1.0 + ({0}) ** 2)",
            "0.3 * np.sum({3} * {4})",
        ]
        form = forms[kind - 4] if kind - 4 < len(forms) else forms[-1]
        return form.format(one, two, self.condition(), self.pick(ARRAYS), self.pick(ARRAYS))

    def condition(self):
        i = self.pick([*self.indices, "n"])
        options = [f"{i} % 2 == 0", f"{i} > 1", f"{i} < 2 or n == 3", f"not {i} == 1", f"0 < {i} <= 2"]
        if not self.smooth:
            array = self.pick(ARRAYS)
            options += [f"{self.pick(SCALARS)} > {self.pick(SCALARS)}", f"{array}[{self.index(array)}] > 0.1 and {i} != 1"]
        return self.pick(options)

    # statements

    def block(self):
        self.depth += 1
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement()
        self.depth -= 1

    def statement(self):
        self.fuel -= 1
        simple = [self.assign, self.store, self.store, self.swap, self.arrays, self.call]
        compound = [self.branch, self.for_loop, self.while_loop]
        room = self.fuel > 0 and self.depth < 5
        getattr(self, self.pick([f.__name__ for f in (simple + compound * 2 if room else simple)]))()

    def assign(self):
        name, value = self.pick(SCALARS), self.number()
        self.line(self.pick([f"{name} = np.sin({value})", f"{name} += 0.1 * np.sin({value})", f"{name} *= np.cos({value})"]))

    def store(self):
        array = self.pick(("u", "v", "y"))
        index, value = self.index(array), self.number()
        options = [f"{array}[{index}] = np.sin({value})", f"{array}[{index}] += 0.2 * np.tanh({value})"]
        self.line(self.pick([*options, f"{array}[{index}] *= np.cos({value})"]))

    def swap(self):
        index = self.index("u")
        swaps = ["u, v = v, u", "s, t = t, s", "a, b, s = b, 0.5 * (a + s), a", f"u[0], u[{index}] = u[{index}], u[0]"]
        self.line(self.pick(swaps))

    def arrays(self):
        target, other = self.pick(("u", "v")), self.pick(ARRAYS)
        options = [
            f"{target} = {other}.copy()",
            f"{target} = np.sin({other}) * 0.5 + {target}",
            f"{target}[:] = np.cos({other} + {target})",
        ]
        options += [
            f"{target}[1:] = {other}[:-1]",
            f"{target} *= 0.5",
            f"{target}[:-1] += 0.1 * {other}[1:]",
            f"{target} = np.zeros_like({other})",
        ]
        self.line(self.pick(options))

    def call(self):
        one, two = self.pick(ARRAYS), self.pick(("u", "v", "y"))
        self.line(f"{self.pick(SCALARS)} = np.tanh(helper({one}, {two}, {self.pick(SCALARS)}))")

    def branch(self):
        self.line(f"if {self.condition()}:")
        self.block()
        self.jump()
        if self.draw(st.booleans()):
            self.line("else:")
            self.block()
            self.jump()

    def jump(self):
        """At the end of a branch, sometimes."""
        kind = self.draw(st.integers(0, 9))
        text = {0: "break", 1: "continue", 2: f"return np.sin({self.pick(SCALARS)}), t, u, v"}.get(kind)
        if text is not None and (self.loops or kind == 2):
            self.depth += 1
            if kind == 1 and self.loops[-1].startswith("c"):
                self.line(f"{self.loops[-1]} += 1")
            self.line(text)
            self.depth -= 1

    def for_loop(self):
        i = self.fresh("i")
        value = self.fresh("w")
        headers = [f"for {i} in range(n):", f"for {i} in range(1, 4):", f"for {i} in range(n, -1, -2):"]
        headers += [f"for {i} in range(x.size):", f"for {i}, {value} in enumerate(x):", f"for {i}, {value} in enumerate((a, s)):"]
        header = self.pick(headers)
        self.line(header)
        self.inside(i, lambda: None)
        if value in header and self.draw(st.booleans()):
            self.line(f"    s += 0.1 * {value}")

    def while_loop(self):
        c = self.fresh("c")
        self.line(f"{c} = 0")
        self.line(f"while {c} < 3" + (" and s < 2.0:" if not self.smooth and self.draw(st.booleans()) else ":"))
        self.inside(c, lambda: self.line(f"    {c} += 1"))

    def inside(self, index, end):
        self.loops.append(index)
        self.indices.append(index)
        self.block()
        end()
        self.indices.pop()
        self.loops.pop()


@st.composite
def loop_programs(draw, smooth=False):
    """A `LoopProgram`."""
    writer = Writer(draw, smooth)
    writer.lines += ["s, t = a, 0.5", "u = x.copy()", "v = np.ones_like(x) * b"]
    writer.lines[:] = ["    " + text for text in writer.lines]
    for _ in range(draw(st.integers(2, 5))):
        writer.statement()
    writer.line("return s + 0.5 * a, t - b, u, v")
    source = HELPER + "@njit\ndef program(x, y, a, b, n):\n" + "\n".join(writer.lines) + "\n"
    size, seed = draw(st.sampled_from(SIZES)), draw(st.integers(0, 3))
    rng = np.random.default_rng(seed)
    args = (rng.uniform(-1, 1, size), rng.uniform(-1, 1, size), *rng.uniform(-1, 1, 2).tolist(), draw(st.integers(0, 3)))
    return LoopProgram(source, args, smooth)
