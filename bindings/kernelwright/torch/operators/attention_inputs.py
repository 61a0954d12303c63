"""Convert torch's operands to those of ``kernelwright::attention``: four dimensions, contiguous rows.

A broadcast costs no memory if kernels have a stride for it: batches and heads. Others are copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.torch.inputs import addressable, reshaped


class Folded(NamedTuple):
    """Operands of a launch, and the shape of torch's result.

    :ivar query: (batch, heads, queries, hdim); ``key`` and ``value`` have heads that divide these.
    :ivar scores: extents of torch's scores, (…, heads, queries, keys), without heads for operands of two dimensions.
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    scores: tuple[int, ...]

    @property
    def out(self) -> tuple[int, ...]:
        """Extents of torch's result."""
        return *self.scores[:-1], self.value.shape[-1]


def fold(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> Folded:
    """Fold all batch dimensions into one. ArrayError for extents that cannot be broadcast or heads not shared."""
    named = {"query": query, "key": key, "value": value}
    shapes = {name: tuple(one.shape) for name, one in named.items()}
    if min(one.dim() for one in named.values()) < 2:
        raise ArrayError(
            f"query, key and value have shapes {_listed(shapes)}; allowed: (…, heads, rows, head dimension), or (rows, "
            "head dimension) of one head; pass two dimensions or more"
        )
    if query.shape[-1] != key.shape[-1]:
        raise ArrayError(
            f"query has head dimension {query.shape[-1]} and key {key.shape[-1]}; they must be equal, pass both alike"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ArrayError(
            f"key has {key.shape[-2]} rows and value {value.shape[-2]}; they must be equal, pass a value for each key"
        )
    dims = max(3, *(one.dim() for one in named.values()))
    wide = {name: one[(None,) * (dims - one.dim())] for name, one in named.items()}
    wide = _with_heads(wide, enable_gqa)
    front = broadcast(shapes, [one.shape[:-3] for one in wide.values()])
    made = []
    for name, one in wide.items():
        four = reshaped(name, one.expand(*front, *one.shape[-3:]), (math.prod(front), *one.shape[-3:]))
        made.append(addressable(name, four))
    scores = (*front, *made[0].shape[1:3], key.shape[-2])
    flat = query.dim() == key.dim() == value.dim() == 2
    return Folded(made[0], made[1], made[2], scores[1:] if flat else scores)


def broadcast(shapes: dict[str, tuple[int, ...]], parts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The common extents of parts of the shapes, of one length, with 1 broadcast. ArrayError if there are none."""
    common = []
    for extents in zip(*parts, strict=True):
        others = [extent for extent in extents if extent != 1]
        if any(other != others[0] for other in others):
            raise ArrayError(
                f"query, key and value have shapes {_listed(shapes)}; allowed: batches and heads that are equal, or 1; "
                "pass operands that torch broadcasts"
            )
        common.append(others[0] if others else 1)
    return tuple(common)


def _listed(shapes: dict[str, tuple[int, ...]]) -> str:
    first, second, last = shapes.values()
    return f"{first}, {second} and {last}"


def _with_heads(wide: dict[str, torch.Tensor], enable_gqa: bool) -> dict[str, torch.Tensor]:
    """Expand heads for a launch: as many in key as in value, and a divisor of the query's."""
    query, key, value = wide.values()
    heads, of_key, of_value = query.shape[-3], key.shape[-3], value.shape[-3]
    if enable_gqa:
        for name, own in (("key", of_key), ("value", of_value)):
            if own != heads and (own == 0 or heads % own):
                raise ArrayError(
                    f"query has {heads} heads and {name} {own}; allowed with enable_gqa: a divisor of the query's heads"
                )
        if of_key != of_value:
            key, value = key.repeat_interleave(heads // of_key, -3), value.repeat_interleave(heads // of_value, -3)
        return {"query": query, "key": key, "value": value}
    if of_key == of_value in (1, heads):  # one head for all is what kernels share anyway
        return wide
    for name, own in (("key", of_key), ("value", of_value)):
        if own not in (1, heads) and heads != 1:
            raise ArrayError(f"query has {heads} heads and {name} {own}; pass enable_gqa=True to share them")
    (most,) = broadcast({name: tuple(one.shape) for name, one in wide.items()}, [(heads,), (of_key,), (of_value,)])
    return {name: one.expand(*one.shape[:-3], most, *one.shape[-2:]) for name, one in wide.items()}


def bias(mask: torch.Tensor | None, folded: Folded) -> torch.Tensor | None:
    """The bias added to the scores, in four dimensions; extents of 1 are broadcast. ArrayError for an invalid mask."""
    if mask is None:
        return None
    dtype, scores = folded.query.dtype, folded.scores
    if mask.dtype not in (torch.bool, torch.float32, dtype):
        raise ArrayError(
            f"attn_mask is {mask.dtype}; allowed: torch.bool, where False hides a key, or what is added to the scores: "
            f"{' or '.join(dict.fromkeys(('torch.float32', str(dtype))))}; pass attn_mask.bool() or "
            "attn_mask.to(query.dtype)"
        )
    extents = tuple(mask.shape)
    behind = scores[max(len(scores) - len(extents), 0) :]
    if not 0 < len(extents) <= len(scores) or any(
        one not in (1, all_) for one, all_ in zip(extents, behind, strict=True)
    ):
        raise ArrayError(
            f"attn_mask has shape {extents}; allowed: what is broadcast to {scores}, (…, heads, queries, keys), of 1 "
            f"to {len(scores)} dimensions; pass attn_mask.expand(queries, keys), or a mask of these extents"
        )
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -torch.inf)
    mask = mask.to(dtype)[(None,) * (max(len(scores), 3) - mask.dim())]
    mask = mask.expand(*mask.shape[:-1], scores[-1])
    front, inner = mask.shape[:-3], mask.shape[-3:]
    if len(front) != 1:
        if any(extent != 1 for extent in front):
            mask = mask.expand(*scores[:-3], *inner)
        mask = reshaped("attn_mask", mask, (math.prod(mask.shape[:-3]), *inner))
    return addressable("attn_mask", mask, rows=False)
