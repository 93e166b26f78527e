"""Record what JAX and optax compute in the tables of docs/migrating.md: `python tests/peers/record_equivalents.py`."""

import importlib.util
import json
import pathlib

import jax
import numpy as np
import optax
import optax.contrib

jax.config.update("jax_enable_x64", True)
TESTS = pathlib.Path(__file__).resolve().parent.parent


def main() -> None:
    spec = importlib.util.spec_from_file_location("equivalents", TESTS / "docs" / "equivalents.py")
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    rows, names = shared.rows(), {"jax": jax, "optax": optax, "np": np}
    given = {k: jax.numpy.asarray(v) for k, v in shared.values().items()}
    found = {
        "optimizers": {x: shared.trained(eval(x, names), optax.apply_updates, jax.numpy.asarray) for x, _ in rows["optimizers"]},
        "schedules": {x: [float(eval(x, names)(t)) for t in shared.STEPS] for x, _ in rows["schedules"]},
        "functions": {x: np.asarray(eval(x, {**names, **given})).tolist() for x, _ in rows["functions"]},
    }
    lines = [f'"jax": "{jax.__version__}"', f'"optax": "{optax.__version__}"']
    for kind, entries in found.items():
        lines.append(f'"{kind}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entries.items()) + "\n}")
    shared.RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
