"""GradBench's protocol: one JSON request per line, one JSON answer per line.

A problem is a module of this folder: `prepare(input)` gives the arguments of its functions, `FUNCTIONS` names them, and
`answer(name, result, args)`, where there is one, gives what the answer holds of a result.
"""

from __future__ import annotations

import importlib
import json
import time
import traceback
from types import ModuleType
from typing import Any, TextIO

import numpy as np

PROBLEMS = ("hello", "det", "gmm", "ba", "ht", "kmeans", "llsq", "lse", "lstm", "ode", "particle", "saddle")


def problem(name: str) -> ModuleType:
    """The module of a problem."""
    if name not in PROBLEMS:
        raise ValueError(f"no problem {name!r}; there are {', '.join(PROBLEMS)}")
    return importlib.import_module(f"{__package__}.{name}")


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


_COMPILED: set[tuple[str, str]] = set()


def evaluate(module: str, function: str, input: Any, runs: int = 1, seconds: float = 0.0) -> tuple[Any, list[tuple[str, int]]]:
    """A function's answer, and the nanoseconds of its calls: at least so many, and so long, after a first one that compiles."""
    source = problem(module)
    args = source.prepare(input)
    call = source.FUNCTIONS[function]
    times: list[tuple[str, int]] = []

    def timed(name: str) -> Any:
        start = time.perf_counter_ns()
        result = call(*args)
        times.append((name, time.perf_counter_ns() - start))
        return result

    if (module, function) not in _COMPILED:
        timed("compile")
        _COMPILED.add((module, function))
    count, total = 0, 0
    while count < runs or total < seconds * 1e9:
        result = timed("evaluate")
        count, total = count + 1, total + times[-1][1]
    if hasattr(source, "answer"):
        result = source.answer(function, result, args)
    return plain(result), times


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request, without its id."""
    match request["kind"]:
        case "start":
            return {"tool": "fnad"}
        case "define":
            problem(request["module"])
            return {"success": True}
        case "evaluate":
            input = request["input"]
            often = (input.get("min_runs", 1), input.get("min_seconds", 0.0)) if isinstance(input, dict) else ()
            output, times = evaluate(request["module"], request["function"], input, *often)
            return {"success": True, "output": output, "timings": [{"name": name, "nanoseconds": t} for name, t in times]}
    return {}


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer requests until there are no more. What goes wrong is an answer too."""
    for line in requests:
        request = json.loads(line)
        try:
            answer = respond(request)
        except Exception:
            answer = {"success": False, "error": traceback.format_exc()}
        print(json.dumps({"id": request["id"], **answer}), file=answers, flush=True)
