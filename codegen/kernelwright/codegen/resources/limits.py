"""Limits on the resources of compiled kernels, and advice for a kernel that exceeds them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.violations import SpecError, closest
from kernelwright.files.counts.instruction_set import names

Limits = Mapping[str, float]
"""Limits by the names of :data:`LIMITS`."""


@dataclass(frozen=True)
class Limit:
    """A bound on one number of a kernel's resources.

    ``keys`` are its names in the reports of the backends (the first that a report has counts), ``backends`` those that
    have it, ``advice`` one thing to do. ``missing``: why a kernel may lack the number. ``fraction``: values need not be
    whole.
    """

    about: str
    keys: tuple[str, ...]
    backends: tuple[str, ...]
    advice: str
    missing: str = "the compiler's report has no {keys}"
    fraction: bool = False


_GPU = ("ck_tile", "cutlass")
_NO_LOOP = "the kernel has no main loop of matrix instructions, or one whose clocks no source states"
_SMALLER = "choose a smaller tile, or more waves"
LIMITS: Mapping[str, Limit] = {
    "max_registers": Limit(
        "vector registers of a lane (thread)",
        ("vgpr", "registers"),
        (*_GPU, "cpu"),
        "choose a smaller warp_tile or tile",
    ),
    "max_vgpr_spills": Limit(
        "vector registers spilled to memory", ("vgpr_spills", "spill_instructions"), _GPU, _SMALLER
    ),
    "max_sgpr_spills": Limit("scalar registers spilled", ("sgpr_spills",), ("ck_tile",), "choose another pipeline"),
    "max_scratch_bytes": Limit(
        "bytes of memory that each lane keeps for itself (on CPU: the largest frame of a function)",
        ("scratch_bytes", "stack_bytes"),
        (*_GPU, "cpu"),
        "choose a smaller tile or warp_tile, or more waves",
    ),
    "max_lds_bytes": Limit(
        "bytes of LDS (shared memory) of a workgroup", ("lds_bytes", "shared_bytes"), _GPU, "choose a smaller tile.k"
    ),
    "max_code_bytes": Limit("bytes of code", ("code_bytes",), (*_GPU, "cpu"), "choose a smaller tile or warp_tile"),
    "min_occupancy": Limit(
        "percent of the waves that a compute unit has room for", ("occupancy_percent",), _GPU, _SMALLER
    ),
    "min_workgroups_per_cu": Limit(
        "workgroups that a compute unit holds at once", ("workgroups_per_cu",), _GPU, "choose a smaller tile"
    ),
    "min_matrix_instructions": Limit(
        "matrix instructions (vector multiply-adds on CPU) in the code",
        ("matrix_instructions",),
        (*_GPU, "cpu"),
        "choose a warp_tile that the architecture multiplies in one instruction",
    ),
    "max_lds_conflicts": Limit(
        "clocks that LDS bank conflicts add to a turn of the main loop, for each wave",
        ("lds_conflicts",),
        ("ck_tile",),
        "choose a tile.k that fills rows of 128 bytes, or another pipeline or layout",
        "the kernel has no main loop of matrix instructions, or addresses that only a launch knows",
    ),
    "max_valu_per_matrix_cycle": Limit(
        "clocks of the vector unit for each clock of the matrix core, in the main loop",
        ("valu_per_matrix_cycle",),
        ("ck_tile",),
        "choose a larger tile",
        _NO_LOOP,
        fraction=True,
    ),
    "max_lds_per_matrix_cycle": Limit(
        "clocks of the LDS, bank conflicts among them, for each clock of the matrix core, in the main loop",
        ("lds_per_matrix_cycle",),
        ("ck_tile",),
        "choose a larger tile, or a tile.k that fills rows of 128 bytes",
        _NO_LOOP,
        fraction=True,
    ),
    "max_instructions_outside": Limit(
        "instructions outside of the main loop",
        ("instructions_outside",),
        ("ck_tile",),
        "choose a smaller tile",
    ),
}


class LimitError(RuntimeError):
    """Kernels that compiled to more (or less) than their limits allow; one line for each number."""


def read_limit(text: str) -> tuple[str, float]:
    """Parse ``max_vgpr_spills=0`` or ``max_valu_per_matrix_cycle=0.8`` as a name and a number; ValueError otherwise."""
    name, _, value = text.partition("=")
    if not re.fullmatch(r"\d{1,15}(\.\d{1,15})?", value, re.ASCII):
        raise ValueError(f"{text!r}: write a name and a number, such as max_vgpr_spills=0")
    return name, float(value) if "." in value else int(value)


def parse_limits(raw: object, arch: Arch) -> dict[str, float]:
    """Return the limits for kernels of ``arch`` that a target or configuration states, sorted by name.

    SpecError for an unknown name, one that kernels of this architecture have no number for, and a value that is not a
    number >= 0, or not a whole one where the limit counts something.
    """
    if not isinstance(raw, Mapping):
        raise SpecError(f'limits must be an object such as {{"max_vgpr_spills": 0}}, not {raw!r}')
    here = [name for name, limit in LIMITS.items() if _known(limit, arch)]
    for name, value in raw.items():
        if name not in LIMITS:
            raise SpecError(f"unknown limit {name!r}{closest(str(name), LIMITS)}; allowed: {', '.join(LIMITS)}")
        if name not in here:
            raise SpecError(f"limit {name!r}: kernels for {arch.name} have no such number; allowed: {', '.join(here)}")
        fraction = LIMITS[name].fraction
        if type(value) not in ((int, float) if fraction else (int,)) or not 0 <= value < math.inf:
            raise SpecError(f"limit {name} = {value!r}: allowed: {'' if fraction else 'whole '}numbers from 0")
    return {name: raw[name] for name in sorted(raw)}


def strictest(stated: Iterable[Limits]) -> dict[str, float]:
    """Return the strictest limits of a kernel that several targets describe."""
    merged: dict[str, float] = {}
    for limits in stated:
        for name, value in limits.items():
            pick: Callable[[float, float], float] = min if name.startswith("max_") else max
            merged[name] = pick(merged[name], value) if name in merged else value
    return dict(sorted(merged.items()))


def check_limits(kernels: Sequence[tuple[str, Limits, Mapping[str, Any] | None]]) -> None:
    """Check kernels (name, limits, resources) against their limits; LimitError lists every number that exceeds one."""
    lines = [f"{name}: {line}" for name, limits, resources in kernels for line in exceeded(limits, resources or {})]
    if lines:
        raise LimitError("\n".join(lines))


def exceeded(limits: Limits, resources: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each limit that ``resources`` break or have no number for."""
    known = numbers(resources)
    for name, allowed in sorted(limits.items()):
        limit = LIMITS[name]
        value = next((known[key] for key in limit.keys if known.get(key) is not None), None)
        if value is None:
            why = limit.missing.format(keys=" or ".join(limit.keys))
            yield f"{name} = {allowed}, but {why}; remove the limit"
        elif value > allowed if name.startswith("max_") else value < allowed:
            bound = "at most" if name.startswith("max_") else "at least"
            yield f"{value} {limit.about}; allowed: {bound} {allowed} ({name}); {limit.advice}, or change the limit"


def numbers(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that limits apply to: resources, and those of the main loop if it was counted."""
    return {**resources, **_counted(resources.get("counts") or {})}


def _counted(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "lds_conflicts": (counts.get("loop") or {}).get("conflict_cycles"),
        "instructions_outside": (counts.get("outside") or {}).get("instructions"),
        **{key: counts.get(key) for key in ("valu_per_matrix_cycle", "lds_per_matrix_cycle")},
    }


def _known(limit: Limit, arch: Arch) -> bool:
    occupancy = limit.keys[0] in ("occupancy_percent", "workgroups_per_cu")
    counted = limit.keys[0] in _counted({})
    return (
        arch.backend in limit.backends
        and (arch.compute_unit is not None or not (occupancy or counted))
        and (not counted or (arch.amdgpu is not None and arch.amdgpu.instructions in names()))
    )
