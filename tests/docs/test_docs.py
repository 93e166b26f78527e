"""The documentation: its code runs and prints what it shows, its links lead somewhere, its tables are up to date."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import fnad

from .snippets import Page, blocks, run_doctest, table_rows

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p.name for p in DOCS.glob("*.md"))


def script(name: str) -> ModuleType:
    """A script of docs/, as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{Path(name).stem}", DOCS / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- code in pages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_page_runs(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    with Page(DOCS / name) as page:
        for block in blocks(text):
            page.run(block)
        for expression, result in table_rows(text):
            found = str(eval(expression, page.globals))
            assert found == result, f"{name}: {expression} gives {found}, the table says {result}"


def test_the_table_of_conventions_is_checked():
    assert len(list(table_rows((DOCS / "gradients.md").read_text(encoding="utf-8")))) > 20


def test_readme_runs():
    with Page(ROOT / "README.md") as page:
        for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")):
            page.run(block)


# -- the runner itself ----------------------------------------------------------------------------------------------------


def run(text):
    with Page(DOCS / "index.md") as page:
        for block in blocks(text):
            page.run(block)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\n1 / 0\n```\n",
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\n1 / 0\n```\n```text\nZeroDivisionError: something else\n```\n",
    ],
)
def test_runner_notices(text):
    with pytest.raises(AssertionError):
        run(text)


def test_runner_shares_one_namespace():
    run("```python\nx = 1\n```\n```python\n>>> x + 1\n2\n>>> y = 5\n```\n```python\nprint(x + y)\n```\n```text\n6\n```\n")


def test_runner_takes_back_what_a_page_registers():
    before = dict(fnad.core.dispatch.ROWS)
    run("```python\nimport numpy as np, fnad\n@fnad.implements(np.vander)\ndef f(x):\n    return x\n```\n")
    assert before.keys() == fnad.core.dispatch.ROWS.keys()


def test_runner_reads_tables():
    text = "| a | expression | gives |\n|---|---|---|\n| one | `1 + 1` | `2` |\n\n| x | y |\n|---|---|\n| `1` | `2` |\n"
    assert list(table_rows(text)) == [("1 + 1", "2")]


# -- docstrings -------------------------------------------------------------------------------------------------------------


MODULES = sorted(m.name for m in pkgutil.walk_packages(fnad.__path__, "fnad."))


def docstrings(module: ModuleType) -> list[doctest.DocTest]:
    """The doctests of a module, those of objects that are not functions or classes (decorated ones, instances) included."""
    found = {t.name: t for t in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__) if t.examples}
    parser = doctest.DocTestParser()
    for name, value in vars(module).items():
        own = getattr(value, "__dict__", {})
        doc = own.get("__doc__") if not inspect.ismodule(value) and not inspect.isclass(value) else None
        if isinstance(doc, str) and ">>>" in doc and f"{module.__name__}.{name}" not in found and own.get("__module__") == module.__name__:
            found[name] = parser.get_doctest(doc, dict(vars(module)), f"{module.__name__}.{name}", module.__file__, 0)
    return list(found.values())


@pytest.mark.parametrize("name", ["fnad", *MODULES])
def test_docstrings_run(name):
    if name == "fnad.testing.strategies":
        pytest.importorskip("hypothesis")
    module = importlib.import_module(name)
    for test in docstrings(module):
        with Page(Path(name)):
            run_doctest(test)


def public_functions():
    api = script("generate_api.py")
    for path in ("fnad", *api.MODULES):
        module = importlib.import_module(path)  # the tests have hypothesis
        for name in api.public_names(module):
            thing = getattr(module, name)
            if callable(thing) and not isinstance(thing, ModuleType):
                yield pytest.param(thing, id=f"{path}.{name}")


@pytest.mark.parametrize("thing", list(public_functions()))
def test_public_functions_are_documented(thing):
    doc = inspect.getdoc(thing)
    assert doc, "no docstring"
    assert doc != inspect.getdoc(type(thing)), "no docstring of its own"


@pytest.mark.parametrize("name", script("generate_api.py").public_names(fnad))
def test_docstrings_of_the_face_have_an_example(name):
    assert ">>>" in inspect.getdoc(getattr(fnad, name))


# -- completeness -----------------------------------------------------------------------------------------------------------


def test_every_public_name_is_on_the_api_page():
    text = script("generate_api.py").page()
    for name in dir(fnad):
        value = getattr(fnad, name)
        home = value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
        if not name.startswith("_") and home.startswith("fnad") and name not in INTERNAL:
            assert f"{{ #fnad.{name}" in text, name


INTERNAL = (
    "compiler",
    "control",
    "core",
    "kernels",
    "primitives",
    "transforms",
)  # rooms that are attributes because something imported them


def test_every_error_has_its_section():
    headings = re.findall(r"^## (\w+)$", (DOCS / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    classes = [c.__name__ for c in script("generate_api.py").error_classes()]
    assert sorted(headings) == sorted(classes)


def test_supported_functions_are_up_to_date():
    generator = script("generate_supported.py")
    page = generator.PAGE.read_text(encoding="utf-8")
    if f"with NumPy {generator.NUMPY}" not in page:
        pytest.skip(f"the page was written with another NumPy than {np.__version__}")
    assert generator.page() == page, "run: python docs/generate_supported.py"


# -- links, pictures, the built site ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_links(name):
    text = re.sub(r"^```.*?^```", "", (DOCS / name).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        if file == "api.md":
            assert not anchor or f"{{ #{anchor} }}" in script("generate_api.py").page(), target
            continue
        path = DOCS / (file or name)
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), target


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", t).strip().lower()) for t in titles}


def test_figures_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = script("figures/draw.py").draw(tmp_path)
    for path in drawn:
        assert path.stat().st_size > 5000
        assert (DOCS / "figures" / path.name).exists(), "run: python docs/figures/draw.py"


def test_every_figure_is_shown():
    shown = "".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
    for path in (DOCS / "figures").glob("*.png"):
        assert f"figures/{path.name}" in shown, path.name


def test_site_builds_without_warnings(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in PAGES:
        assert (tmp_path / "site" / name.replace(".md", ".html")).exists()
