"""The legal words of ``variant``: for each, its operation and the attribute values that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.codegen.violations import SpecError, closest
from kernelwright.tile_engine.operation import Axes, Measurable
from kernelwright.tile_engine.registry import OPERATIONS


@dataclass(frozen=True)
class Variant:
    """Meaning of a word: kernels of ``operation`` whose attributes have one of the values of ``axes``."""

    operation: Measurable
    axes: Axes = field(default_factory=dict)


VARIANTS: Mapping[str, Variant] = {
    **{name: Variant(one) for name, one in OPERATIONS.items()},
    **{word: Variant(one, axes) for one in OPERATIONS.values() for word, axes in one.words.variants.items()},
}
"""The operations, their own words, and their names in CK Tile's engine."""


def variant(word: object) -> Variant:
    """Look up the variant called ``word``; SpecError with the known words if there is none."""
    if not isinstance(word, str) or word not in VARIANTS:
        hint = closest(str(word), VARIANTS)
        raise SpecError(f"variant = {word!r}{hint}; allowed: {', '.join(VARIANTS)}")
    return VARIANTS[word]
