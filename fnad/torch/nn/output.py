"""Last layers and their losses in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from fnad.torch._shapes import cat
from fnad.torch.nn import functional as F
from fnad.torch.nn.containers import ModuleList, Sequential
from fnad.torch.nn.layers import Linear
from fnad.torch.nn.module import Module


class LinearCrossEntropyLoss(Module):
    """The cross entropy of a linear map, whose weights it holds. Reference: `torch.nn.LinearCrossEntropyLoss`.

    Args:
        in_features: Size of the last axis of the input.
        num_classes: How many classes.
        out_features: Sizes of further axes, for several losses per example.
        bias: Whether the map has one.
        device: The CPU.
        dtype: Of the parameters.
        reduction: See `CrossEntropyLoss`, as the following.
        weight: See `CrossEntropyLoss`.
        ignore_index: See `CrossEntropyLoss`.
        label_smoothing: See `CrossEntropyLoss`.
        options: Has no effect.
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: Any = None,
        dtype: Any = None, reduction: str = "mean", weight: Any = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.register_buffer("weight", weight)
        self.num_classes, self.out_features, self.reduction = num_classes, tuple(out_features), reduction
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Any:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(*shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class ASMoutput(NamedTuple):
    """What `AdaptiveLogSoftmaxWithLoss` returns."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes: frequent ones each by itself, rare ones in clusters with smaller maps.

    Args:
        in_features: Size of the last axis of the input.
        n_classes: How many classes, the most frequent ones first.
        cutoffs: Where clusters begin.
        div_value: How much smaller the map of each cluster is than that of the one before.
        head_bias: Whether the first map has one.
        device: The CPU.
        dtype: Of the parameters.

    Reference: Grave et al., Efficient softmax approximation for GPUs, 2017; `torch.nn.AdaptiveLogSoftmaxWithLoss`.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if ends != sorted(set(ends)) or ends[0] <= 0 or ends[-1] > n_classes - 1 or any(int(c) != c for c in ends):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 "
                "and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            last = Linear(hidden, self.cutoffs[i + 1] - self.cutoffs[i], bias=False, dtype=dtype)
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, dtype=dtype), last))

    def forward(self, input_: Any, target_: Any) -> ASMoutput:
        """The logarithms of the probabilities of the targets, and the loss."""
        if target_.dim() > 1 or input_.dim() != target_.dim() + 1:
            raise RuntimeError("0D or 1D target tensor expected, with an input of one more axis")
        x, target = (input_, target_) if target_.dim() else (input_.unsqueeze(0), target_.unsqueeze(0))
        if len(x) != len(target):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, {target.max().item()}] "
                "were found. "
            )
        place, extra = target.clone(), x.new_zeros(len(x))
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            rows = ((target >= low) & (target < high)).nonzero().reshape(-1)
            if len(rows):
                place[rows] = self.shortlist_size + i
                inside = F.log_softmax(self.tail[i](x[rows]), 1)
                extra = extra.index_add(0, rows, inside.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1))
        output = F.log_softmax(self.head(x), 1).gather(1, place.unsqueeze(1)).squeeze(1) + extra
        return ASMoutput(output if target_.dim() else output.squeeze(0), -output.mean())

    def log_prob(self, input: Any) -> Any:
        """The logarithms of the probabilities of all classes, (n, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, module in enumerate(self.tail):
            parts.append(F.log_softmax(module(input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """The most probable class of each example."""
        return self.log_prob(input).argmax(1)
