"""Whether a convolution kernel serves a problem, as far as its spec tells."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.operations.convolution.spec import (
    SPATIAL_DIMS,
    ConvLayout,
    Direction,
    GroupedConvSpec,
    Specialization,
)
from kernelwright.codegen.operations.convolution.time_model.posed import Posed

_DIRECT_FILTERS, _DIRECT_MOST_STRIDE = (3, 5, 7), 2  # of depthwise kernels on NVIDIA GPUs
_LINE = 8  # elements: TMA addresses lines by multiples of 16 bytes
_WORD = 4  # bytes that AMD kernels align wider accesses to


def serves(spec: GroupedConvSpec, posed: Posed, arch: Arch) -> bool:
    """The checks of convolution/checks.h on the traits of a spec, and what each backend asks of memory."""
    same = spec.direction is posed.direction and spec.dtype is posed.dtype and _layouts(spec.layout, posed.layout)
    epilogue = (spec.bias, spec.residual, spec.activation) == (posed.bias, posed.residual, posed.activation)
    if not same or not epilogue or not _shape(spec, posed):
        return False
    if arch.backend == "cutlass":
        return not spec.depthwise or _direct(posed)
    return arch.backend == "cpu" or _ck_tile(spec, posed)


def _layouts(built: ConvLayout, asked: ConvLayout) -> bool:
    """Kernels with channels innermost serve fewer dimensions too."""
    if built is asked:
        return True
    innermost = ConvLayout.NGCHW not in (built, asked)
    return innermost and SPATIAL_DIMS[asked] < SPATIAL_DIMS[built]


def _shape(spec: GroupedConvSpec, posed: Posed) -> bool:
    depthwise = posed.c == posed.groups == posed.k
    if spec.depthwise and not depthwise:
        return False
    point = set(posed.filter) == {1} and not any((*posed.pad_left, *posed.pad_right))
    special = Specialization.FILTER1X1_STRIDE1_PAD0 if spec.explicit_gemm else spec.specialization
    if special is Specialization.FILTER3X3:
        return depthwise and set(posed.filter[3 - SPATIAL_DIMS[posed.layout] :]) == {3}
    if special is Specialization.FILTER1X1_PAD0:
        return point
    return special is Specialization.DEFAULT or (point and set(posed.stride) == {1})


def _direct(posed: Posed) -> bool:
    """conv_direct.c: two dimensions, square filters, read points at multiples of 16 bytes, pairs of channels stored."""
    (_, high, wide), (_, down, right) = posed.filter, posed.stride
    flat = posed.size[0] == posed.filter[0] == 1 and not posed.pad_left[0] and not posed.pad_right[0]
    square = high == wide and wide in _DIRECT_FILTERS and set(posed.dilation) == {1}
    if not flat or not square or down != right or right > _DIRECT_MOST_STRIDE:
        return False
    data = posed.direction is Direction.BACKWARD_DATA
    for strides, size, written in (
        (posed.stride_x, posed.size, data),
        (posed.stride_y, posed.out, posed.direction is Direction.FORWARD),
    ):
        if written and (posed.c % 2 or any(stride % 2 for stride in (strides[0], *strides[3:]))):
            return False
        if not written and not _aligned(strides, posed.n, size):
            return False
    return True


def _aligned(strides: tuple[int, ...], images: int, size: tuple[int, ...]) -> bool:
    points = all(extent <= 1 or stride % _LINE == 0 for stride, extent in zip(strides[2:], size, strict=True))
    return points and (images <= 1 or strides[0] % _LINE == 0)


def _ck_tile(spec: GroupedConvSpec, posed: Posed) -> bool:
    """conv_conditions.c: whole vectors of channels, aligned points, beta with a second stage only."""
    if posed.beta != 0 and not spec.two_stage:
        return False
    if posed.split_k > 1 and not spec.two_stage:
        return False
    c, k, vector = posed.c // posed.groups, posed.k // posed.groups, spec.vector
    a, b, result = {
        Direction.FORWARD: (c, c, k),
        Direction.BACKWARD_DATA: (k, c, c),
        Direction.BACKWARD_WEIGHT: (k, c, c),
    }[spec.direction]
    if a % vector.a or b % vector.b or result % vector.c:
        return False
    size = posed.element_bytes
    aligned = _WORD if max(vector.a, vector.b, vector.c) * size >= _WORD else size
    strides = (*posed.stride_x[:1], *posed.stride_x[2:], *posed.stride_y[:1], *posed.stride_y[2:])
    if any(stride * size % aligned for stride in strides):
        return False
    return not spec.explicit_gemm or (_evenly(posed.stride_x, posed.size) and _evenly(posed.stride_y, posed.out))


def _evenly(strides: tuple[int, ...], size: tuple[int, ...]) -> bool:
    step = strides[4]
    for stride, extent in zip(reversed(strides[2:]), reversed(size), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return strides[0] == step
