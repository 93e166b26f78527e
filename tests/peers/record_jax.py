"""Record what JAX computes, for the parity tests: `python tests/peers/record_jax.py` in an environment with JAX.

The file holds values, gradients and Hessian-vector products in the direction of ones, so that the tests need no JAX.
"""

import contextlib
import importlib.util
import json
import pathlib

import jax
import jax.numpy as jnp
import jax.scipy.linalg

TESTS = pathlib.Path(__file__).resolve().parent.parent


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    spec = importlib.util.spec_from_file_location("jax_programs", TESTS / "numpy" / "jax_programs.py")
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    arguments = {name: jnp.array(getattr(shared, name)) for name in ("SIGNAL", "MATRIX")}
    arguments["SPECTRUM"] = jnp.array(shared.SPECTRUM) @ jnp.array([1.0, 1.0j])
    found = {}
    for name, (argument, f) in shared.programs(jnp, jax.scipy.linalg, jax.lax.cummax).items():
        x = arguments[argument]
        value, gradient = jax.value_and_grad(f)(x)
        entry = {"value": float(value), "gradient": [jnp.real(gradient).tolist(), jnp.imag(gradient).tolist()]}
        if argument != "SPECTRUM":
            with contextlib.suppress(NotImplementedError):  # JAX has some of the decompositions to first order only
                entry["hvp"] = jax.jvp(jax.grad(f), (x,), (jnp.ones_like(x),))[1].tolist()
        found[name] = entry
    path = TESTS / "numpy" / "functions_jax.json"
    path.write_text(json.dumps({"jax": jax.__version__, "programs": found}, indent=1) + "\n")
    print(path)


if __name__ == "__main__":
    main()
