"""The time of attention kernels: the formulas and the numbers of the dispatcher's estimate.cpp."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.operations.attention.time_model.posed import Posed, Stage
from kernelwright.codegen.operations.attention.time_model.serves import mask_kind
from kernelwright.codegen.operations.attention.time_model.traits import Traits

# A test compares them with estimate.cpp, which says what each is.
NUMBERS = {
    "kFillBytesPerClock": 48, "kSecondLaunchUs": 4, "kSpareMask": 1.05, "kStreamed": 1.0, "kAloneClocks": 18.48,
    "kAloneBytes": 35.31, "kSharedClocks": 3.676, "kSharedBytes": 32.42, "kProductShare": 1.12, "kSoftmaxWork": 110,
    "kSoftmaxWorkOfThree": 87, "kTileUs": 2, "kTilesLaunchUs": 7.064, "kLaunchUs": 0.9966, "kWaveUs": 2.786,
    "kCombineUs": 2.986, "kCombineSplitUs": 0.08997, "kSlowDot": 3.7, "kThreadBytesPerUs": 12000, "kLastTask": 0.5,
    "kFewRows": 4, "kPartialClocks": 10, "kRank": 1e-9,
}  # fmt: skip
_C = NUMBERS


@dataclass(frozen=True)
class _Shape:
    """A typical request."""

    requests: float
    queries: float
    keys: float


def _shape_of(p: Posed) -> _Shape:
    requests = max(p.batch, 1)
    keys = p.total_k / requests if p.total_k else float(p.seqlen_k)
    return _Shape(requests, p.total_q / requests if p.group else float(p.seqlen_q), keys)


def _size(dtype: str) -> int:
    return ELEMENT_BYTES[DType(dtype)]


def _rate(arch: Arch, dtype: str) -> float:
    return arch.flops_per_clock_per_cu.get(dtype) or 1.0


def _clocks_per_us(arch: Arch) -> float:
    return arch.clock_ghz * 1e3


def _bandwidth(arch: Arch) -> float:
    """Bytes per microsecond."""
    return arch.memory_gbytes_per_s * 1e3


def _thread_bandwidth(arch: Arch, units: int) -> float:
    """Of a CPU's threads, which reach a share of what all of its cores do."""
    stated = _bandwidth(arch)
    return min(stated, _C["kThreadBytesPerUs"] * units) if arch.backend == "cpu" else stated


def _operations(t: Traits, p: Posed, arch: Arch) -> float:
    """Per clock; kernels for CPUs multiply in fp32, but for those with dot products."""
    return _rate(arch, p.dtype if arch.backend != "cpu" else "bf16" if t.dots else "fp32")


def _visible_part(p: Posed, s: _Shape) -> float:
    """The part of queries x keys that the mask lets through: the mean over some rows."""
    if p.mask == "none" or s.keys <= 0 or s.queries <= 0:
        return 1.0
    rows, seen, (left, right) = 16, 0.0, p.window
    for i in range(rows):
        place = s.queries * (i + 0.5) / rows + (s.keys - s.queries if p.mask == "bottom_right" else 0.0)
        first = 0.0 if left < 0 else max(0.0, place - left)
        last = min(s.keys, s.keys if right < 0 else place + 1 + right)
        seen += max(0.0, last - first)
    return max(seen / (rows * s.keys), 1 / s.keys)


def _keys_of_tile(p: Posed, s: _Shape, tile_m: int, tile_n: int) -> float:
    """How many keys a tile of queries reads, in whole tiles of keys: the mean over some tiles."""
    if p.mask == "none" or s.keys <= 0 or s.queries <= 0:
        return math.ceil(s.keys / tile_n) * tile_n
    tiles, (left, right), read = math.ceil(s.queries / tile_m), p.window, 0.0
    some = min(tiles, 16)
    for i in range(some):
        place = float(int(tiles * (i + 0.5) / some)) * tile_m
        place += s.keys - s.queries if p.mask == "bottom_right" else 0.0
        first = 0.0 if left < 0 else max(0.0, place - left)
        last = min(s.keys, s.keys if right < 0 else max(0.0, place + tile_m + right))
        read += max(0, math.ceil(last / tile_n) - int(first / tile_n))
    return max(read / some, 1.0) * tile_n


