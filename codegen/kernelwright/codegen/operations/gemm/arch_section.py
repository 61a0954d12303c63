"""The section ``operations.gemm`` of an architecture file."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from pydantic import Field, ValidationInfo, model_validator

from kernelwright.arch import Arch, Triple, Triples
from kernelwright.codegen.tiled.sections import FrozenModel, TiledSection, check_features


class PipelineLimits(FrozenModel):
    """Legal combinations with one pipeline.

    ``lds_bytes`` bounds one stage of A and B (``tile_m * tile_k * bytes(A) + tile_n * tile_k * bytes(B)``); a pipeline
    with ``double_buffer`` keeps two such stages, so its bound is half of the architecture's LDS. None: no bound. A
    pipeline that is ``named`` is taken only by specs that name it.
    """

    schedulers: tuple[str, ...] = Field(min_length=1)
    epilogues: tuple[str, ...] = Field(min_length=1)
    lds_bytes: int | None = Field(default=None, gt=0)
    double_buffer: bool = False
    preshuffle: bool = False
    named: bool = False
    persistent: tuple[bool, ...] = Field(default=(False,), min_length=1)
    num_wave_groups: tuple[int, ...] = Field(default=(1,), min_length=1)
    k_block_per_cu: tuple[int, ...] = Field(default=(1,), min_length=1)
    split_k: tuple[bool, ...] = Field(default=(False,), min_length=1)


class FeatureNeed(FrozenModel):
    """Kernels of this dtype key and warp-tile K run only on a device that has ``feature`` beyond the architecture."""

    feature: str = Field(min_length=1)
    dtypes: str
    warp_tile_k: int = Field(gt=0)


class GemmSection(TiledSection):
    """Legal values of GEMM specs on one architecture.

    A dtype key is ``<a>_<b>_<acc>``, e.g. ``fp16_fp16_fp32``. ``instruction_tiles`` are the warp tiles that CK Tile
    compiles to matrix instructions, by the dtype of A; ``emulated_dtypes`` are those that it multiplies without one,
    with wrong results.
    """

    layouts: tuple[str, ...] = Field(min_length=1)
    clusters: Triples = Field(default=((1, 1, 1),), min_length=1)
    pipelines: dict[str, PipelineLimits] = Field(min_length=1)
    preshuffle_warp_tiles: dict[str, Triples] = Field(default_factory=dict)
    outputs: dict[str, tuple[str, ...]]
    feature_needs: tuple[FeatureNeed, ...] = ()
    emulated_dtypes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _tables_agree(self, info: ValidationInfo) -> GemmSection:
        keys = set(self.warp_tiles)
        if set(self.outputs) != keys:
            raise ValueError(f"outputs must have exactly the dtype keys of warp_tiles: {', '.join(sorted(keys))}")
        if not set(self.preshuffle_warp_tiles) <= keys:
            raise ValueError("preshuffle_warp_tiles has a dtype key that warp_tiles lacks")
        arch: Arch = info.context  # type: ignore[assignment]
        offered = {key.split("_")[0] for key in keys}
        if not offered <= set(arch.flops_per_clock_per_cu):
            raise ValueError(f"flops_per_clock_per_cu must rate these dtypes: {', '.join(sorted(offered))}")
        check_features((need.feature for need in self.feature_needs), arch)
        return self

    @functools.cached_property
    def epilogues(self) -> tuple[str, ...]:
        """Every epilogue that a pipeline offers."""
        return tuple(dict.fromkeys(item for limits in self.pipelines.values() for item in limits.epilogues))

    @functools.cached_property
    def schedulers(self) -> tuple[str, ...]:
        """Every scheduler that a pipeline offers."""
        return tuple(dict.fromkeys(item for limits in self.pipelines.values() for item in limits.schedulers))

    @functools.cached_property
    def cluster_set(self) -> frozenset[Triple]:
        """``clusters`` for membership tests."""
        return frozenset(self.clusters)

    @functools.cached_property
    def preshuffle_warp_tile_sets(self) -> Mapping[str, frozenset[Triple]]:
        """``preshuffle_warp_tiles`` for membership tests."""
        return {key: frozenset(tiles) for key, tiles in self.preshuffle_warp_tiles.items()}

    def lds_budget(self, pipeline: str) -> int | None:
        """The bytes that one stage of A and B may take; None without a bound. KeyError for a pipeline not offered."""
        return self.pipelines[pipeline].lds_bytes

    def features(self, dtypes: str, warp_tile_k: int) -> tuple[str, ...]:
        """Return the features that a device needs beyond the architecture for this dtype key and warp-tile K."""
        needs = (need for need in self.feature_needs if (need.dtypes, need.warp_tile_k) == (dtypes, warp_tile_k))
        return tuple(sorted(need.feature for need in needs))


def gemm_section(arch: Arch) -> GemmSection:
    """Return the GEMM section of an architecture; ArchError if there is none, or if it is malformed."""
    return arch.section("gemm", GemmSection)
