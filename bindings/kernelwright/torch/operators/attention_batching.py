"""``torch.vmap`` rules of attention: one launch of a larger batch, or one launch for each element.

Elements that share sinks and drop nothing become requests of one launch. Kernels have no sinks per request, and a seed
drops different probabilities in each request: with those, and if lengths differ, each element has its own launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch.inputs import addressable
from kernelwright.torch.schemas import ATTENTION, ATTENTION_BACKWARD, VARLEN

_ops = torch.ops.kernelwright


def forward(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention``."""
    a, at = ATTENTION.arguments(arguments), ATTENTION.arguments(dims)
    parted = (True, a.with_lse)
    if at.sinks is not None or a.dropout_p > 0:
        return _each(_ops.attention, info, dims, arguments, parted)
    return _parted(_ops.attention(*_joined(a, at, info.batch_size, "qkv")), info.batch_size, parted)


def backward(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention_backward``."""
    a, at = ATTENTION_BACKWARD.arguments(arguments), ATTENTION_BACKWARD.arguments(dims)
    parted = (True, True, True, a.with_dbias)
    if a.dropout_p > 0:
        return _each(_ops.attention_backward, info, dims, arguments, parted)
    joined = _joined(a, at, info.batch_size, ("q", "k", "v", "out", "grad", "lse"))
    joined = joined._replace(lse=joined.lse.contiguous())
    return _parted(_ops.attention_backward(*joined), info.batch_size, parted)


def _joined(a: Any, at: Any, size: int, tensors: Sequence[str]) -> Any:
    """The arguments of one launch for all elements; without dropout the seed has no effect."""
    folded = {name: _requests(getattr(a, name), getattr(at, name), size) for name in tensors}
    bias = _bias(a.bias, at.bias, size, _extent(a.q, at.q))
    return a._replace(bias=bias, slopes=_slopes(a.slopes, at.slopes, size, _extent(a.q, at.q)), seed=None, **folded)


def varlen(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention_varlen``."""
    with_lse = VARLEN.arguments(arguments).with_lse
    return _each(_ops.attention_varlen, info, dims, arguments, (True, with_lse))


def varlen_backward(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
    """The rule for ``kernelwright::attention_varlen_backward``."""
    return _each(_ops.attention_varlen_backward, info, dims, arguments, (True, True, True))


def _each(
    operator: Callable[..., Any], info: Any, dims: Sequence[Any], arguments: Sequence[Any], parted: Sequence[bool]
) -> tuple[Any, Any]:
    """Launch once for each element; results that are not ``parted`` are empty."""
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
    """Number of requests of one element."""
    return int(q.shape[0] if dim is None else q.movedim(dim, 0).shape[1])


def _first(operand: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    return operand.expand(size, *operand.shape) if dim is None else operand.movedim(dim, 0)


def _requests(operand: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    """Merge (batch, heads, rows, …) of each element into (size * batch, heads, rows, …)."""
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
