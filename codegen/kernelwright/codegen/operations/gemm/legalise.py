"""Finds the first form of a wanted kernel that is legal on an architecture."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kernelwright.arch import Arch, Triple
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.complete import complete
from kernelwright.codegen.operations.gemm.spec import default_acc_dtype
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import Violation


def members_of(groups: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the forms of each wanted kernel, best first.

    A group has ``members``, optionally ``common`` fields of all members, and ``times``: each member is wanted once with
    the fields of each entry. Fields are those of :mod:`.complete` and three more: ``first_of``, a list of alternatives
    of which the first legal one is taken; ``k_bytes`` with a ``tile`` of [m, n], the bytes of a row of A's tile;
    ``waves``, "many" (the default) or "few", which to try first where no ``wave`` is named.
    """
    for group in groups:
        for member, factor in itertools.product(group["members"], group.get("times", [{}])):
            parts = [group.get("common", {}), member, factor]
            plain = {key: value for part in parts for key, value in part.items() if key != "first_of"}
            # The member's own alternatives matter more than those of its group.
            choices = [part.get("first_of", [{}]) for part in reversed(parts)]
            yield [{**plain, **_merged(choice)} for choice in itertools.product(*choices)]


# Fields that are the same for other waves and warp tiles.
_FIXED = re.compile(
    "dtype|pipeline|scheduler|epilogue|preshuffle|persistent|split_k|cluster|pad|batched|grouped|stream_k|num_d"
)


def first_legal(
    forms: Sequence[Mapping[str, Any]], dtype: DType, layout: str, arch: Arch
) -> tuple[Kernel | None, tuple[Violation, ...]]:
    """Return the first legal kernel among the forms, or None with the violations of the form that came closest.

    Where a form names no ``wave`` or ``warp_tile``, all of the architecture's that divide the tile are tried: many or
    few waves first, as ``waves`` says, and for each the larger warp tiles.
    """
    closest: tuple[Violation, ...] = ()
    for form in forms:
        for fields in _filled(form, dtype, arch):
            spec = build_spec(complete({**fields, "op": "gemm", "dtype": dtype.value, "layout": layout}, arch))
            kernel = Kernel(arch=arch.name, spec=spec)
            violations = validate(kernel, arch)
            if not violations:
                return kernel, ()
            if not closest or len(violations) < len(closest):
                closest = violations
            if any(_FIXED.match(violation.field) for violation in violations):
                break
    return None, closest


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


def _filled(form: Mapping[str, Any], dtype: DType, arch: Arch) -> Iterator[dict[str, Any]]:
    fields = dict(form)
    row = fields.pop("k_bytes", None)
    if row is not None:
        fields["tile"] = [*fields["tile"], row // ELEMENT_BYTES[dtype]]
    tile = fields["tile"]
    tables = gemm_section(arch).preshuffle_warp_tiles if fields.get("preshuffle") else gemm_section(arch).warp_tiles
    known = (
        tables.get(f"{dtype}_{dtype}_{default_acc_dtype(dtype)}")
        or gemm_section(arch).warp_tiles[next(iter(gemm_section(arch).warp_tiles))]
    )
    warp_tiles = [tuple(fields["warp_tile"])] if "warp_tile" in fields else sorted(known, key=_volume, reverse=True)
    few = fields.pop("waves", "many") == "few"
    waves = (
        [tuple(fields["wave"])]
        if "wave" in fields
        else sorted(gemm_section(arch).waves, key=lambda wave: _order(wave, few))
    )
    pairs = [(wave, warp) for wave in waves for warp in warp_tiles]
    fitting = [pair for pair in pairs if _divides(*pair, tile)]
    for wave, warp in fitting or pairs[:1]:  # a pair that does not fit still says why
        yield {**fields, "wave": list(wave), "warp_tile": list(warp)}


def _divides(wave: Sequence[int], warp: Sequence[int], tile: Sequence[int]) -> bool:
    return all(extent % (count * unit) == 0 for extent, count, unit in zip(tile, wave, warp, strict=True))


def _volume(tile: Triple) -> int:
    return tile[0] * tile[1] * tile[2]


def _order(wave: Triple, few: bool) -> tuple[int, int, int]:
    """Sort key: waves along M and N only come first; among equal counts, evenly spread ones."""
    m, n, k = wave
    return k, m * n if few else -m * n, abs(m - n)
