"""Limits on what compiled kernels may use, and what to do about a kernel that uses more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.violations import SpecError, closest

Limits = Mapping[str, int]
"""Values by the names of :data:`LIMITS`."""


@dataclass(frozen=True)
class Limit:
    """A bound on one number of a kernel's resources.

    ``keys`` are what the reports of the backends call it (the first that a report has counts), ``backends`` those that
    have it, ``advice`` one thing to do.
    """

    about: str
    keys: tuple[str, ...]
    backends: tuple[str, ...]
    advice: str


_GPU = ("ck_tile", "cutlass")
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
}


class LimitError(RuntimeError):
    """Kernels that compiled to more (or less) than their limits allow; one line for each number."""


def parse_limits(raw: object, arch: Arch) -> dict[str, int]:
    """Limits for kernels of ``arch`` as a target or configuration states them, sorted by name.

    SpecError for a name that does not exist, one that kernels of this architecture have no number for, and a value that
    is no whole number >= 0.
    """
    if not isinstance(raw, Mapping):
        raise SpecError(f'limits must be an object such as {{"max_vgpr_spills": 0}}, not {raw!r}')
    here = [name for name, limit in LIMITS.items() if _known(limit, arch)]
    for name, value in raw.items():
        if name not in LIMITS:
            raise SpecError(f"unknown limit {name!r}{closest(str(name), LIMITS)}; allowed: {', '.join(LIMITS)}")
        if name not in here:
            raise SpecError(f"limit {name!r}: kernels for {arch.name} have no such number; allowed: {', '.join(here)}")
        if type(value) is not int or value < 0:
            raise SpecError(f"limit {name} = {value!r}: allowed: whole numbers from 0")
    return {name: raw[name] for name in sorted(raw)}


def strictest(stated: Iterable[Limits]) -> dict[str, int]:
    """The limits of a kernel that several targets describe."""
    found: dict[str, int] = {}
    for limits in stated:
        for name, value in limits.items():
            pick: Callable[[int, int], int] = min if name.startswith("max_") else max
            found[name] = pick(found[name], value) if name in found else value
    return dict(sorted(found.items()))


def check_limits(kernels: Sequence[tuple[str, Limits, Mapping[str, Any] | None]]) -> None:
    """Hold kernels (name, limits, resources) to their limits; LimitError with every number that is beyond one."""
    lines = [f"{name}: {line}" for name, limits, resources in kernels for line in exceeded(limits, resources or {})]
    if lines:
        raise LimitError("\n".join(lines))


def exceeded(limits: Limits, resources: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each limit that ``resources`` break, or that they have no number for."""
    for name, allowed in sorted(limits.items()):
        limit = LIMITS[name]
        value = next((resources[key] for key in limit.keys if resources.get(key) is not None), None)
        if value is None:
            yield f"{name} = {allowed}, but the compiler's report has no {' or '.join(limit.keys)}; remove the limit"
        elif value > allowed if name.startswith("max_") else value < allowed:
            bound = "at most" if name.startswith("max_") else "at least"
            yield f"{value} {limit.about}; allowed: {bound} {allowed} ({name}); {limit.advice}, or change the limit"


def _known(limit: Limit, arch: Arch) -> bool:
    occupancy = limit.keys[0] in ("occupancy_percent", "workgroups_per_cu")
    return arch.backend in limit.backends and (arch.compute_unit is not None or not occupancy)
