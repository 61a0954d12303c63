"""The words that ``variant`` may be: for each, its operation and the values of attributes that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.codegen.violations import SpecError, closest
from kernelwright.tile_engine.operation import Axes, Measurable
from kernelwright.tile_engine.registry import OPERATIONS


@dataclass(frozen=True)
class Variant:
    """What a word stands for: kernels of ``operation`` whose attributes have one of the values of ``axes``."""

    operation: Measurable
    axes: Axes = field(default_factory=dict)


VARIANTS: Mapping[str, Variant] = {
    **{name: Variant(one) for name, one in OPERATIONS.items()},
    **{word: Variant(one, axes) for one in OPERATIONS.values() for word, axes in one.words.variants.items()},
}
"""The operations, their own words, and what CK Tile's engine calls them."""


def variant(word: object) -> Variant:
    """The variant called ``word``; SpecError with the known words otherwise."""
    if not isinstance(word, str) or word not in VARIANTS:
        hint = closest(str(word), VARIANTS)
        raise SpecError(f"variant = {word!r}{hint}; allowed: {', '.join(VARIANTS)}")
    return VARIANTS[word]
