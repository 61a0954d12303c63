"""Architecture file sections of operations whose kernels are tiled GEMMs, including implicit ones."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from kernelwright.arch import Arch, ChoicesField, Triple, Triples


class FrozenModel(BaseModel):
    """A part of a section; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class TileLimits(FrozenModel):
    """Legal extents of a tile."""

    m: ChoicesField
    n: ChoicesField
    k: ChoicesField


class TiledSection(FrozenModel):
    """Legal tiles, by dtype, of one operation on one architecture.

    ``instruction_tiles`` are the warp tiles that CK Tile compiles to matrix instructions.
    """

    tile: TileLimits
    waves: Triples = Field(min_length=1)
    warp_tiles: dict[str, Triples] = Field(min_length=1)
    instruction_tiles: dict[str, Triples] = {}

    @functools.cached_property
    def wave_set(self) -> frozenset[Triple]:
        """``waves`` for membership tests."""
        return frozenset(self.waves)

    @functools.cached_property
    def warp_tile_sets(self) -> Mapping[str, frozenset[Triple]]:
        """``warp_tiles`` for membership tests."""
        return {dtype: frozenset(tiles) for dtype, tiles in self.warp_tiles.items()}

    @functools.cached_property
    def instruction_tile_sets(self) -> Mapping[str, frozenset[Triple]]:
        """``instruction_tiles`` for membership tests."""
        return {dtype: frozenset(tiles) for dtype, tiles in self.instruction_tiles.items()}


class _Pipeline(Protocol):
    @property
    def schedulers(self) -> tuple[str, ...]: ...
    @property
    def epilogues(self) -> tuple[str, ...]: ...


def check_features(needed: Iterable[str], arch: Arch) -> None:
    """Raise ValueError for features that ``cpu.features`` of the architecture lacks."""
    known = set(arch.cpu.features) if arch.cpu else set()
    for feature in needed:
        if feature not in known:
            raise ValueError(f"feature_needs has {feature!r}, which cpu.features lacks")


def fill_pipeline(fields: dict[str, Any], pipelines: Mapping[str, _Pipeline], usual: list[str], waves: Triples) -> Any:
    """Add pipeline, epilogue, scheduler and wave from the architecture; returns the pipeline's limits, or None.

    Pipeline and wave are added where there is one choice, epilogue and scheduler as the pipeline's first. ``usual`` are
    the pipelines that serve the request.
    """
    if len(usual) == 1:
        fields.setdefault("pipeline", usual[0])
    limits = pipelines.get(fields.get("pipeline", ""))
    if limits is not None:
        fields.setdefault("epilogue", limits.epilogues[0])
        fields.setdefault("scheduler", limits.schedulers[0])
    if len(waves) == 1:
        fields.setdefault("wave", dict(zip("mnk", waves[0], strict=True)))
    return limits
