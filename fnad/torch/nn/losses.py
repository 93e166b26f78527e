"""Losses as modules."""

from __future__ import annotations

from typing import Any

from fnad.torch.nn import functional as F
from fnad.torch.nn.module import Module


class _Loss(Module):
    """A loss of `torch.nn.functional` by its name, with the options that its class declares; `reduction` comes last."""

    _function = ""
    _options: dict[str, Any] = {}  # noqa: RUF012
    _buffers_of: tuple[str, ...] = ("weight", "pos_weight")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        options = {**self._options, **({} if "reduction" in self._options else {"reduction": "mean"})}
        for legacy in ("size_average", "reduce"):
            if kwargs.pop(legacy, None) is not None:
                raise TypeError(f"{legacy} is deprecated in PyTorch and does not exist here: use reduction='mean', 'sum' or 'none'")
        unknown = set(kwargs) - set(options)
        if len(args) > len(options) or unknown:
            raise TypeError(f"{type(self).__name__} takes {', '.join(options)}; got {args}, {kwargs}")
        self._names = list(options)
        for name, value in {**options, **dict(zip(options, args, strict=False)), **kwargs}.items():
            self.register_buffer(name, value) if name in self._buffers_of else setattr(self, name, value)

    def forward(self, input: Any, target: Any, *others: Any) -> Any:
        return getattr(F, self._function)(input, target, *others, **{name: getattr(self, name) for name in self._names})


def _module(name: str, function: str, **options: Any) -> Any:
    doc = f"`torch.nn.functional.{function}` as a module."
    return type(name, (_Loss,), {"_function": function, "_options": options, "__doc__": doc, "__module__": __name__})


class MSELoss(Module):
    """The mean (or sum, or each) of squared differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


CrossEntropyLoss = _module("CrossEntropyLoss", "cross_entropy", weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0)
NLLLoss = _module("NLLLoss", "nll_loss", weight=None, ignore_index=-100)
L1Loss = _module("L1Loss", "l1_loss")
SmoothL1Loss = _module("SmoothL1Loss", "smooth_l1_loss", reduction="mean", beta=1.0)
HuberLoss = _module("HuberLoss", "huber_loss", reduction="mean", delta=1.0)
BCELoss = _module("BCELoss", "binary_cross_entropy", weight=None)
BCEWithLogitsLoss = _module("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", weight=None, reduction="mean", pos_weight=None)
KLDivLoss = _module("KLDivLoss", "kl_div", reduction="mean", log_target=False)
HingeEmbeddingLoss = _module("HingeEmbeddingLoss", "hinge_embedding_loss", margin=1.0)
MarginRankingLoss = _module("MarginRankingLoss", "margin_ranking_loss", margin=0.0)
CosineEmbeddingLoss = _module("CosineEmbeddingLoss", "cosine_embedding_loss", margin=0.0)
TripletMarginLoss = _module("TripletMarginLoss", "triplet_margin_loss", margin=1.0, p=2.0, eps=1e-6, swap=False)
PoissonNLLLoss = _module("PoissonNLLLoss", "poisson_nll_loss", log_input=True, full=False, eps=1e-8)
GaussianNLLLoss = _module("GaussianNLLLoss", "gaussian_nll_loss", full=False, eps=1e-6)
SoftMarginLoss = _module("SoftMarginLoss", "soft_margin_loss")
MultiLabelMarginLoss = _module("MultiLabelMarginLoss", "multilabel_margin_loss")
MultiLabelSoftMarginLoss = _module("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", weight=None)
MultiMarginLoss = _module("MultiMarginLoss", "multi_margin_loss", p=1, margin=1.0, weight=None)
TripletMarginWithDistanceLoss = _module(
    "TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss", distance_function=None, margin=1.0, swap=False
)
CTCLoss = _module("CTCLoss", "ctc_loss", blank=0, reduction="mean", zero_infinity=False)
