"""Record what PyTorch answers: `python -m tests.torch.record` where torch is installed."""

import json
import pathlib

from .nn_programs import PROGRAMS
from .programs import plain

if __name__ == "__main__":
    import torch
    import torch.utils.data

    rounded = json.loads(
        json.dumps({name: plain(f(torch)) for name, f in PROGRAMS.items()}), parse_float=lambda s: float(f"{float(s):.14g}")
    )
    pathlib.Path(__file__).with_name("recorded.json").write_text(
        json.dumps({"version": torch.__version__, "programs": rounded}, separators=(",", ":")) + "\n"
    )
