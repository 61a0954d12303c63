"""The section ``operations.convolution`` of an architecture file."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, model_validator

from kernelwright.arch import Arch
from kernelwright.codegen.tiled.sections import FrozenModel, TiledSection, check_features


class ConvPipelineLimits(FrozenModel):
    """Legal combinations with one pipeline.

    ``lds_bytes`` bounds one stage of A and B; a pipeline with ``double_buffer`` keeps two stages, and so do other
    kernels with ``double_smem_buffer``. ``depthwise`` pipelines serve depthwise kernels, the others implicit GEMMs.
    """

    schedulers: tuple[str, ...] = Field(min_length=1)
    epilogues: tuple[str, ...] = Field(min_length=1)
    directions: tuple[str, ...] = ("forward", "backward_data", "backward_weight")
    lds_bytes: int | None = Field(default=None, gt=0)
    double_buffer: bool = False
    depthwise: bool = False


class ConvFeatureNeed(FrozenModel):
    """Kernels of this dtype and warp-tile K run only on a device that has ``feature`` beyond the architecture."""

    feature: str = Field(min_length=1)
    dtype: str
    warp_tile_k: int = Field(gt=0)


class ConvSection(TiledSection):
    """Legal values of convolution specs on one architecture.

    ``warp_tiles`` lists the dtypes. ``vector_bytes`` is the widest memory access that a spec may ask for; None where
    specs do not choose it.
    """

    layouts: tuple[str, ...]
    depthwise_layouts: tuple[str, ...] = ()
    vector_bytes: int | None = Field(default=None, gt=0)
    pipelines: dict[str, ConvPipelineLimits] = Field(min_length=1)
    feature_needs: tuple[ConvFeatureNeed, ...] = ()

    @model_validator(mode="after")
    def _features_exist(self, info: ValidationInfo) -> ConvSection:
        arch: Arch = info.context  # type: ignore[assignment]
        check_features((need.feature for need in self.feature_needs), arch)
        return self


def conv_features(dtype: str, warp_tile_k: int, arch: Arch) -> tuple[str, ...]:
    """Return the features that a device needs beyond ``arch`` for this dtype and warp-tile K, sorted."""
    needs = conv_section(arch).feature_needs
    return tuple(sorted(need.feature for need in needs if (need.dtype, need.warp_tile_k) == (dtype, warp_tile_k)))


def conv_section(arch: Arch) -> ConvSection:
    """Return the convolution section of an architecture; ArchError if there is none, or if it is malformed."""
    return arch.section("convolution", ConvSection)
