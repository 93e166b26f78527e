"""Attention as a module."""

from __future__ import annotations

from typing import Any

from fnad.torch import _creation as creation
from fnad.torch.nn import functional as F
from fnad.torch.nn import init
from fnad.torch.nn.layers import Linear
from fnad.torch.nn.module import Module
from fnad.torch.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` under the name that PyTorch prints for the last map of an attention."""


class MultiheadAttention(Module):
    """Attention with several heads. Reference: `torch.nn.MultiheadAttention`.

    Args:
        embed_dim: Size of queries and answers.
        num_heads: In how many heads they are divided.
        dropout: How much of the weights is dropped in training.
        bias: Whether there are biases.
        add_bias_kv: Whether there is one more key and value for every example, which are trained.
        add_zero_attn: Whether there is one more key and value of zeros.
        kdim: Size of keys; `embed_dim` if None.
        vdim: Size of values; `embed_dim` if None.
        batch_first: Whether the first axis is that of the examples.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim, self.dropout = embed_dim, num_heads, embed_dim // num_heads, dropout
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        apart = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        for name, size in ({"in_proj_weight": None} if self._qkv_same_embed_dim else apart).items():
            rows, columns = (3 * embed_dim, embed_dim) if size is None else (embed_dim, size)
            self.register_parameter(name, Parameter(creation.empty(rows, columns, dtype=dtype)))
        for name in apart if self._qkv_same_embed_dim else ("in_proj_weight",):
            self.register_parameter(name, None)
        self.register_parameter("in_proj_bias", Parameter(creation.empty(3 * embed_dim, dtype=dtype)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(creation.empty(1, 1, embed_dim, dtype=dtype)) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for w in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if w is not None:
                init.xavier_uniform_(w)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for b in (self.bias_k, self.bias_v):
            if b is not None:
                init.xavier_normal_(b)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The answers, and the weights or None."""
        turn = self.batch_first and query._data.ndim == 3
        q, k, v = (x.transpose(0, 1) if turn else x for x in (query, key, value))
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        out, weights = F.multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, average_attn_weights, is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if turn else out), weights
