"""How tiles, waves and warp tiles of attention kernels must fit into each other, on every backend."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.constraints.report import extent_text, wrong
from kernelwright.codegen.operations.attention.kinds import Family
from kernelwright.codegen.operations.attention.spec import AttentionSpec, BwdTile, Stages, Tile
from kernelwright.codegen.violations import Violation

TILED = frozenset({Family.FWD, Family.FWD_SPLITKV, Family.FWD_PAGEDKV, Family.BATCH_PREFILL})
"""Families whose tile consists of GEMM 0 and GEMM 1."""

_Triple = tuple[int, int, int]


def tile_text(tile: Tile | BwdTile | Stages) -> str:
    """Return all extents of a model as text, ``128x64x32x…``."""
    return extent_text(getattr(tile, name) for name in type(tile).model_fields)


def stages(extents: Stages) -> tuple[_Triple, _Triple, _Triple]:
    """Return the extents of each stage along M, N and K."""
    one = extents
    return (one.m0, one.n0, one.k0), (one.m1, one.n1, one.k1), (one.m2, one.n2, one.k2)


def check_tile_limits(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Queries, keys and the step along the head dimension of a tile lie within the architecture's limits."""
    if spec.family not in TILED:
        return
    limits = attention_section(arch).tile
    for axis, value, allowed in (
        ("m0", spec.tile.m0, limits.m0),
        ("n0", spec.tile.n0, limits.n0),
        ("k0", spec.tile.k0, limits.k0),
    ):
        if value not in allowed.values:
            why = f"not a tile extent of {arch.name}"
            yield from wrong("attention.tile_limits", f"tile.{axis}", value, why, allowed, allowed.nearest(value))


def check_written_tile(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Where an architecture says so, only the tiles of its table were proven."""
    section = attention_section(arch)
    if not section.written_tiles_only:
        return
    rows = section.rows(spec.family, spec.dtype, (spec.hdim_q, spec.hdim_v))
    made = (spec.tile, spec.bwd_tile, spec.wave, spec.warp_tile)
    if rows and not any(tuple(row.extents.values()) == made for row in rows):
        field = "bwd_tile" if spec.family is Family.BWD_DQ_DK_DV else "tile"
        allowed = ", ".join(tile_text(row.extents[field]) for row in rows)  # type: ignore[arg-type]
        nearest = tile_text(rows[0].extents[field])  # type: ignore[arg-type]
        why = f"on {arch.name} only these tiles, with their waves and warp tiles, were proven"
        value = tile_text(getattr(spec, field))
        yield from wrong("attention.written_tile", f"{field}, wave, warp_tile", value, why, allowed, nearest)


def check_warp_tile(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A warp tile is what one matrix instruction (or short run of them) multiplies, so few exist per data type."""
    section = attention_section(arch)
    known = section.warp_tile_sets.get(spec.dtype)
    if known is None:
        return
    for index, triple in enumerate(stages(spec.warp_tile)):
        if any(triple) and triple not in known:
            listed = sorted(known, key=lambda item: sum(abs(a - b) for a, b in zip(item, triple, strict=True)))
            why = f"stage {index}: {arch.name} has no such matrix instruction for {spec.dtype}"
            allowed = ", ".join(map(extent_text, listed[:8]))
            yield from wrong(
                "attention.warp_tile", "warp_tile", extent_text(triple), why, allowed, extent_text(listed[0])
            )


def check_whole_warp_tiles(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Waves times warp tile divide the tile in every stage: a wave computes whole warp tiles."""
    field = "bwd_tile" if spec.family is Family.BWD_DQ_DK_DV else "tile"
    for axis, value, unit in _units(spec):
        if unit and value % unit:
            why = f"waves compute {unit} at a time there, in whole warp tiles"
            nearest = unit * max(1, round(value / unit))
            yield from wrong(
                "attention.whole_warp_tiles",
                f"{field}.{axis}, wave, warp_tile",
                value,
                why,
                f"multiples of {unit}",
                nearest,
            )


def _units(spec: AttentionSpec) -> Iterator[tuple[str, int, int]]:
    """Yield extents of the tile, and what must divide each."""
    waves, warps = stages(spec.wave), stages(spec.warp_tile)
    (m0, n0, _), (m1, n1, _), (m2, n2, _) = (
        tuple(count * unit for count, unit in zip(wave, warp, strict=True))
        for wave, warp in zip(waves, warps, strict=True)
    )
    k0, k1, k2 = (warp[2] for warp in warps)
    if spec.family in TILED:
        tile = spec.tile
        yield from (("m0", tile.m0, m0), ("n0", tile.n0, n0), ("k0", tile.k0, k0))
        yield from (("m0", tile.m0, m1), ("n1", tile.n1, n1), ("k1", tile.k1, k1))
    elif spec.family is Family.BWD_DQ_DK_DV:
        back = spec.bwd_tile
        yield from (("m0", back.m0, m0), ("n0", back.n0, n0), ("k0", back.k0, k0), ("k2", back.k2, k0))
        yield from (("n0", back.n0, m1), ("hdim_v", back.hdim_v, n1), ("k1", back.k1, k1), ("k3", back.k3, k1))
        yield from (("m0", back.m0, m2), ("hdim_q", back.hdim_q, n2), ("k4", back.k4, k2))


def check_tile_hdim(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A tile holds whole rows: its head dimensions are at least those of Q and V, in whole steps."""
    if spec.family in TILED:
        tile = spec.tile
        yield from _at_least("tile.k0max", tile.k0max, spec.hdim_q)
        yield from _at_least("tile.n1", tile.n1, spec.hdim_v)
        if tile.k0 and (tile.k0 > spec.hdim_q or tile.k0max % tile.k0):
            steps = [item for item in range(8, min(spec.hdim_q, tile.k0max) + 1, 8) if tile.k0max % item == 0]
            why = "whole steps of k0 make up k0max, and none is longer than a row (tile_fmha_shape.hpp)"
            nearest = min(steps or [tile.k0max], key=lambda item: abs(item - tile.k0))
            allowed = ", ".join(map(str, steps))
            yield from wrong("attention.tile_hdim", "tile.k0", tile.k0, why, allowed, nearest)
        if tile.k1 and tile.n0 % tile.k1:
            why = "whole steps of k1 make up the keys of a tile"
            yield from wrong("attention.tile_hdim", "tile.k1", tile.k1, why, f"divisors of {tile.n0}", tile.n0)
    elif spec.family is Family.BWD_DQ_DK_DV:
        back = spec.bwd_tile
        yield from _at_least("bwd_tile.hdim_q", back.hdim_q, spec.hdim_q)
        yield from _at_least("bwd_tile.hdim_v", back.hdim_v, spec.hdim_v)
        for axis, step, whole in (
            ("k0", back.k0, back.hdim_q),
            ("k1", back.k1, back.m0),
            ("k2", back.k2, back.hdim_v),
            ("k3", back.k3, back.m0),
            ("k4", back.k4, back.n0),
        ):
            if step and whole % step:
                why = "whole steps make up the summed extent"
                yield from wrong("attention.tile_hdim", f"bwd_tile.{axis}", step, why, f"divisors of {whole}", whole)


def _at_least(field: str, value: int, hdim: int) -> Iterator[Violation]:
    if value < hdim:
        yield from wrong("attention.tile_hdim", field, value, "a tile holds whole rows", f"{hdim} or more", hdim)


CHECKS = (check_tile_limits, check_written_tile, check_warp_tile, check_whole_warp_tiles, check_tile_hdim)
"""Every check of this module, in the order in which violations are listed."""
