"""Rule sets sampled from ``full``: every fifth kernel of each kind, and one of each kind."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.codegen.fields import StreamK
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec

_STEP = 5
_AT_LEAST = 10


def category(spec: GroupedConvSpec) -> str:
    """Return one word for what is unusual about a kernel."""
    for word, holds in (
        ("depthwise", spec.depthwise),
        ("stream_k", spec.stream_k is not StreamK.NONE),
        ("split_image", spec.split_image),
        ("merged_groups", spec.num_groups_to_merge > 1),
        ("two_stage", spec.two_stage),
        ("explicit_gemm", spec.explicit_gemm),
    ):
        if holds:
            return word
    return "regular"


def one_in_five(specs: Sequence[GroupedConvSpec]) -> tuple[GroupedConvSpec, ...]:
    """Return every fifth spec of each category and dtype, including the first.

    Adds one for each combination of variant, dtype, pipeline and scheduler that is not among these.
    """
    counts: dict[object, int] = {}
    chosen: dict[GroupedConvSpec, None] = {}
    for spec in specs:
        kind = (category(spec), spec.dtype)
        if counts.get(kind, 0) % _STEP == 0:
            chosen[spec] = None
        counts[kind] = counts.get(kind, 0) + 1
    seen = {_combination(spec) for spec in chosen}
    for spec in specs:
        if _combination(spec) not in seen:
            seen.add(_combination(spec))
            chosen[spec] = None
    return tuple(chosen)


def smallest(specs: Sequence[GroupedConvSpec]) -> tuple[GroupedConvSpec, ...]:
    """Return the first spec of each category, direction and number of dimensions; then more in turns, up to ten."""
    groups: dict[object, list[GroupedConvSpec]] = {}
    for spec in specs:
        groups.setdefault((category(spec), spec.direction, spec.spatial_dims), []).append(spec)
    turns = [[group[turn] for group in groups.values() if turn < len(group)] for turn in range(_AT_LEAST)]
    chosen = turns[0] if turns else []
    for turn in turns[1:]:
        chosen += turn[: max(0, _AT_LEAST - len(chosen))]
    return tuple(chosen)


def _combination(spec: GroupedConvSpec) -> tuple[object, ...]:
    return (spec.variant, spec.dtype, spec.pipeline, spec.scheduler)