def _row_bytes(p: Posed, s: _Shape) -> float:
    return s.requests * s.queries * p.heads_q * (p.hdim_q * _size(p.dtype) + p.hdim_v * _size(p.dtype_o))


def _key_bytes(p: Posed, s: _Shape) -> float:
    return s.keys * (p.hdim_q + p.hdim_v) * _size(p.dtype_kv)


def _per_cu(t: Traits) -> int:
    return max(1, t.blocks_per_cu)


def _tiles_of(t: Traits, p: Posed, s: _Shape) -> float:
    """Blocks of a kernel without splits."""
    shared = p.heads_q / p.heads_kv if t.packs_heads else 1.0
    return math.ceil(s.queries * shared / t.tile_m0) * p.heads_q / shared * s.requests


def splits_that_fill(t: Traits, p: Posed, units: int) -> int:
    """The most splits whose blocks all run at once: 0 where there are more blocks without any."""
    tiles = _tiles_of(t, p, _shape_of(p))
    return int(units * _per_cu(t) / tiles) if tiles > 0 else 0


def _settled(p: Posed, t: Traits, arch: Arch, compute: float, fill: float, memory: float) -> float:
    compute *= 1.0 if mask_kind(p) in t.masks else _C["kSpareMask"]
    total = compute + memory if arch.backend == "cpu" else max(compute, fill, memory)
    return total * (1 + _C["kRank"] * t.selection_rank)


def _streaming_us(
    blocks: float, t: Traits, arch: Arch, units: int, keys: float, key_bytes: float, readers: float
) -> float:
    """Blocks that each read keys of their own, one wave after the other; ``readers`` blocks read the same."""
    memory, resident = _C["kStreamed"] * _bandwidth(arch), units * _per_cu(t)

    def wave(count: float) -> float:
        alone = _C["kAloneClocks"] + key_bytes / _C["kAloneBytes"]
        shared = _C["kSharedClocks"] + key_bytes / _C["kSharedBytes"]
        clocks = keys * max(alone, math.ceil(count / units) * shared)
        return _C["kWaveUs"] + max(clocks / _clocks_per_us(arch), count * keys * key_bytes / readers / memory)

    whole = int(blocks / resident)
    rest = blocks - whole * resident
    return whole * wave(resident) + (wave(rest) if rest > 0 else 0.0)


