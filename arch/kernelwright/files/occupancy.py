"""How many workgroups of a kernel a compute unit holds at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def occupancy(resources: Mapping[str, int], unit: Mapping[str, Any]) -> dict[str, int]:
    """Return ``workgroups_per_cu`` and ``occupancy_percent``: the share of waves of ``unit`` in use, rounded down.

    ``unit`` has the fields of ``kernelwright.arch.ComputeUnit``; ``resources`` needs ``block_size``, ``wave_size``, and
    ``vgpr`` and ``lds_bytes``, or ``registers`` and ``shared_bytes``. With W waves in a workgroup, the number of
    workgroups is the least of

    * registers: ``min(waves_per_simd, registers // up(vgpr, register_granule), scalar_registers // up(sgpr, …))`` waves
      on each of the SIMDs, over W;
    * LDS: ``lds_bytes // up(lds + lds_reserved, lds_granule)``;
    * ``workgroups``, where the hardware counts them.

    Sources: LLVM 22, AMDGPUBaseInfo.cpp, IsaInfo::getNumWavesPerEUWithNumVGPRs and GCNSubtarget.cpp,
    getOccupancyWithNumSGPRs and getOccupancyWithWorkGroupSizes; CUDA C++ Programming Guide, "Hardware Multithreading",
    and the occupancy calculator's limits by warps, registers and shared memory. RDNA's workgroups share a WGP unless
    they are compiled for one CU alone; ours are not.
    """
    fitting, waves = _fitting(resources, unit), _waves(resources)
    workgroups = min(fitting.values())
    return {
        "workgroups_per_cu": workgroups,
        "occupancy_percent": 100 * workgroups * waves // (unit["simds"] * unit["waves_per_simd"]),
    }


def limiter(resources: Mapping[str, int], unit: Mapping[str, Any]) -> str:
    """The resource that limits occupancy: ``waves``, ``registers``, ``scalar registers``, ``lds`` or ``workgroups``.

    Ties go to the first. Arguments are those of :func:`occupancy`.
    """
    fitting = _fitting(resources, unit)
    return min(fitting, key=lambda name: fitting[name])


def _waves(resources: Mapping[str, int]) -> int:
    return -(-resources["block_size"] // resources["wave_size"])


def _fitting(resources: Mapping[str, int], unit: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of workgroups that each resource has room for."""
    registers = resources["vgpr"] if "vgpr" in resources else resources["registers"]
    lds = resources["lds_bytes"] if "lds_bytes" in resources else resources["shared_bytes"]
    per_simd = {
        "waves": unit["waves_per_simd"],
        "registers": unit["registers"] // _up(max(1, registers), unit["register_granule"]),
    }
    if unit.get("scalar_registers") and resources.get("sgpr"):
        per_simd["scalar registers"] = unit["scalar_registers"] // _up(resources["sgpr"], unit["scalar_granule"])
    fitting = {name: count * unit["simds"] // _waves(resources) for name, count in per_simd.items()}
    taken = _up(lds + unit.get("lds_reserved", 0), unit["lds_granule"])
    if taken:
        fitting["lds"] = unit["lds_bytes"] // taken
    if unit.get("workgroups"):
        fitting["workgroups"] = unit["workgroups"]
    return fitting


def _up(value: int, granule: int) -> int:
    return -(-value // granule) * granule
