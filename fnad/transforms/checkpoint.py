"""checkpoint: forget what happens inside, compute it again in the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnad import tree
from fnad.core.aval import aval_of
from fnad.core.graph import is_recording
from fnad.core.keep import unchanged
from fnad.core.primitive import Joint
from fnad.core.tracer import Tracer
from fnad.primitives.shape import again
from fnad.transforms._call import Transformed, flatten_results
from fnad.transforms._opaque import Opaque, batch_flat, split_static
from fnad.transforms.jvp import push_forward
from fnad.transforms.vjp import pull_back
from fnad.typing import Function


class Checkpoint(Opaque):
    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Joint]:
        with unchanged(args, self.function):
            outs = self(*args)
        return outs, Joint(lambda g: self._again(list(args), g))

    def _again(self, args: list[Any], g: Sequence[Any]) -> list[Any]:
        active = [aval_of(a).dtype.kind in "fc" for a in args]
        now = next((c for c in g if isinstance(c, Tracer)), None)
        if now is not None and is_recording():  # a program that repeats a computation must not find that it knows the results
            args = [again(a, now) if isinstance(a, Tracer) and a._trace is now._trace else a for a in args]
        with unchanged(args, self.function):
            return pull_back(self.flat, args, active, g, self.function)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return push_forward(self.flat, list(args), list(tangents), self.function)[1]

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        outs, dots = push_forward(self.flat, list(args), list(tangents), self.function)
        return tuple(outs), dots

    def over_batch(self, batched: Sequence[bool]) -> Opaque:
        return Checkpoint(self.name, batch_flat(self.flat, batched), self.function)


def _checkpointed(f: Function, options: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, rebuild = split_static((args, kwargs))
    out_spec: list[tree.Spec] = []

    def flat(*values: Any) -> list[Any]:
        call_args, call_kwargs = rebuild(values)
        outs, found = flatten_results(f(*call_args, **call_kwargs), "checkpoint")
        out_spec[:] = [found]
        return outs

    outs = Checkpoint("checkpoint", flat, f)(*leaves)
    return tree.unflatten(out_spec[0], outs)


def checkpoint(f: Function) -> Function:
    """A function that keeps only its arguments for the backward pass and computes the rest again there.

    Args:
        f: A function of pytrees of arrays; leaves that are not arrays are passed through. It must not close over
            values that are being differentiated: pass them as arguments.

    Returns:
        A function of the same arguments, with the same values and derivatives. Memory of the backward pass falls from all
        intermediate values to the arguments; the forward pass of `f` runs twice. (Griewank and Walther, Evaluating
        Derivatives, 2008, chapter 12; as `jax.checkpoint`.)

    Raises:
        ClosureError: `f` closes over a traced value.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.grad(fnad.checkpoint(lambda x: np.sin(np.sin(x))))(1.0)
        np.float64(0.36003948908962097)
    """
    return Transformed(_checkpointed, f, ())
