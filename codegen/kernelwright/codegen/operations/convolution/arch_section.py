"""What an architecture says of convolution kernels: its file's section ``operations.convolution``."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from kernelwright.arch import Arch, ChoicesField, Triple, Triples


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class ConvPipelineLimits(_Frozen):
    """What can be combined with one pipeline.

    ``lds_bytes`` bounds one stage of A and B; a pipeline with ``double_buffer`` keeps two of them, and so do kernels of
    others with ``double_smem_buffer``. ``depthwise`` pipelines serve depthwise kernels, the others implicit GEMMs.
    """

    schedulers: tuple[str, ...] = Field(min_length=1)
    epilogues: tuple[str, ...] = Field(min_length=1)
    directions: tuple[str, ...] = ("forward", "backward_data", "backward_weight")
    lds_bytes: int | None = Field(default=None, gt=0)
    double_buffer: bool = False
    depthwise: bool = False


class ConvTileLimits(_Frozen):
    """Legal extents of a tile of the implicit GEMM."""

    m: ChoicesField
    n: ChoicesField
    k: ChoicesField


class ConvFeatureNeed(_Frozen):
    """Kernels of this dtype and warp-tile K run only on a device that has ``feature`` beyond the architecture."""

    feature: str = Field(min_length=1)
    dtype: str
    warp_tile_k: int = Field(gt=0)


class ConvSection(_Frozen):
    """Legal values of convolution specs on one architecture.

    ``warp_tiles`` lists the dtypes. ``vector_bytes`` is the widest access to memory that a spec may ask for; None where
    specs ask for none. ``instruction_tiles`` are the warp tiles that CK Tile compiles to matrix instructions.
    """

    layouts: tuple[str, ...]
    depthwise_layouts: tuple[str, ...] = ()
    tile: ConvTileLimits
    waves: Triples = Field(min_length=1)
    warp_tiles: dict[str, Triples] = Field(min_length=1)
    vector_bytes: int | None = Field(default=None, gt=0)
    pipelines: dict[str, ConvPipelineLimits] = Field(min_length=1)
    instruction_tiles: dict[str, Triples] = {}
    feature_needs: tuple[ConvFeatureNeed, ...] = ()

    @model_validator(mode="after")
    def _features_exist(self, info: ValidationInfo) -> ConvSection:
        arch: Arch = info.context  # type: ignore[assignment]
        known = set(arch.cpu.features) if arch.cpu else set()
        for need in self.feature_needs:
            if need.feature not in known:
                raise ValueError(f"feature_needs has {need.feature!r}, which cpu.features lacks")
        return self

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


def conv_features(dtype: str, warp_tile_k: int, arch: Arch) -> tuple[str, ...]:
    """What a device must have beyond ``arch`` for kernels of this dtype and warp-tile K, sorted."""
    needs = conv_section(arch).feature_needs
    return tuple(sorted(need.feature for need in needs if (need.dtype, need.warp_tile_k) == (dtype, warp_tile_k)))


def conv_section(arch: Arch) -> ConvSection:
    """The section of an architecture; ArchError if there is none, or if it is malformed."""
    return arch.section("convolution", ConvSection)
