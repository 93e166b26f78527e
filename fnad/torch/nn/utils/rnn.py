"""Sequences of different lengths: padded to one length, or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.torch._creation import as_tensor, full
from fnad.torch._shapes import stack
from fnad.torch._tensor import Tensor, make


class PackedSequence(NamedTuple):
    """Sequences without padding: first what all have at time 0, then at time 1, and so on; longer sequences first."""

    data: Any
    batch_sizes: Any
    """How many sequences there are at each time."""
    sorted_indices: Any = None
    """The numbers of the sequences in the order of falling length; None if they are in it."""
    unsorted_indices: Any = None

    @property
    def is_cuda(self) -> bool:
        return False

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self._replace(data=self.data.to(*args, **kwargs))


def _where(batch_sizes: Any) -> tuple[Any, Any]:
    """Time and number of sequence of each entry of packed data."""
    sizes = batch_sizes._data
    time = np.repeat(np.arange(len(sizes)), sizes)
    return time, np.concatenate([np.arange(n) for n in sizes]) if len(sizes) else time


def pad_sorted(packed: PackedSequence, total: int | None = None, value: float = 0.0) -> tuple[Any, Any]:
    """Packed data as (t, n, ...), still in order of length, and the lengths as an array."""
    sizes = packed.batch_sizes._data
    time, number = _where(packed.batch_sizes)
    data = packed.data
    most = len(sizes) if total is None else total
    padded = full((most, int(sizes[0]), *data._data.shape[1:]), value, dtype=data.dtype)
    padded[make(time), make(number)] = data
    return padded, np.bincount(number, minlength=int(sizes[0])).astype(np.int64)


def pack_sorted(padded: Any, batch_sizes: Any) -> Any:
    """The data of (t, n, ...) that is not padding."""
    return padded[tuple(map(make, _where(batch_sizes)))]


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Padded sequences without their padding.

    Args:
        input: (t, n, ...), or (n, t, ...) if `batch_first`.
        lengths: How long each is.
        batch_first: Whether the first axis is that of the sequences.
        enforce_sorted: Whether it is an error if lengths rise; otherwise they are sorted.

    Raises:
        RuntimeError: lengths are not positive, larger than t, or not sorted.

    Reference: `torch.nn.utils.rnn.pack_padded_sequence` of PyTorch 2.13.
    """
    many = np.asarray(as_tensor(lengths)._data, np.int64)
    x = input.transpose(0, 1) if batch_first else input
    if many.shape != x._data.shape[1:2]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {many.size} (batch_size={x._data.shape[1]})")
    if (many <= 0).any():
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    order = None
    if not enforce_sorted:
        order = np.argsort(-many, kind="stable")
        many, x = many[order], x.index_select(1, make(order))
    elif (np.diff(many) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
            "pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."
        )
    if many[0] > x._data.shape[0]:
        raise RuntimeError(f"Expected lengths of at most {x._data.shape[0]}, the size of the padded sequences, but got {int(many[0])}")
    sizes = make(np.sum(many > np.arange(many[0])[:, None], axis=1).astype(np.int64))
    back = None if order is None else make(np.argsort(order))
    return PackedSequence(pack_sorted(x, sizes), sizes, None if order is None else make(order), back)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Packed sequences with padding, and their lengths. Reference: `torch.nn.utils.rnn.pad_packed_sequence`."""
    if total_length is not None and total_length < len(sequence.batch_sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sequence.batch_sizes)}"
        )
    padded, lengths = pad_sorted(sequence, total_length, padding_value)
    if sequence.unsorted_indices is not None:
        padded, lengths = padded.index_select(1, sequence.unsorted_indices), lengths[sequence.unsorted_indices._data]
    return (padded.transpose(0, 1) if batch_first else padded), make(lengths)


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Any:
    """Sequences (t, ...) of different lengths as one tensor. Reference: `torch.nn.utils.rnn.pad_sequence`."""
    parts: list[Any] = list(sequences)
    if not parts or not all(isinstance(x, Tensor) for x in parts):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, of at least one tensor")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    most = max(len(x) for x in parts)
    rows = []
    for x in parts:
        row = full((most, *x._data.shape[1:]), padding_value, dtype=x.dtype)
        row[: len(x)] = x
        rows.append(row if padding_side == "right" else row.roll(most - len(x), 0))
    return stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of `pad_sequence`. Reference: `torch.nn.utils.rnn.unpad_sequence`."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(rows, as_tensor(lengths).tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Any] | Iterable[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (t, ...) of different lengths, packed. Reference: `torch.nn.utils.rnn.pack_sequence`."""
    parts = list(sequences)
    return pack_padded_sequence(pad_sequence(parts), [len(x) for x in parts], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences of `pack_sequence`. Reference: `torch.nn.utils.rnn.unpack_sequence`."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
