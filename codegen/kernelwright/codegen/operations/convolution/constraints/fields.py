"""Which features of convolution go with which direction, and with each other."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.fields import Activation, StreamK
from kernelwright.codegen.operations.convolution.constraints.report import flags, one_of, refused
from kernelwright.codegen.operations.convolution.spec import ConvPipeline, Direction, GroupedConvSpec
from kernelwright.codegen.violations import Violation
from kernelwright.problems.convolution.description import Specialization

_FILTERS_OF_ONE_POINT = (Specialization.FILTER1X1_PAD0, Specialization.FILTER1X1_STRIDE1_PAD0)
_SPECIALIZATIONS = {
    Direction.FORWARD: tuple(Specialization),
    Direction.BACKWARD_DATA: (Specialization.DEFAULT, Specialization.FILTER1X1_STRIDE1_PAD0),
    Direction.BACKWARD_WEIGHT: (Specialization.DEFAULT, Specialization.FILTER1X1_STRIDE1_PAD0),
}


def check_specialization(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Gradients are specialised for filters that make images matrices, and for nothing else."""
    allowed = _SPECIALIZATIONS[spec.direction]
    if spec.specialization not in allowed:
        why = f"{spec.direction} has no such simplification"
        yield one_of("convolution.specialization", "specialization", spec.specialization, allowed, why)


def check_epilogue(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Bias, residual and activation belong to the output, so to forward."""
    fused = (("bias", False), ("residual", False), ("activation", Activation.NONE))
    if spec.direction is not Direction.FORWARD:
        why = "only forward writes the output: gradients have no fused epilogue"
        yield from flags("convolution.epilogue", spec, fused, why)
    elif spec.activation is Activation.ANY:
        yield from flags("convolution.epilogue", spec, fused[:2], "any epilogue includes it")


def check_split_image(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Images are computed in pieces by forward kernels that compute one group at a time."""
    if not spec.split_image:
        return
    if spec.direction is not Direction.FORWARD:
        yield refused("convolution.split_image", "split_image", True, False, f"{spec.direction} has no pieces")
    if spec.num_groups_to_merge != 1:
        why = "a piece belongs to one group"
        yield refused("convolution.split_image", "num_groups_to_merge", spec.num_groups_to_merge, 1, why)


def check_shared_sum(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Only backward weight sums over enough points to share a sum, in one way at a time."""
    shares = (("two_stage", False), ("explicit_gemm", False), ("stream_k", StreamK.NONE))
    if spec.direction is not Direction.BACKWARD_WEIGHT:
        why = f"only backward_weight has it, not {spec.direction}"
        yield from flags("convolution.shared_sum", spec, shares, why)
    elif spec.stream_k is not StreamK.NONE:
        yield from flags("convolution.shared_sum", spec, shares[:2], "stream-K shares the sum already")
    if spec.stream_k_persistent and spec.stream_k is StreamK.NONE:
        yield refused("convolution.shared_sum", "stream_k_persistent", True, False, "the kernel has no stream-K")
    if spec.explicit_gemm and spec.pipeline is ConvPipeline.WAVELET:
        why = "its loading waves address images, not matrices"
        yield one_of("convolution.shared_sum", "pipeline", spec.pipeline, (ConvPipeline.MEM,), why)


def check_merged_groups(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Merged groups lie side by side in a tile: a power of two of them."""
    count = spec.num_groups_to_merge
    if count & (count - 1):
        why, nearest = "tiles are filled by a power of two of groups", str(1 << (count.bit_length() - 1))
        yield Violation("convolution.merged_groups", "num_groups_to_merge", str(count), why, "1, 2, 4, …", nearest)


def check_filter(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """A depthwise kernel is built for a square filter with an odd number of points, or for any."""
    if spec.filter.h != spec.filter.w or (spec.filter.h and spec.filter.h % 2 == 0):
        size = max(spec.filter.h, spec.filter.w)
        nearest = size if size % 2 else size + 1
        value, why = f"{spec.filter.h}x{spec.filter.w}", "filters are square and have an odd number of points"
        yield Violation("convolution.filter", "filter", value, why, "1x1, 3x3, 5x5, …", f"{nearest}x{nearest}")


FIELD_CHECKS = (
    check_specialization,
    check_epilogue,
    check_split_image,
    check_shared_sum,
    check_merged_groups,
    check_filter,
)
"""The checks of this module, which :mod:`.common` lists as rules."""
