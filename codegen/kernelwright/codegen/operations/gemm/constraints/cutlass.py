"""What CUTLASS 4.2's Hopper GEMMs cannot do, do wrongly, or do only with spills."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType, Layout
from kernelwright.codegen.operations.gemm import cutlass as symbols
from kernelwright.codegen.operations.gemm.spec import Activation, GemmSpec, Pipeline, Scheduler, StreamK
from kernelwright.codegen.violations import Rule, Violation

_WARP_GROUPS = {Scheduler.COOPERATIVE: 2, Scheduler.PINGPONG: 1}
_MAX_ACCUMULATORS = 192
_MAX_FUSED_ACCUMULATORS = 128
_PIPELINE_BARRIER_BYTES = 16
_COPIED_STEP = 64
_MOST_COPIED_SUMS = 128 * 128
Check = Callable[[GemmSpec, Arch], Iterator[Violation]]


def sides(spec: GemmSpec) -> tuple[str, str]:
    """Return the axes of the problem that are wgmma's rows and columns, see :func:`.cutlass.swapped`."""
    return ("n", "m") if symbols.swapped(spec) else ("m", "n")


def _extents(spec: GemmSpec) -> tuple[int, int]:
    rows, columns = sides(spec)
    return getattr(spec.tile, rows), getattr(spec.tile, columns)


