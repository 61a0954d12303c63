"""Rules of attention for ``torch.vmap``: one launch of a larger batch, or one launch for each element.

Elements that share sinks and drop nothing become requests of one launch. Kernels know no sinks of a request, and a seed
drops other probabilities in another request: with those, and where lengths differ, each element has a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch.inputs import addressable

_ops = torch.ops.kernelwright


def forward(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention``."""
    q, k, v, bias, slopes, sinks, _, *options = arguments
    with_lse, dropout_p = options[6], options[5]
    if dims[5] is not None or dropout_p > 0:
        return _each(_ops.attention, info, dims, arguments, (True, with_lse))
    size, batch = info.batch_size, _extent(q, dims[0])
    q, k, v = (_requests(one, dim, size) for one, dim in zip((q, k, v), dims[:3], strict=True))
    bias, slopes = _bias(bias, dims[3], size, batch), _slopes(slopes, dims[4], size, batch)
    return _parted(_ops.attention(q, k, v, bias, slopes, sinks, None, *options), size, (True, with_lse))


def backward(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention_backward``."""
    *tensors, bias, slopes, _, mask, left, right, scale, soft_cap, dropout_p, with_dbias = arguments[:16]
    parted = (True, True, True, with_dbias)
    if dropout_p > 0:
        return _each(_ops.attention_backward, info, dims, arguments, parted)
    size, batch = info.batch_size, _extent(tensors[0], dims[0])
    *tensors, lse = (_requests(one, dim, size) for one, dim in zip(tensors, dims[:6], strict=True))
    bias, slopes = _bias(bias, dims[6], size, batch), _slopes(slopes, dims[7], size, batch)
    options = (mask, left, right, scale, soft_cap, dropout_p, with_dbias, *arguments[16:])
    return _parted(
        _ops.attention_backward(*tensors, lse.contiguous(), bias, slopes, None, *options), size, parted
    )  # fmt: skip


def varlen(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention_varlen``."""
    with_lse = arguments[17]
    return _each(_ops.attention_varlen, info, dims, arguments, (True, with_lse))


def varlen_backward(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention_varlen_backward``."""
    return _each(_ops.attention_varlen_backward, info, dims, arguments, (True, True, True))


def _each(
    operator: Callable[..., Any], info: Any, dims: Sequence[Any], arguments: Sequence[Any], parted: Sequence[bool]
) -> tuple[Any, Any]:
    """A launch for each element; results that are not ``parted`` hold nothing."""
    outputs = []
    for element in range(info.batch_size):
        own = [one if dim is None else one.select(dim, element) for one, dim in zip(arguments, dims, strict=True)]
        own = [addressable("operand", one) if _is_rows(one) else one for one in own]
        outputs.append(operator(*own))
    results = zip(zip(*outputs, strict=True), parted, strict=True)
    return tuple(torch.stack(parts) if whole else parts[0] for parts, whole in results), _places(parted)


def _is_rows(operand: Any) -> bool:
    return isinstance(operand, torch.Tensor) and operand.dim() > 2


def _parted(results: Sequence[torch.Tensor], size: int, parted: Sequence[bool]) -> tuple[Any, Any]:
    parts = (one.unflatten(0, (size, -1)) if whole else one for one, whole in zip(results, parted, strict=True))
    return tuple(parts), _places(parted)


def _places(parted: Sequence[bool]) -> tuple[int | None, ...]:
    return tuple(0 if whole else None for whole in parted)


def _extent(q: torch.Tensor, dim: int | None) -> int:
    """Requests of one element."""
    return int(q.shape[0] if dim is None else q.movedim(dim, 0).shape[1])


def _first(operand: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    return operand.expand(size, *operand.shape) if dim is None else operand.movedim(dim, 0)


def _requests(operand: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    """(batch, heads, rows, …) of each as (size * batch, heads, rows, …)."""
    folded = _first(operand, dim, size).flatten(0, 1)
    return addressable("operand", folded) if folded.dim() == 4 else folded


def _bias(bias: torch.Tensor | None, dim: int | None, size: int, batch: int) -> torch.Tensor | None:
    if bias is None or (dim is None and bias.shape[0] == 1):
        return bias
    folded = _first(bias, dim, size)
    return addressable("attn_mask", folded.expand(size, batch, *folded.shape[2:]).flatten(0, 1), rows=False)


def _slopes(slopes: torch.Tensor | None, dim: int | None, size: int, batch: int) -> torch.Tensor | None:
    if slopes is None or (dim is None and slopes.dim() == 1):
        return slopes
    folded = _first(slopes, dim, size)
    folded = folded if folded.dim() == 3 else folded[:, None].expand(size, batch, -1)
    return folded.flatten(0, 1).contiguous()
