"""explain, its saved modules, and profile."""

from __future__ import annotations

import builtins
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import fnad
from fnad.errors import UnsupportedError

F = fnad.nn.functional
RNG = np.random.default_rng(0)


def mlp(p, x, y):
    h = np.tanh(x @ p["w"] + p["b"])
    return F.cross_entropy(h @ p["v"], y)


PARAMS = {"w": RNG.normal(size=(6, 8)), "b": np.zeros(8), "v": RNG.normal(size=(8, 5))}
X, Y = RNG.normal(size=(40, 6)), RNG.integers(0, 5, 40)


CLOSED = np.array([1.5, -np.inf, np.nan])


def rnn(w, xs):
    return np.sum(fnad.scan(lambda h, x: (np.tanh(w @ h + x), np.sum(h)), np.zeros(4), xs)[1])


def test_groups_count_bytes_and_flops():
    a, b = np.ones((30, 20), np.float32), np.ones((20, 10), np.float32)
    product, _ = fnad.explain(lambda a, b: np.tanh(a @ b))(a, b).groups
    assert (product.kind, product.what, product.flops) == ("product", "matmul", 2 * 30 * 20 * 10)
    assert product.bytes == 4 * (30 * 20 + 20 * 10 + 30 * 10)
    assert product.line.startswith("test_explain.py:")
    (chain,) = fnad.explain(lambda a: np.sum(a**2))(a).groups
    assert (chain.kind, chain.flops, chain.bytes) == ("loop", 2 * 600, 4 * 600 + 4)


def test_what_is_part_of_a_product_reads_it_in_the_cache():
    a, b, c = np.ones((30, 20)), np.ones((20, 10)), np.ones(10)
    (group,) = fnad.explain(lambda a, b, c: np.maximum(a @ b + c, 0))(a, b, c).groups
    assert (group.kind, group.what) == ("product", "matmul, add, maximum")
    assert (group.flops, group.bytes) == (2 * 30 * 20 * 10 + 300, 8 * (30 * 20 + 20 * 10 + 10 + 30 * 10))


def test_an_entry_that_is_read_is_not_the_whole_array():
    (group,) = fnad.explain(lambda x: x[3] * 2)(np.ones(1000)).groups
    assert group.bytes == 16


def test_scan_is_a_group_and_counts_every_step():
    ten, twenty = (fnad.explain(rnn)(np.eye(4), np.zeros((n, 4))).groups for n in (10, 20))
    (small,), (large,) = ([g for g in found if g.kind == "scan"] for found in (ten, twenty))
    assert large.flops == 2 * small.flops > 0
    assert large.bytes == 2 * small.bytes > 0


def test_text_shows_all_stages():
    text = str(fnad.explain(fnad.value_and_grad(mlp))(PARAMS, X, Y))
    for part in (
        "graph as recorded",
        "- ",
        "+ ",
        "== groups",
        "product",
        "== buffers",
        "argument 0",
        "result 0",
        "of workspace",
        "def tanh_f64(x0)",
    ):
        assert part in text
    assert "host" in str(fnad.explain(np.sort)(np.ones(100)))


