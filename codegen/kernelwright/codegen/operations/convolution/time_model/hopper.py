"""The time of a convolution on Hopper: the formula and the numbers of the dispatcher's estimate_cuda.cpp."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernelwright.arch import Arch
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec
from kernelwright.codegen.operations.convolution.time_model.posed import Posed

# A test compares them with estimate_cuda.cpp, which says what each is.
NUMBERS = {
    "kStep": 64, "kReadRowsClocks": 14.38, "kReadColumnClocks": 0.25, "kInstructionSlack": 0.9381,
    "kFillBytesPerClock": 61.22, "kStepClocks": 61.43, "kReadRowBytes": 32, "kSharedBytesPerClock": 128,
    "kReadShare": 0.1, "kStoreBytesPerClock": 15.69, "kStartClocks": 725.5, "kMemoryShare": 0.8475, "kOverlap": 0.27,
    "kLaunchUs": 1.287, "kHelperUs": 2.0, "kDirectProducts": 64, "kDirectRows": 8, "kDirectColumns": 14,
    "kVectorElements": 8, "kSliceUs": 0.02797, "kWeightStepClocks": 0.9123, "kWeightStore": 0.6013,
    "kDirectStartClocks": 92.6, "kBoxClocks": 695.2, "kBoxPointClocks": 122.4, "kDirectWaves": 0.8061,
    "kDirectLaunchUs": 0.5645, "kDirectSliceUs": 0.0127, "kDirectSliceBytesPerUs": 8e6,
}  # fmt: skip
_C = NUMBERS
FOLD = {"STEP": 64, "LINE": 8, "MOST": 16, "MOST_GRADIENT": 8}
"""``KW_CONV_FOLD_…`` of convolution/folding.h."""


@dataclass(frozen=True)
class _Shape:
    """The implicit GEMM as launchers make it: groups of few channels merged, channels in steps."""

    rows: float
    columns: float
    steps: float
    groups: float
    merged: int
    bytes: float
    slice_bytes: float


def fold_pitch(posed: Posed) -> int:
    """Channels of a point of a folded image; 0 where folding does not halve the steps of a sum."""
    taps, pitch = posed.filter[2], posed.c
    data = posed.direction is Direction.BACKWARD_DATA
    if posed.groups != 1 or taps < 2 or posed.dilation[2] != 1:
        return 0
    if posed.c > FOLD["MOST_GRADIENT" if data else "MOST"]:
        return 0
    while not data and pitch * posed.stride[2] % FOLD["LINE"]:
        pitch += 1
    return pitch if 2 * math.ceil(taps * pitch / FOLD["STEP"]) <= taps else 0


def _folded(posed: Posed) -> Posed:
    pitch = fold_pitch(posed)
    if pitch == 0:
        return posed
    (d, h, w), (sd, sh, _), (fd, fh, _) = posed.size, posed.stride, posed.filter
    w = posed.out[2]
    return replace(
        posed, c=pitch * posed.filter[2], size=(d, h, w), filter=(fd, fh, 1), stride=(sd, sh, 1),
        pad_left=(*posed.pad_left[:2], 0), pad_right=(*posed.pad_right[:2], 0),
    )  # fmt: skip


def _merged_groups(posed: Posed) -> int:
    widest = max(posed.c // posed.groups, posed.k // posed.groups)
    return next((many for many in range(int(_C["kStep"]) // widest, 1, -1) if posed.groups % many == 0), 1)


def _shape_of(posed: Posed, split: int) -> _Shape:
    p, step = _folded(posed), _C["kStep"]
    merged = _merged_groups(p)
    c, k = p.c // p.groups * merged, p.k // p.groups * merged
    points, outputs, inputs = p.filter_points, p.n * p.out_points, p.n * math.prod(p.size)
    moved = p.element_bytes * float(inputs * p.c + outputs * p.k * (2 if p.residual else 1) + p.k * c * points)
    rows, columns, steps, slice_bytes = float(outputs), float(k), float(points * math.ceil(c / step)), 0.0
    if p.direction is Direction.BACKWARD_DATA:
        rows, columns = float(inputs), float(c)
        steps = max(1.0, points / math.prod(p.stride)) * math.ceil(k / step)
    elif p.direction is Direction.BACKWARD_WEIGHT:
        rows, columns = float(k), points * math.ceil(c / step) * step
        steps = math.ceil(math.ceil(outputs / step) / max(1, split))
        slice_bytes = 4.0 * p.k * points * c
    return _Shape(rows, columns, steps, p.groups / merged, merged, moved, slice_bytes)


def _step_clocks(spec: GroupedConvSpec, size: float) -> float:
    m, n, step = spec.tile.m, spec.tile.n, _C["kStep"]
    instructions = step / 16 * m / 64
    multiply = instructions * max(n / 2, _C["kReadRowsClocks"] + _C["kReadColumnClocks"] * n) / _C["kInstructionSlack"]
    reads = instructions * (64 + n) * _C["kReadRowBytes"] / _C["kSharedBytesPerClock"]
    fill = (m + n) * step * size / _C["kFillBytesPerClock"]
    return max(multiply, fill) + _C["kStepClocks"] + _C["kReadShare"] * reads


def _helper_us(posed: Posed, s: _Shape, split: int, bandwidth: float) -> float:
    """Copies that operands need before TMA can read them, and slices that are added up behind."""
    weight = posed.direction is Direction.BACKWARD_WEIGHT
    copied = posed.c % _C["kVectorElements"] != 0 or fold_pitch(posed) != 0
    us = 0.0
    if not weight and (s.merged > 1 or copied):
        us += _C["kHelperUs"]
    if copied:
        us += _C["kHelperUs"] + s.bytes / bandwidth
    if weight and (s.merged > 1 or split > 1):
        us += _C["kHelperUs"] + _C["kSliceUs"] * split + 2 * s.slice_bytes * split / bandwidth
    return us


def _direct(posed: Posed, s: _Shape, split: int, units: int, clocks_per_us: float, bandwidth: float) -> float:
    """Of a depthwise kernel."""
    points, (_, high, wide) = posed.filter_points, posed.out
    products = float(posed.n) * posed.out_points * posed.k * points
    compute = products / _C["kDirectProducts"] / units / clocks_per_us
    memory = s.bytes / bandwidth
    if posed.direction is not Direction.BACKWARD_WEIGHT:
        return max(compute, memory) + _C["kLaunchUs"]
    # A workgroup has the boxes of a slice and of 64 channels. Those that share a multiprocessor share its arithmetic.
    boxes = posed.n * math.ceil(high / _C["kDirectRows"]) * math.ceil(wide / _C["kDirectColumns"])
    full = posed.n * high * wide / (boxes * _C["kDirectRows"] * _C["kDirectColumns"])
    box_clocks = full * (_C["kBoxClocks"] + _C["kBoxPointClocks"] * points)
    tiles = math.ceil(posed.c / _C["kStep"]) * split
    waves = _C["kDirectWaves"] * math.ceil(tiles / units) + (1 - _C["kDirectWaves"]) * max(1.0, tiles / units)
    compute = waves * (_C["kDirectStartClocks"] + math.ceil(boxes / split) * box_clocks) / clocks_per_us
    adding = _C["kDirectSliceUs"] * split + 2 * 4.0 * posed.c * points * split / _C["kDirectSliceBytesPerUs"]
    return max(compute, memory) + _C["kLaunchUs"] + _C["kHelperUs"] + _C["kDirectLaunchUs"] + adding


def microseconds(spec: GroupedConvSpec, posed: Posed, arch: Arch, split: int) -> float:
    """Predicted time of a launch with ``split`` slices of the sum on a device of the architecture."""
    units, clocks_per_us, size = arch.compute_units, max(1.0, arch.clock_ghz) * 1e3, posed.element_bytes
    bandwidth = max(1.0, arch.memory_gbytes_per_s) * 1e3 * _C["kMemoryShare"]
    split = max(1, split) if posed.direction is Direction.BACKWARD_WEIGHT else 1
    s = _shape_of(posed, split)
    if spec.depthwise:
        return _direct(posed, s, split, units, clocks_per_us, bandwidth)
    stored = 4 if s.slice_bytes > 0 else size
    tiles = math.ceil(s.rows / spec.tile.m) * math.ceil(s.columns / spec.tile.n) * s.groups * split
    waves = math.ceil(tiles / units)
    weight = s.slice_bytes > 0
    multiply = s.steps * (_step_clocks(spec, size) * (_C["kWeightStepClocks"] if weight else 1.0))
    store = (_C["kWeightStore"] if weight else 1.0) * spec.tile.m * spec.tile.n * stored
    store /= _C["kStoreBytesPerClock"] * spec.wave.m
    # Pingpong stores one tile while it multiplies the next; the last store is seen by both.
    pingpong = spec.wave.m == 1
    each = max(multiply, (multiply + store) / 2) if pingpong else multiply + store
    compute = (_C["kStartClocks"] + waves * each + (store if pingpong else 0)) / clocks_per_us
    memory = s.bytes / bandwidth
    both = max(compute, memory) + _C["kOverlap"] * min(compute, memory)
    return both + _C["kLaunchUs"] + _helper_us(posed, s, split, bandwidth)