def part(t: Traits, p: Posed, arch: Arch, units: int) -> float:
    """Predicted time of a forward kernel with ``p.num_splits`` parts of the keys."""
    s, splits = _shape_of(p), max(p.num_splits, 1)
    streams = arch.backend == "cutlass" and t.packs_heads != 0
    wgmma = arch.backend == "cutlass" and not streams
    seen, clocks, per_cu = _visible_part(p, s), _clocks_per_us(arch), _per_cu(t)
    read = _keys_of_tile(p, s, t.tile_m0, t.tile_n0) if wgmma else s.keys * seen
    keys = math.ceil(read / splits / t.tile_n0) * t.tile_n0
    cpu = arch.backend == "cpu"
    hdims = p.hdim_q + p.hdim_v if cpu else max(t.hdim_q, p.hdim_q) + max(t.hdim_v, p.hdim_v)
    rows = min(t.tile_m0, max(_C["kFewRows"], s.queries * p.heads_q / p.heads_kv)) if cpu else t.tile_m0
    tiles = _tiles_of(t, p, s) * splits
    waves = math.ceil(tiles / (units * per_cu))
    softmax = _C["kSoftmaxWorkOfThree" if t.tile_m0 > 128 else "kSoftmaxWork"]
    work = _C["kProductShare"] * hdims + softmax if wgmma else hdims
    tile_us = per_cu * 2 * rows * keys * work / _operations(t, p, arch) / clocks
    fill = 0.0
    if wgmma:
        # Where a mask or lengths make tiles unequal, units take them one by one.
        unequal = p.mask != "none" or p.group
        compute = (max(1.0, tiles / (units * per_cu)) if unequal else waves) * (tile_us + _C["kTileUs"])
    elif cpu:
        threads = units * per_cu
        compute = max(1.0, tiles / threads + _C["kLastTask"] * (1 - 1 / threads)) * tile_us
    else:
        compute = waves * tile_us
    if streams:
        readers = _tiles_of(t, p, s) / (s.requests * p.heads_kv)
        fill = _streaming_us(tiles, t, arch, units, keys, hdims * _size(p.dtype_kv), readers)
    elif not cpu:
        fill = waves * per_cu * keys * hdims * _size(p.dtype_kv) / _C["kFillBytesPerClock"] / clocks
    partial = 4.0 * splits * s.requests * s.queries * p.heads_q * (p.hdim_v + 1) if p.leaves_splits else 0.0
    moved_bytes = _row_bytes(p, s) + s.requests * p.heads_kv * _key_bytes(p, s) + 2 * partial
    memory = moved_bytes / _thread_bandwidth(arch, units)
    if cpu:
        memory += partial / 4 * _C["kPartialClocks"] / units / clocks
    total = _settled(p, t, arch, compute, fill, memory)
    if streams:
        combine = _C["kCombineUs"] + _C["kCombineSplitUs"] * splits if p.leaves_splits else 0.0
        return total + _C["kLaunchUs"] + combine
    launch = _C["kTilesLaunchUs"] if arch.backend == "cutlass" else 0.0
    return total + launch + (_C["kSecondLaunchUs"] if p.leaves_splits else 0.0)


def gradients(t: Traits, p: Posed, arch: Arch, units: int) -> float:
    """Predicted time of dK, dV and ``p.dq_slices`` sums of dQ."""
    s, tile_m, tile_n, per_cu = _shape_of(p), max(t.tile_m0, 1), max(t.tile_n0, 1), _per_cu(t)
    queries = math.ceil(s.queries * _visible_part(p, s) / tile_m) * tile_m
    work = t.work_percent / 100.0 if t.work_percent else 1.0
    hdims = work * (3 * max(t.hdim_q, p.hdim_q) + 2 * max(t.hdim_v, p.hdim_v))
    tiles = math.ceil(s.keys / tile_n) * p.heads_q * s.requests
    waves = math.ceil(tiles / (units * per_cu))
    compute = waves * per_cu * 2 * tile_n * queries * hdims / _operations(t, p, arch) / _clocks_per_us(arch)
    sums = 8.0 * p.dq_slices * s.requests * s.queries * p.heads_q * p.hdim_q
    keys = s.requests * p.heads_kv * _key_bytes(p, s)
    total = _settled(p, t, arch, compute, 0.0, (2 * _row_bytes(p, s) + 2 * keys + sums) / _bandwidth(arch))
    return total + (_C["kSecondLaunchUs"] if p.dq_slices > 0 else 0.0)


def moved(count: float, t: Traits, arch: Arch, units: int) -> float:
    """Predicted time of a kernel that moves so many bytes and nothing else."""
    return count / _thread_bandwidth(arch, units) * (1 + _C["kRank"] * t.selection_rank)


def helper(t: Traits, p: Posed, arch: Arch, units: int) -> float:
    """Predicted time of a combination, of D, or of a conversion of dQ."""
    s = _shape_of(p)
    rows = s.requests * s.queries * p.heads_q
    out_q, out_v = rows * p.hdim_q * _size(p.dtype), rows * p.hdim_v * _size(p.dtype_o)
    if p.main is Stage.DOT:
        return moved(2 * out_v, t, arch, units)
    if p.main is Stage.COMBINE:
        return moved(4.0 * p.num_splits * rows * p.hdim_v + out_v, t, arch, units)
    return moved(4.0 * p.dq_slices * rows * p.hdim_q + out_q, t, arch, units)
