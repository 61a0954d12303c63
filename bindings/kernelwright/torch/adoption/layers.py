"""Layers with a weight matrix: what they compute by our operators, and which are left as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch.adoption.classes import inherited, is_adopted
from kernelwright.torch.operators.convolution import conv1d, conv2d, conv3d
from kernelwright.torch.operators.gemm import gemm, linear
from torch import nn  # pants: no-infer-dep
from torch.nn import functional  # pants: no-infer-dep

_CONVOLUTIONS = {nn.Conv1d: conv1d, nn.Conv2d: conv2d, nn.Conv3d: conv3d}
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def linear_forward(layer: Any, _: type, input: torch.Tensor) -> torch.Tensor:
    """The ``forward`` of ``nn.Linear``."""
    return linear(input, layer.weight, layer.bias)


def addmm_forward(layer: Any, _: type, x: torch.Tensor) -> torch.Tensor:
    """The ``forward`` of ``transformers.pytorch_utils.Conv1D``, a layer with weights (k, n)."""
    return gemm(x, layer.weight, ds=[layer.bias])


def convolution_forward(layer: Any, cls: type, input: torch.Tensor) -> torch.Tensor:
    """The ``forward`` of ``nn.Conv1d`` to ``nn.Conv3d``."""
    return convolve(layer, input, layer.weight, layer.bias)


def convolve(
    layer: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, **options: Any
) -> torch.Tensor:
    """Convolve by a layer with these weights; options are ``residual`` and ``activation``."""
    padding = layer.padding
    if layer.padding_mode != "zeros":
        x = functional.pad(x, layer._reversed_padding_repeated_twice, mode=layer.padding_mode)
        padding = 0
    operator: Any = conv2d if weight.dim() == 4 else conv1d if weight.dim() == 3 else conv3d
    result: torch.Tensor = operator(x, weight, bias, layer.stride, padding, layer.dilation, layer.groups, **options)
    return result if keeps_channels_last(x, weight) else result.contiguous()


def keeps_channels_last(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether torch's own convolution returns channels innermost: models may view its result in another shape."""
    wanted = _FORMATS.get(weight.dim())
    return wanted is not None and any(
        one.dim() == weight.dim() and one.is_contiguous(memory_format=wanted) and not one.is_contiguous()
        for one in (x, weight)
    )


def forward_of(layer: nn.Module) -> Callable[..., Any] | None:
    """The forward of a layer by our operators; None for layers we do not handle, adopted or not."""
    cls = inherited(layer)
    if isinstance(layer, nn.Linear):
        return linear_forward
    if any(isinstance(layer, one) for one in _CONVOLUTIONS):
        return convolution_forward
    if f"{cls.__module__}.{cls.__qualname__}" == "transformers.pytorch_utils.Conv1D":
        return addmm_forward
    return None


def why_left(layer: nn.Module) -> str | None:
    """Why a layer of :func:`forward_of` is left as it is; None if it is not."""
    if isinstance(layer, torch.jit.ScriptModule):
        return "it is compiled by torch.jit; adopt the model before"
    if "forward" in vars(layer):
        return "its object has a forward of its own"
    if is_adopted(layer):
        return None
    cls: Any = inherited(layer)
    known: list[Any] = [cls] if forward_of(layer) is addmm_forward else [nn.Linear, *_CONVOLUTIONS]
    if all(cls.forward is not one.forward for one in known):
        return f"{cls.__module__}.{cls.__qualname__} has a forward of its own"
    if isinstance(layer, tuple(_CONVOLUTIONS)) and cls._conv_forward not in [
        one._conv_forward for one in _CONVOLUTIONS
    ]:
        return f"{cls.__module__}.{cls.__qualname__} has a _conv_forward of its own"
    return _why_weights(layer.weight)


def _why_weights(weight: Any) -> str | None:
    if isinstance(weight, nn.parameter.UninitializedTensorMixin):
        return "its weights have no shape yet; call the model once before"
    if type(weight) not in (torch.Tensor, nn.Parameter):
        return f"its weights are a {type(weight).__name__}; adopt the model before it is distributed or quantised"
    if weight.layout is not torch.strided:
        return f"its weights are of layout {weight.layout}"
    if weight.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return f"its weights are {weight.dtype}, which no kernel computes"
    return None


def convert_weights(layer: Any) -> tuple[int, ...] | None:
    """Reorder a convolution's weights as kernels read them, channels innermost. Returns their previous strides.

    Returns None if there was nothing to do, or the memory is shared. The parameter stays the same object.
    """
    weight = layer._parameters.get("weight")  # neither parametrized nor shared by a view
    if weight is None or weight.dim() not in _FORMATS or not isinstance(layer, tuple(_CONVOLUTIONS)):
        return None
    if weight.is_contiguous(memory_format=_FORMATS[weight.dim()]) or not weight.is_contiguous():
        return None
    if weight.is_meta or weight.untyped_storage().nbytes() != weight.numel() * weight.element_size():
        return None
    before = weight.stride()
    weight.data = weight.data.contiguous(memory_format=_FORMATS[weight.dim()])
    return tuple(before)


def restore_weights(layer: Any, strides: tuple[int, ...]) -> None:
    """Undo :func:`convert_weights`."""
    weight = layer._parameters.get("weight")
    if weight is not None and weight.stride() != strides:
        restored = torch.empty_strided(weight.shape, strides, dtype=weight.dtype, device=weight.device)
        weight.data = restored.copy_(weight.data)
