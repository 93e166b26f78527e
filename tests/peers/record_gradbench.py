"""Record what another GradBench tool answers: `python -m tests.peers.record_gradbench COMMAND ...`, the command that starts it.

The file holds the answers to the small inputs, so that the parity tests need no other tool.
"""

import json
import pathlib
import subprocess
import sys

from tests.benchmarks.gradbench_inputs import inputs

PATH = pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "gradbench_answers.json"


def main() -> None:
    calls = [(case, problem, function, input) for case, (problem, functions, input) in inputs().items() for function in functions]
    requests = [{"kind": "start", "eval": "all"}]
    requests += [{"kind": "evaluate", "module": problem, "function": function, "input": input} for _, problem, function, input in calls]
    for request in requests:
        if isinstance(request.get("input"), dict):
            request["input"] |= {"min_runs": 1, "min_seconds": 0.0}
    lines = "".join(json.dumps({"id": k, **request}) + "\n" for k, request in enumerate(requests))
    answers = [json.loads(line) for line in subprocess.run(sys.argv[1:], input=lines, text=True, stdout=-1, check=True).stdout.splitlines()]
    found: dict[str, dict[str, object]] = {}
    for (case, _, function, _), answer in zip(calls, answers[1:], strict=True):
        if not answer["success"]:
            raise SystemExit(f"{case}: {answer['error']}")
        found.setdefault(case, {})[function] = answer["output"]
    PATH.write_text(json.dumps({"tool": answers[0]["tool"], "answers": found}) + "\n")
    print(PATH)


if __name__ == "__main__":
    main()
