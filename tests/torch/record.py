"""Record what PyTorch answers: `python -m tests.torch.record` where torch is installed."""

import json
import pathlib

from . import function_cases, layer_cases
from .more_programs import program as _  # noqa: F401  registers its programs
from .nn_programs import PROGRAMS
from .programs import plain

if __name__ == "__main__":
    import torch
    import torch.utils.data

    def rounded_text(x):
        return json.loads(json.dumps(x), parse_float=lambda s: float(f"{float(s):.14g}"))

    here = pathlib.Path(__file__)
    layers = {call: layer_cases.answers(torch, call, inputs) for call, inputs in layer_cases.each()}
    text = json.dumps({"version": torch.__version__, "cases": rounded_text(layers)}, separators=(",", ":"))
    here.with_name("layers.json").write_text(text.replace('],"', '],\n"') + "\n")
    functions = {name: function_cases.answers(torch, name) for name in function_cases.CASES}
    text = json.dumps({"version": torch.__version__, "cases": rounded_text(functions)}, separators=(",", ":"))
    here.with_name("functions.json").write_text(text.replace(']],"', ']],\n"') + "\n")
    rounded = rounded_text({name: plain(f(torch)) for name, f in PROGRAMS.items()})
    here.with_name("recorded.json").write_text(
        json.dumps({"version": torch.__version__, "programs": rounded}, separators=(",", ":")) + "\n"
    )