def shared_memory(spec: GemmSpec, capacity: int) -> tuple[int, int]:
    """Return the bytes that the epilogue keeps, and the stages of A and B that fit beside it.

    Follows sm90_get_tma_dispatch_policy (epilogue tile and its C stages, which D reuses; D tensors have as many each)
    and compute_stage_count_or_override of CUTLASS 4.2.
    """
    rows, columns = _extents(spec)
    epilogue_m = min(128 if spec.scheduler is Scheduler.COOPERATIVE else 64, rows)
    epilogue_n = math.gcd(min(32, columns), columns)
    tiles = (rows // epilogue_m) * (columns // epilogue_n)
    stages_c = max(min(tiles, 4), min(tiles, 2) + 1)
    stage_bytes = epilogue_m * epilogue_n * ELEMENT_BYTES[spec.dtype_c]
    epilogue = stages_c * (stage_bytes * (1 + spec.num_d) + _PIPELINE_BARRIER_BYTES)
    operands = spec.tile.m * ELEMENT_BYTES[spec.dtype_a] + spec.tile.n * ELEMENT_BYTES[spec.dtype_b]
    return epilogue, (capacity - epilogue) // (operands * spec.tile.k + _PIPELINE_BARRIER_BYTES)


def _dtypes(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    tables = (
        ("dtype_a", spec.dtype_a, symbols.ELEMENTS),
        ("dtype_b", spec.dtype_b, symbols.ELEMENTS),
        ("dtype_c", spec.dtype_c, symbols.OUTPUTS),
        ("dtype_acc", spec.dtype_acc, symbols.ACCUMULATORS),
    )
    for field, dtype, table in tables:
        if dtype not in table:
            why = "no CUTLASS type is mapped"
            if dtype is DType.FP32:
                why = "the tensor cores would round fp32 operands to tf32 (10 bits of mantissa)"
            yield Violation("cutlass.dtype", field, dtype, why, ", ".join(table), "")


def _layout(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if ELEMENT_BYTES[spec.dtype_a] != 1:
        return
    swapped = symbols.swapped(spec)
    allowed = (Layout.RCR, Layout.RRR) if swapped else (Layout.RCR, Layout.CCR)
    if spec.layout in allowed:
        return
    why = "CUTLASS 4.2 builds a kernel that is silently wrong (relative error above 1 on H200)"
    if spec.layout is Layout.CRR:
        why = "CUTLASS 4.2 builds a kernel that accesses illegal memory on H200"
    elif spec.layout is Layout.RRR:
        why += "; the transposed product is right: warp_tile.m = tile.m, warp_tile.n = 64"
    names = ", ".join(allowed)
    yield Violation("cutlass.layout_8bit", "layout", spec.layout, f"8-bit operands: {why}", names, Layout.RCR)


def _schedule(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if spec.pipeline not in symbols.PIPELINES:
        allowed = ", ".join(symbols.PIPELINES)
        yield Violation("cutlass.schedule", "pipeline", spec.pipeline, "no kernel is written for it", allowed, "")
        return
    epilogue, schedulers = symbols.PIPELINES[spec.pipeline]
    checks: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("epilogue", spec.epilogue, (epilogue,)),
        ("scheduler", spec.scheduler, schedulers),
    )
    for field, value, table in checks:
        if value not in table:
            allowed = ", ".join(sorted(table))
            yield Violation("cutlass.schedule", field, value, "no CUTLASS schedule is mapped", allowed, "")


def _of_tma(check: Check) -> Check:
    """Limit the check to kernels that CUTLASS assembles."""

    @functools.wraps(check)
    def checked(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
        if spec.pipeline is not Pipeline.CP_ASYNC:
            yield from check(spec, arch)

    return checked


def _copied(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if spec.pipeline is not Pipeline.CP_ASYNC:
        return
    tile, wave, warp = spec.tile, spec.wave, spec.warp_tile
    fixed: tuple[tuple[str, object, object, str], ...] = (
        ("wave", (wave.m, wave.n, wave.k), (2, 4, 1), "eight warps copy and multiply"),
        ("warp_tile", (warp.m, warp.n, warp.k), (16, 8, 16), "mma.sync multiplies 16-bit elements so"),
        ("activation", spec.activation, Activation.ANY, "the kernel serves what others refuse, with any epilogue"),
        ("batched", spec.batched, True, "the kernel loops over products anyway"),
        ("split_k", spec.split_k, False, "nothing adds slices up"),
        ("stream_k", spec.stream_k, StreamK.NONE, "nothing adds slices up"),
        ("cluster", (spec.cluster.m, spec.cluster.n, spec.cluster.k), (1, 1, 1), "workgroups share nothing"),
    )
    for field, value, wanted, why in fixed:
        if value != wanted:
            text = "x".join(map(str, wanted)) if isinstance(wanted, tuple) else str(wanted)
            yield Violation("cutlass.copied", field, str(value), f"cp_async: {why}", text, text)
    for axis, extent in (("m", tile.m), ("n", tile.n), ("k", tile.k)):
        if extent % _COPIED_STEP:
            nearest = str(max(1, round(extent / _COPIED_STEP)) * _COPIED_STEP)
            why = "lines in shared memory are swizzled in eight chunks of 16 bytes"
            yield Violation("cutlass.copied", f"tile.{axis}", str(extent), why, "multiples of 64", nearest)
    if tile.m * tile.n > _MOST_COPIED_SUMS:
        value, why = f"{tile.m}x{tile.n}x{tile.k}", "two workgroups of a multiprocessor have 64 sums for each thread"
        yield Violation("cutlass.copied", "tile", value, why, f"tile.m * tile.n <= {_MOST_COPIED_SUMS}", "128x128x64")


@_of_tma
def _tile_rows(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    step = symbols.WGMMA_ROWS * _WARP_GROUPS.get(spec.scheduler, 1)
    axis, rows = sides(spec)[0], _extents(spec)[0]
    if rows % step:
        nearest = str(max(step, round(rows / step) * step))
        why = f"{spec.scheduler} needs multiples of {step}: each consumer warp group computes 64 rows at a time"
        yield Violation("cutlass.tile_rows", f"tile.{axis}", str(rows), why, f"multiples of {step}", nearest)


@_of_tma
def _tile_columns(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    axis, columns = sides(spec)[1], _extents(spec)[1]
    if columns % 16:
        nearest = str(max(16, round(columns / 16) * 16))
        why = "the TMA epilogue stores columns in groups of 16 (static_assert in CUTLASS's sm90_builder.inl)"
        yield Violation("cutlass.tile_columns", f"tile.{axis}", str(columns), why, "multiples of 16", nearest)


@_of_tma
def _wave(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    groups = _WARP_GROUPS.get(spec.scheduler)
    wanted = (1, groups, 1) if symbols.swapped(spec) else (groups, 1, 1)
    if groups and (spec.wave.m, spec.wave.n, spec.wave.k) != wanted:
        text = "x".join(map(str, wanted))
        value = f"{spec.wave.m}x{spec.wave.n}x{spec.wave.k}"
        why = f"{spec.scheduler} has {groups} consumer warp group(s) per tile"
        yield Violation("cutlass.wave", "wave", value, why, text, text)


@_of_tma
def _warp_tile(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    step = 32 // ELEMENT_BYTES[spec.dtype_a]
    wanted = (64, spec.tile.n, step), (spec.tile.m, 64, step)
    if (spec.warp_tile.m, spec.warp_tile.n, spec.warp_tile.k) not in wanted:
        plain, swapped = ("x".join(map(str, extents)) for extents in wanted)
        value = f"{spec.warp_tile.m}x{spec.warp_tile.n}x{spec.warp_tile.k}"
        why = "wgmma computes 64 rows, all columns of the tile and 32 bytes of K, or the transpose (PTX ISA)"
        allowed = f"{plain}; or {swapped}, which computes the transposed product"
        nearest = plain if spec.tile.m % 64 == 0 else swapped
        yield Violation("cutlass.warp_tile", "warp_tile", value, why, allowed, nearest)


@_of_tma
def _accumulators(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    threads = _WARP_GROUPS.get(spec.scheduler, 1) * 128
    registers = spec.tile.m * spec.tile.n // threads
    most = _MAX_FUSED_ACCUMULATORS if spec.fused else _MAX_ACCUMULATORS
    if registers > most:
        value = f"{spec.tile.m}x{spec.tile.n}x{spec.tile.k}"
        why = f"{registers} accumulator registers per thread; {most} leave room for the epilogue"
        limit = most * threads
        axis, rows = sides(spec)[1], _extents(spec)[0]
        nearest = f"tile.{axis} = {max(16, limit // rows // 16 * 16)}"
        yield Violation("cutlass.accumulators", "tile", value, why, f"tile.m * tile.n <= {limit}", nearest)


@_of_tma
def _shared_memory(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    epilogue, stages = shared_memory(spec, arch.lds_bytes)
    if stages < 2:
        value = f"{spec.tile.m}x{spec.tile.n}x{spec.tile.k}"
        why = f"{stages} stage(s) of A and B fit in {arch.lds_bytes} bytes beside {epilogue} of epilogue; loads need 2"
        per_k = spec.tile.m * ELEMENT_BYTES[spec.dtype_a] + spec.tile.n * ELEMENT_BYTES[spec.dtype_b]
        step = 32 // ELEMENT_BYTES[spec.dtype_a]
        fits = ((arch.lds_bytes - epilogue) // 2 - _PIPELINE_BARRIER_BYTES) // per_k // step * step
        allowed = f"tile.k <= {fits}" if fits > 0 else "a smaller tile"
        yield Violation("cutlass.shared_memory", "tile", value, why, allowed, f"tile.k = {fits}" if fits > 0 else "")


def _padding(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if not (spec.pad.m and spec.pad.n and spec.pad.k):
        value = " ".join(f"{axis}={value}" for axis, value in spec.pad.model_dump().items())
        why = "TMA cuts every tile at the edge of its matrix; a kernel without padding would be the same kernel"
        yield Violation("cutlass.padding", "pad", value, why, "m=True n=True k=True", "m=True n=True k=True")


def _variants(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if spec.grouped and symbols.swapped(spec):
        why = "the table of groups is written for products that are not transposed"
        yield Violation("cutlass.variants", "grouped", "True", why, "False", "False")
    if spec.grouped and ELEMENT_BYTES[spec.dtype_a] == 1 and spec.layout is not Layout.RCR:
        why = (
            "CUTLASS 4.2 has no grouped kernel that transposes 8-bit operands (static_assert in sm90_gmma_builder.inl)"
        )
        yield Violation("cutlass.variants", "layout", spec.layout, f"grouped: {why}", Layout.RCR, Layout.RCR)
    if spec.preshuffle:
        why = "TMA brings B from memory into the swizzled order that wgmma reads, so there is nothing to shuffle ahead"
        yield Violation("cutlass.variants", "preshuffle", "True", why, "False", "False")
    if spec.stream_k is StreamK.TREE:
        why = "CUTLASS adds the parts of a tile up one after the other"
        yield Violation("cutlass.variants", "stream_k", spec.stream_k, why, "none, linear", StreamK.LINEAR)
    cut = "split_k" if spec.split_k else "stream_k" if spec.stream_k is not StreamK.NONE else ""
    if cut and spec.scheduler is Scheduler.PINGPONG:
        why = f"CUTLASS has no {cut} for it: its warp groups work on different tiles"
        yield Violation("cutlass.variants", "scheduler", spec.scheduler, why, "cooperative", Scheduler.COOPERATIVE)
    if spec.activation is Activation.ANY and spec.dtype_acc is not DType.FP32:
        why = "the functions of an epilogue that is chosen at run time are of fp32"
        yield Violation("cutlass.variants", "activation", spec.activation, why, "none, relu", Activation.NONE)
    elif spec.dtype_acc is DType.INT32 and spec.activation not in (Activation.NONE, Activation.RELU):
        why = "integers have no such function"
        yield Violation("cutlass.variants", "activation", spec.activation, why, "none, relu", Activation.NONE)


RULES: tuple[Rule, ...] = (
    Rule("cutlass.dtype", "Each dtype has a CUTLASS type; fp32 operands would silently be tf32.", _dtypes),
    Rule("cutlass.layout_8bit", "wgmma reads 8-bit operands K-major only; CUTLASS's way around it is wrong.", _layout),
    Rule(
        "cutlass.schedule", "TMA warp-specialised kernels are the ones offered, and one for what TMA cannot.", _schedule
    ),
    Rule("cutlass.copied", "The kernel whose threads copy operands has one form, in some tiles.", _copied),
    Rule(
        "cutlass.tile_rows",
        "Consumer warp groups own 64 rows each; two cooperate, or one owns a tile.",
        _tile_rows,
    ),
    Rule("cutlass.tile_columns", "The TMA epilogue stores columns in groups.", _tile_columns),
    Rule("cutlass.wave", "The scheduler decides how many warp groups share a tile.", _wave),
    Rule(
        "cutlass.warp_tile",
        "wgmma's shape is 64 x N x 32 bytes and N the tile's, or the transpose.",
        _warp_tile,
    ),
    Rule("cutlass.accumulators", "Accumulators live in registers; with too many per thread they spill.", _accumulators),
    Rule("cutlass.shared_memory", "At least two stages of A and B must fit beside the epilogue.", _shared_memory),
    Rule("cutlass.padding", "Tails cost nothing with TMA, so there is one kernel, not eight.", _padding),
    Rule("cutlass.variants", "Only some variants are instantiated.", _variants),
)
