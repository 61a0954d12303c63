"""Rules that hold for every GEMM: what the architecture file lists, and how extents must fit into each other."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Sequence

from kernelwright.arch import Arch, Triple
from kernelwright.codegen.dtypes import ELEMENT_BYTES
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.constraints.variants import check_variants
from kernelwright.codegen.operations.gemm.spec import Extent, GemmSpec
from kernelwright.codegen.violations import Violation, rules


def check_dtypes(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """A, B and accumulator dtypes must be a combination that the matrix units (or vector units) multiply."""
    if spec.dtype_key not in gemm_section(arch).warp_tiles:
        message = f"{arch.name} has no instruction for these dtypes"
        yield _one_of(
            "gemm.dtypes", "dtype_a, dtype_b, dtype_acc", spec.dtype_key, tuple(gemm_section(arch).warp_tiles), message
        )


def check_output_dtype(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """The epilogue converts accumulators to some dtypes of C only."""
    allowed = gemm_section(arch).outputs.get(spec.dtype_key, (spec.dtype_c,))
    if spec.dtype_c not in allowed:
        message = f"the epilogue writes no such C for {spec.dtype_key}"
        yield _one_of("gemm.output_dtype", "dtype_c", spec.dtype_c, allowed, message)


def check_layout(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """The architecture's kernels read A and B, and write C, in these orders only."""
    if spec.layout not in gemm_section(arch).layouts:
        yield _one_of(
            "gemm.layout",
            "layout",
            spec.layout,
            gemm_section(arch).layouts,
            f"{arch.name} has no kernel for this layout",
        )


