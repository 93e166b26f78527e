"""Makes the page of public functions from their docstrings, when the site is built (a hook of MkDocs).

`python docs/generate_api.py` prints the page.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import fnad

MODULES = (
    "fnad.tree",
    "fnad.debug",
    "fnad.optim",
    "fnad.optim.schedules",
    "fnad.random",
    "fnad.nn.functional",
    "fnad.nn.init",
    "fnad.nn.layers",
    "fnad.scipy.linalg",
    "fnad.scipy.special",
    "fnad.testing",
    "fnad.testing.strategies",
)

HEAD = """# Public functions

Made from the docstrings. Everything not listed here is internal and may change without notice.
"""

_SECTION = re.compile(r"^(Args|Returns|Raises|Example|Examples|Reference|References):[ ]?(.*)$")
_ENTRY = re.compile(r"^(\*{0,2}\w[\w, ]*):[ ]+(.*)$")


def page() -> str:
    """The text of the page."""
    parts = [HEAD, "## fnad { #fnad }\n"]
    parts += [entry("fnad", n, getattr(fnad, n)) for n in public_names(fnad)]
    for path in MODULES:
        try:
            module = importlib.import_module(path)
        except ImportError as error:  # hypothesis is no dependency of the site
            parts.append(f"## {path} {{ #{path} }}\n\nNot listed, because `{error.name}` was not installed when this site was built.\n")
            continue
        parts.append(f"## {path} {{ #{path} }}\n\n{body(module.__doc__ or '')}")
        parts += [entry(path, name, getattr(module, name)) for name in public_names(module)]
    parts.append("## fnad.errors { #fnad.errors }\n")
    parts.append("See [Errors and their remedies](errors.md).\n")
    parts += [f"- [`fnad.errors.{c.__name__}`](errors.md#{c.__name__.lower()}): {summary(c)}" for c in error_classes()]
    parts.append("\n## fnad.numpy { #fnad.numpy }\n")
    parts.append("What NumPy functions mean for traced values; see [Supported functions](supported.md). There is nothing to call here.\n")
    parts.append("## fnad.torch { #fnad.torch }\n")
    parts.append("PyTorch's interface under PyTorch's names; see [Coming from PyTorch](torch.md).\n")
    parts.append("## fnad.typing { #fnad.typing }\n")
    parts.append("Type aliases for annotations: " + ", ".join(f"`{n}`" for n in public_names(fnad.typing)) + ".\n")
    return "\n".join(parts)


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: callables of fnad that it defines or re-exports from its own room; of `fnad.typing` its aliases."""
    names = [n for n in dir(module) if not n.startswith("_")]
    if module is fnad.typing:
        return [n for n in names if n not in ("Any", "Callable", "TypeAlias", "annotations")]
    found = {n: getattr(module, n) for n in names}
    return [n for n, thing in found.items() if callable(thing) and str(getattr(thing, "__module__", "")).startswith(module.__name__)]


def error_classes() -> list[type]:
    return [c for c in vars(fnad.errors).values() if inspect.isclass(c) and issubclass(c, fnad.errors.FnadError | Warning)]


def summary(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def entry(path: str, name: str, thing: Any) -> str:
    """Heading, signature and docstring of one name; the methods too if it is a class."""
    full = f"{path}.{name}"
    lines = [f"### {full} {{ #{full} }}", "", "```text", f"{name}{signature(thing)}", "```", "", body(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        for method, function in vars(thing).items():
            if not method.startswith("_") and inspect.isfunction(function) and function.__doc__:
                lines.append(f"**`{method}{signature(function)}`**: {body(inspect.getdoc(function) or '')}")
    return "\n".join(lines)


def signature(thing: Callable[..., Any]) -> str:
    """The parameters with their defaults, without annotations."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=inspect.Parameter.empty) for n, p in found.parameters.items() if n not in ("self", "draw")]
    return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def body(doc: str) -> str:
    """A docstring as Markdown."""
    out: list[str] = []
    for title, lines in sections(inspect.cleandoc(doc)):
        if title:
            out.append(f"**{title}**\n")
        text = textwrap.dedent("\n".join(lines)).strip("\n")
        if title in ("Args", "Raises"):
            out += [f"- `{name}`: {described}" for name, described in entries(text)] + [""]
        else:
            out.append(code_blocks(text) + "\n")
    return "\n".join(out)


def sections(doc: str) -> Iterator[tuple[str, list[str]]]:
    """(title, lines) of a docstring; the first part has no title. A part ends where a line is not indented any more."""
    title = ""
    lines: list[str] = []
    for line in doc.splitlines():
        match = _SECTION.match(line)
        if match or (title and line and not line[0].isspace()):
            yield title, lines
            title, lines = (match[1], [match[2]] if match[2] else []) if match else ("", [line])
        else:
            lines.append(line)
    yield title, lines


def entries(text: str) -> Iterator[tuple[str, str]]:
    """The `name: description` entries of a part."""
    name, described = "", ""
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match:
            if name:
                yield name, described
            name, described = match[1], match[2]
        elif line.strip():
            described += f" {line.strip()}"
    if name:
        yield name, described
    elif described.strip():
        yield "note", described.strip()


def code_blocks(text: str) -> str:
    """Doctests become Python blocks."""
    out: list[str] = []
    inside = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(">>>") and not inside:
            out += ["", "```python"] if out else ["```python"]
            inside = True
        elif inside and not stripped:
            out.append("```")
            inside = False
        out.append(line)
    if inside:
        out.append("```")
    return "\n".join(out)


def on_files(files: Any, config: Any) -> Any:
    """MkDocs calls this before it reads the pages."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "api.md", content=page()))
    return files


if __name__ == "__main__":
    print(page())
