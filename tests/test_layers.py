"""The layout: imports go down from floor to floor, without cycles; each third-party library has one door; files stay short."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import fnad

ROOT = Path(fnad.__file__).parent
FLOORS = [
    {"_fork", "errors", "_config", "_version", "typing", "tree", "_blas", "_numba", "_llvm", "_malloc", "_template", "_threads", "_scipy"},
    {"kernels", "codegen"},
    {"core"},
    {"primitives"},
    {"numpy", "random", "compiler", "loops"},
    {"scipy"},  # spelled on numpy's helpers
    {"transforms"},
    {"control", "jit"},
    {"caching", "checkpoints", "debug", "explanation", "nn", "optim", "parallel", "profiling", "testing"},
    {"torch"},
    {"__init__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
DOORS = {
    "optree": {"tree.py"},
    "numba": {"_numba.py"},
    "llvmlite": {
        "_llvm.py",
        "kernels/codegen/counting.py",
        "kernels/codegen/emit.py",
        "kernels/codegen/emit_entry.py",
        "kernels/codegen/emit_blas.py",
        "kernels/codegen/emit_lapack.py",
        "kernels/codegen/emit_matrix.py",
        "kernels/codegen/emit_pause.py",
        "kernels/codegen/emit_parts.py",
        "kernels/codegen/emit_product.py",
        "kernels/codegen/llvm_expr.py",
    },  # the LLVM printer
    "scipy": {"_scipy.py"},
    "threadpoolctl": {"_blas.py"},
    "matplotlib": {"profiling.py"},
    "hypothesis": {"testing/strategies.py"},
}
ANYWHERE = {"numpy"}

FILES = sorted(ROOT.rglob("*.py"))
SOURCES = {path: path.read_text() for path in FILES}
TREES = {path: ast.parse(source) for path, source in SOURCES.items()}
NAMES = {path: str(path.relative_to(ROOT)) for path in FILES}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def room(module: str) -> str:
    """What stands behind `fnad.` in a module's name: a folder or a file; the face itself is `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path):
    """Every import of a file: (module, line, inside a function, for type checkers only)."""

    def walk(node, in_function, for_types):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, in_function, for_types
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{NAMES[path]}:{node.lineno}: write imports from the root"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module, node.lineno, in_function, for_types
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for_types = True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            in_function = True
        for child in ast.iter_child_nodes(node):
            yield from walk(child, in_function, for_types)

    yield from walk(TREES[path], False, False)


IMPORTS = {path: list(imports(path)) for path in FILES}
each_file = pytest.mark.parametrize("path", FILES, ids=NAMES.get)


def test_every_room_has_a_floor():
    rooms = {room(module) for module in MODULES}
    assert rooms <= set(FLOOR), f"give {rooms - set(FLOOR)} a floor"


@each_file
def test_imports_go_down(path):
    mine = room(module_of(path))
    for module, line, _, _ in IMPORTS[path]:
        if module != "fnad" and not module.startswith("fnad."):
            continue
        theirs = room(module)
        ground = FLOOR[mine] == FLOOR[theirs] == 0
        assert theirs == mine or ground or FLOOR[theirs] < FLOOR[mine], (
            f"{NAMES[path]}:{line} imports {module}: {theirs} (floor {FLOOR[theirs]}) is not below {mine} (floor {FLOOR[mine]})"
        )


def test_no_import_cycles():
    graph = {
        module_of(path): {m for m, _, _, for_types in IMPORTS[path] if m in MODULES and not for_types and m != module_of(path)}
        for path in FILES
    }
    graphlib.TopologicalSorter(graph).prepare()


@each_file
def test_third_party_libraries_have_one_door(path):
    for module, line, _, _ in IMPORTS[path]:
        top = module.split(".")[0]
        if top == "fnad" or top in sys.stdlib_module_names or top in ANYWHERE:
            continue
        assert top in DOORS, f"{NAMES[path]}:{line} imports {top}, which no file may"
        assert NAMES[path] in DOORS[top], f"{NAMES[path]}:{line} imports {top}; only {DOORS[top]} may"


@each_file
def test_imports_inside_functions_are_of_optional_libraries_only(path):
    for module, line, in_function, _ in IMPORTS[path]:
        if in_function:
            assert module.split(".")[0] in DOORS, f"{NAMES[path]}:{line} imports {module} inside a function"


@each_file
def test_files_are_short(path):
    assert SOURCES[path].count("\n") < 500, f"{NAMES[path]} has {SOURCES[path].count(chr(10))} lines: time to look at it again"


@each_file
def test_functions_are_short(path):
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = node.body[0] if ast.get_docstring(node) is not None else None
            lines = node.end_lineno - node.lineno + 1 - (doc.end_lineno - doc.lineno + 1 if doc else 0)
            assert lines < 60, f"{NAMES[path]}:{node.lineno} {node.name} has {lines} lines"


@each_file
def test_every_file_says_what_it_is_for(path):
    assert ast.get_docstring(TREES[path]), f"{NAMES[path]} has no docstring"


@each_file
def test_no_star_imports(path):
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names), f"{NAMES[path]}:{node.lineno}"


def test_rules_stand_with_their_primitives():
    """Nothing about a primitive is assigned from another file."""
    rules = {"infer", "impl", "vjp", "jvp", "batch", "lower"}
    for path in FILES:
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    assert not (isinstance(target, ast.Attribute) and target.attr in rules), f"{NAMES[path]}:{node.lineno}"


def test_import_loads_no_heavy_or_optional_library():
    """`import fnad` costs NumPy and optree; differentiating does not load more."""
    code = (
        "import sys, numpy as np, fnad\n"
        "fnad.grad(lambda x: np.sum(np.tanh(x @ x)))(np.ones((2, 2)))\n"
        "loaded = {m.split('.')[0] for m in sys.modules} & {'numba', 'llvmlite', 'scipy', 'hypothesis', 'matplotlib', 'sklearn'}\n"
        "assert not loaded, loaded\n"
        "assert not {'fnad.testing', 'fnad.nn', 'fnad.optim'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_testing_is_a_lazy_attribute_and_needs_no_hypothesis():
    code = "import sys, numpy as np, fnad\nfnad.testing.check_grads(np.tanh, (np.ones(2),))\nassert 'hypothesis' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code], check=True)