def check_tile_limits(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Each extent of the tile must lie within the architecture's limits."""
    for axis, value, limits in (
        ("m", spec.tile.m, gemm_section(arch).tile.m),
        ("n", spec.tile.n, gemm_section(arch).tile.n),
        ("k", spec.tile.k, gemm_section(arch).tile.k),
    ):
        if value not in limits.values:
            yield Violation(
                "gemm.tile_limits",
                f"tile.{axis}",
                str(value),
                f"not a tile extent of {arch.name}",
                str(limits),
                str(limits.nearest(value)),
            )


def check_wave_set(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Waves are laid out over a tile in a fixed set of ways."""
    yield from _member(
        "gemm.wave_set",
        "wave",
        spec.wave,
        gemm_section(arch).wave_set,
        gemm_section(arch).waves,
        f"{arch.name} lays out waves otherwise",
    )


def check_warp_tile_set(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """A warp tile is what one matrix instruction (or short run of them) multiplies, so only some exist per dtype."""
    key = spec.dtype_key
    sets, tables = gemm_section(arch).warp_tile_sets, gemm_section(arch).warp_tiles
    reason = f"{arch.name} has no such warp tile for {key}"
    if spec.preshuffle:
        sets, tables = gemm_section(arch).preshuffle_warp_tile_sets, gemm_section(arch).preshuffle_warp_tiles
        reason += " with preshuffled B"
        if key in gemm_section(arch).warp_tiles and key not in tables:
            yield Violation("gemm.warp_tile_set", "preshuffle", "True", reason, "False", "False")
    if key in tables:
        yield from _member("gemm.warp_tile_set", "warp_tile", spec.warp_tile, sets[key], tables[key], reason)


def check_cluster(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Workgroups share operands in clusters of these shapes only."""
    yield from _member(
        "gemm.cluster",
        "cluster",
        spec.cluster,
        gemm_section(arch).cluster_set,
        gemm_section(arch).clusters,
        f"{arch.name} has no such cluster",
    )


def check_divisibility(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Waves times warp tile must divide the tile along each extent: a wave computes whole warp tiles."""
    tile, wave, warp = spec.tile, spec.wave, spec.warp_tile
    for axis, value, unit, limits in (
        ("m", tile.m, wave.m * warp.m, gemm_section(arch).tile.m),
        ("n", tile.n, wave.n * warp.n, gemm_section(arch).tile.n),
        ("k", tile.k, wave.k * warp.k, gemm_section(arch).tile.k),
    ):
        if value % unit:
            rounded = [unit * max(1, value // unit), unit * (value // unit + 1)]
            legal = [item for item in rounded if item in limits.values] or rounded
            yield Violation(
                "gemm.divisibility",
                f"tile.{axis}",
                str(value),
                f"wave.{axis} * warp_tile.{axis} = {unit} must divide the tile: waves compute whole warp tiles",
                f"multiples of {unit}",
                str(min(legal, key=lambda item: abs(item - value))),
            )


def check_pipeline(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """The pipeline must exist on the architecture."""
    if spec.pipeline not in gemm_section(arch).pipelines:
        message = f"{arch.name} has no such pipeline"
        yield _one_of("gemm.pipeline", "pipeline", spec.pipeline, tuple(gemm_section(arch).pipelines), message)


def check_traits(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Scheduler, epilogue, preshuffle, persistence and the like go with a pipeline only as its entry lists."""
    limits = gemm_section(arch).pipelines.get(spec.pipeline)
    if limits is None:
        return
    for field, value, allowed in (
        ("scheduler", spec.scheduler, limits.schedulers),
        ("epilogue", spec.epilogue, limits.epilogues),
        ("preshuffle", spec.preshuffle, (limits.preshuffle,)),
        ("persistent", spec.persistent, limits.persistent),
        ("num_wave_groups", spec.num_wave_groups, limits.num_wave_groups),
        ("k_block_per_cu", spec.k_block_per_cu, limits.k_block_per_cu),
        ("split_k", spec.split_k, limits.split_k),
    ):
        if value not in allowed:
            message = f"pipeline {spec.pipeline} of {arch.name} has no such {field}"
            yield _one_of("gemm.traits", field, str(value), tuple(map(str, allowed)), message)


def check_lds_budget(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """One stage of A and B must fit into LDS, or into half of it where a pipeline keeps two stages."""
    limits = gemm_section(arch).pipelines.get(spec.pipeline)
    if limits is None or limits.lds_bytes is None:
        return
    per_k = spec.tile.m * ELEMENT_BYTES[spec.dtype_a] + spec.tile.n * ELEMENT_BYTES[spec.dtype_b]
    used = per_k * spec.tile.k
    if used > limits.lds_bytes:
        unit = spec.wave.k * spec.warp_tile.k
        fitting = [k for k in gemm_section(arch).tile.k if k % unit == 0 and k * per_k <= limits.lds_bytes]
        twice = " and two of them stay in LDS" if limits.double_buffer else ""
        yield Violation(
            "gemm.lds_budget",
            "tile",
            _text(spec.tile),
            f"one stage of A and B takes {used} bytes{twice}, pipeline {spec.pipeline} has {limits.lds_bytes} for it",
            f"tile.m * bytes(A) * tile.k + tile.n * bytes(B) * tile.k <= {limits.lds_bytes}",
            f"tile.k = {max(fitting)}" if fitting else "a smaller tile.m or tile.n",
        )


RULES = rules(
    "gemm.",
    (
        check_dtypes,
        check_output_dtype,
        check_layout,
        check_tile_limits,
        check_wave_set,
        check_warp_tile_set,
        check_cluster,
        check_divisibility,
        check_pipeline,
        check_traits,
        check_lds_budget,
        check_variants,
    ),
)
"""Every rule that asks nothing of a backend."""


def _member(
    rule: str, field: str, extent: Extent, legal: frozenset[Triple], listed: Iterable[Triple], message: str
) -> Iterator[Violation]:
    triple = (extent.m, extent.n, extent.k)
    if triple not in legal:
        choices = list(listed)
        nearest = min(choices, key=lambda item: _distance(item, triple))
        shown = ", ".join("x".join(map(str, item)) for item in sorted(choices, key=lambda i: _distance(i, triple))[:12])
        more = f" and {len(choices) - 12} more" if len(choices) > 12 else ""
        yield Violation(rule, field, _text(extent), message, shown + more, "x".join(map(str, nearest)))


def _one_of(rule: str, field: str, value: str, allowed: Sequence[str], message: str) -> Violation:
    close = difflib.get_close_matches(value, allowed, n=1, cutoff=0.4)
    return Violation(rule, field, value, message, ", ".join(allowed), close[0] if close else allowed[0])


def _distance(one: Triple, other: Triple) -> float:
    return sum(math.log2(a / b) ** 2 for a, b in zip(one, other, strict=True))


def _text(extent: Extent) -> str:
    return f"{extent.m}x{extent.n}x{extent.k}"
