"""The transformer: encoders and decoders of attention and feed-forward layers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from fnad.torch import _creation as creation
from fnad.torch._tensor import Tensor
from fnad.torch.nn import functional as F
from fnad.torch.nn import init
from fnad.torch.nn.attention import MultiheadAttention
from fnad.torch.nn.containers import ModuleList
from fnad.torch.nn.dropout import Dropout
from fnad.torch.nn.layers import Linear
from fnad.torch.nn.module import Module
from fnad.torch.nn.normalization import LayerNorm

Mask = Any
"""True where something is not seen, or numbers to add; or None."""


def _activation(given: Any) -> Callable[[Any], Any]:
    if isinstance(given, str):
        if given not in ("relu", "gelu"):
            raise RuntimeError(f"activation should be relu/gelu, not {given}")
        return F.relu if given == "relu" else F.gelu
    return given


def _is_causal(mask: Mask, given: bool | None) -> bool:
    return False if given is None or mask is None else given


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, and a feed-forward network. Reference: `torch.nn.TransformerEncoderLayer`.

    Args:
        d_model: Numbers per place.
        nhead: Heads of the attention.
        dim_feedforward: Size of the hidden layer.
        dropout: How much is dropped in training.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: See `LayerNorm`.
        batch_first: Whether the first axis is that of the examples.
        norm_first: Whether normalisation comes before each part, or after it.
        bias: Whether there are biases.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **options)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, src: Any, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False) -> Any:
        """The sequence after the layer."""
        options = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask, "need_weights": False, "is_causal": is_causal}

        def attend(x: Any) -> Any:
            return self.dropout1(self.self_attn(x, x, x, **options)[0])

        x = src
        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + self._feed(x))

    def _feed(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Attention of a sequence to itself and to an encoder's, and a feed-forward network. Reference: `torch.nn.TransformerDecoderLayer`.

    Args:
        d_model: Numbers per place.
        nhead: Heads of the attentions.
        dim_feedforward: Size of the hidden layer.
        dropout: How much is dropped in training.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: See `LayerNorm`.
        batch_first: Whether the first axis is that of the examples.
        norm_first: Whether normalisation comes before each part, or after it.
        bias: Whether there are biases.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model, layer_norm_eps, **options) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(3))
        self.activation = _activation(activation)

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Mask = None, memory_mask: Mask = None, tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The sequence after the layer."""

        def attend(x: Any) -> Any:
            out = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=_is_causal(tgt_mask, tgt_is_causal))
            return self.dropout1(out[0])

        def look(x: Any) -> Any:
            causal = _is_causal(memory_mask, memory_is_causal)
            return self.dropout2(self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=causal)[0])

        x = tgt
        if self.norm_first:
            x = x + attend(self.norm1(x))
            x = x + look(self.norm2(x))
            return x + self._feed(self.norm3(x))
        x = self.norm1(x + attend(x))
        x = self.norm2(x + look(x))
        return self.norm3(x + self._feed(x))

    def _feed(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other. Reference: `torch.nn.TransformerEncoder`.

    Args:
        encoder_layer: The layer; its copies begin with its weights.
        num_layers: How many.
        norm: A module that comes last, or None.
        enable_nested_tensor: Has no meaning here.
        mask_check: Has no meaning here.
    """

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Any = None, enable_nested_tensor: bool = True, mask_check: bool = True
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Any, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None) -> Any:
        """The sequence after all layers."""
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=_is_causal(mask, is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other. Reference: `torch.nn.TransformerDecoder`.

    Args:
        decoder_layer: The layer; its copies begin with its weights.
        num_layers: How many.
        norm: A module that comes last, or None.
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Mask = None, memory_mask: Mask = None, tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The sequence after all layers."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, _is_causal(tgt_mask, tgt_is_causal),
                memory_is_causal,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder, and a decoder that looks at what it gives. Reference: `torch.nn.Transformer`.

    Args:
        d_model: Numbers per place.
        nhead: Heads of the attentions.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        dim_feedforward: Size of the hidden layers.
        dropout: How much is dropped in training.
        activation: "relu", "gelu" or a function.
        custom_encoder: An encoder instead.
        custom_decoder: A decoder instead.
        layer_norm_eps: See `LayerNorm`.
        batch_first: Whether the first axis is that of the examples.
        norm_first: Whether normalisation comes before each part, or after it.
        bias: Whether there are biases.
        device: The CPU.
        dtype: Of the parameters.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: Any = "relu", custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(2)]
        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norms[0])
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norms[1])
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src: Any, tgt: Any, src_mask: Mask = None, tgt_mask: Mask = None, memory_mask: Mask = None,
        src_key_padding_mask: Mask = None, tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """What the decoder makes of the target sequence and of what the encoder makes of the source."""
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """(sz, sz): -inf where a place lies behind, 0 elsewhere."""
        return creation.full((sz, sz), float("-inf"), dtype=dtype).triu(1)
