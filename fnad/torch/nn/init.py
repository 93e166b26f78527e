"""`torch.nn.init`: the initialisers of `fnad.nn.init`, in place, with keys from `torch.manual_seed`'s generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnad.nn import init as pure
from fnad.nn.init import calculate_gain as calculate_gain
from fnad.torch._mode import no_grad
from fnad.torch._random import draw_key


def _in_place(name: str, keyed: bool = True) -> Callable[..., Any]:
    function = getattr(pure, name)

    def initialise(tensor: Any, *args: Any, generator: Any = None, **kwargs: Any) -> Any:
        data = tensor._data
        key = (draw_key(generator),) if keyed else ()
        with no_grad():
            return tensor.copy_(function(*key, data.shape, *args, dtype=data.dtype, **kwargs))

    initialise.__name__ = f"{name}_"
    initialise.__doc__ = f"`fnad.nn.init.{name}`, in place. Reference: `torch.nn.init.{name}_`."
    return initialise


uniform_, normal_, trunc_normal_ = _in_place("uniform"), _in_place("normal"), _in_place("trunc_normal")
constant_, ones_, zeros_ = (_in_place(name, keyed=False) for name in ("constant", "ones", "zeros"))
eye_, dirac_ = _in_place("eye", keyed=False), _in_place("dirac", keyed=False)
xavier_uniform_, xavier_normal_ = _in_place("xavier_uniform"), _in_place("xavier_normal")
kaiming_uniform_, kaiming_normal_ = _in_place("kaiming_uniform"), _in_place("kaiming_normal")
orthogonal_, sparse_ = _in_place("orthogonal"), _in_place("sparse")