def test_source_calls_functions_by_name():
    source = fnad.explain(lambda x: np.tanh(x) + np.tanh(2 * x) + np.exp(x))(np.ones(3)).source
    assert source.count("def tanh_f64") == source.count("def exp_f64") == 1
    assert source.count("= tanh_f64(") == 2


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x, w: np.sum(np.where(x @ w > 0, np.exp(-(x @ w)), 1.0), axis=0), (X, PARAMS["w"])),
        (fnad.grad(rnn), (RNG.normal(size=(4, 4)), RNG.normal(size=(5, 4)))),
        (lambda x, i: np.take(x.astype(np.float32), i) / 0.3 + CLOSED.astype(np.float32), (X[0], np.array([2, -1, 0]))),
    ],
)
def test_saved_module_runs_under_numba_without_fnad(f, args, tmp_path):
    path, want = tmp_path / "saved.py", tmp_path / "want.npz"
    leaves = [np.asarray(x) for x in fnad.tree.leaves(args)]
    fnad.explain(f)(*args).save(path)
    np.savez(want, *leaves, *map(np.asarray, fnad.tree.leaves(fnad.jit(f)(*args))))
    code = (
        "import importlib.util, sys, numpy as np\n"
        "spec = importlib.util.spec_from_file_location('saved', sys.argv[1])\n"
        "saved = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(saved)\n"
        "arrays = list(np.load(sys.argv[2]).values())\n"
        "n = int(sys.argv[3])\n"
        "for got, want in zip(saved.run(*arrays[:n]), arrays[n:], strict=True):\n"
        "    assert got.dtype == want.dtype and got.shape == want.shape\n"
        "    np.testing.assert_allclose(got, want, rtol=1e-6 if got.dtype == np.float32 else 1e-12)\n"
        "assert 'fnad' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, path, want, str(len(leaves))], check=True)


def test_saved_module_names_an_argument_of_another_shape(tmp_path):
    path = tmp_path / "saved.py"
    fnad.explain(lambda x: x * 2)(np.ones(3)).save(path)
    spec = importlib.util.spec_from_file_location("saved", path)
    saved = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(saved)
    with pytest.raises(ValueError, match=r"leaf 0 must have the shape \(3,\), not \(4,\)"):
        saved.run(np.ones(4))


@fnad.custom_vjp
def tripled(x):
    return x * x


tripled.defvjp(lambda x: (x * x, None), lambda residuals, g: (3 * g,))


@pytest.mark.parametrize(
    "f",
    [
        fnad.grad(lambda x: np.sum(fnad.checkpoint(lambda x: np.tanh(np.exp(x)))(x))),
        lambda x: tripled(x),
        fnad.grad(lambda x: np.sum(tripled(x))),
        lambda x: fnad.scan(lambda c, _: (F.layer_norm(c, (5,)) * 2, np.max(c)), x, None, length=3),
        fnad.grad(lambda x: np.sum(fnad.scan(lambda c, _: (fnad.checkpoint(np.sin)(tripled(c)), None), x, None, length=3)[0])),
    ],
)
def test_functions_as_primitives_are_compiled(f):
    x = np.linspace(0.1, 0.5, 5)
    stages = fnad.explain(f)(x)
    assert not stages.hosts
    for got, want in zip(fnad.tree.leaves(fnad.jit(f)(x)), fnad.tree.leaves(f(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_custom_rules_hold_inside_of_a_compiled_function():
    np.testing.assert_array_equal(fnad.grad(fnad.jit(lambda x: np.sum(tripled(x))))(np.ones(3)), [3, 3, 3])


def test_what_runs_on_the_host_cannot_be_saved(tmp_path):
    with pytest.raises(UnsupportedError, match=r"on the host, .*test_explain.py.*: argsort"):
        fnad.explain(lambda x: np.sort(x) * 2)(np.ones(100)).save(tmp_path / "saved.py")


# -- profile -------------------------------------------------------------------------------------------------------------


def test_profile_has_a_row_per_group():
    step = fnad.value_and_grad(mlp)
    measured = fnad.profile(fnad.jit(step))(PARAMS, X, Y)
    planned = fnad.explain(step)(PARAMS, X, Y).groups
    assert [r[:4] for r in measured.rows] == [(g.name, g.kind, g.what, g.line) for g in planned]
    for r, g in zip(measured.rows, planned, strict=True):
        assert (r.bytes, r.flops) == (g.bytes, g.flops)
        assert r.time > 0
        assert r.bytes_per_second == pytest.approx(r.bytes / r.time)
        assert r.flops_per_second == pytest.approx(r.flops / r.time)
    assert sum(r.share for r in measured.rows) == pytest.approx(1)
    assert measured.time > 0
    assert measured.runs >= 5


def test_profile_marks_the_host_and_knows_scans():
    kinds = {r.kind: r for r in fnad.profile(lambda w, xs: np.sort(xs, axis=0) * rnn(w, xs))(np.eye(4), RNG.normal(size=(40, 4))).rows}
    assert kinds["host"].what == "argsort"
    assert kinds["host"].host
    assert not kinds["scan"].host
    assert "tanh" in kinds["scan"].what


def test_groups_apart_compute_what_the_whole_does():
    from fnad.compiler.pipeline import Executable, simplify

    for f, args in (
        (fnad.value_and_grad(mlp), (PARAMS, X, Y)),
        (fnad.grad(rnn), (np.eye(4), X[:, :4])),
        (lambda x: np.sort(x) / np.sum(x), (X,)),
    ):
        graph = simplify(fnad.make_graph(f)(*args))
        for a, b in zip(*(Executable(graph, apart=apart).convert(fnad.tree.leaves(args)) for apart in (False, True)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_table_and_chart(tmp_path, monkeypatch):
    measured = fnad.profile(lambda x: np.sum(np.tanh(x)))(np.ones(1000))
    lines = str(measured).splitlines()
    assert lines[0].split() == ["kind", "time", "share", "bytes/s", "flop/s", "line", "what"]
    assert len(lines) == len(measured.rows) + 2
    assert "the whole program at once" in lines[-1]
    real = builtins.__import__
    monkeypatch.setattr(
        builtins, "__import__", lambda name, *rest: real(name if not name.startswith("matplotlib") else "no_such_module", *rest)
    )
    with pytest.raises(UnsupportedError, match="pip install matplotlib"):
        measured.plot()
    monkeypatch.undo()
    pytest.importorskip("matplotlib")
    measured.plot(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1000
