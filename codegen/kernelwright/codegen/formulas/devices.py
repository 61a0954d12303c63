"""Devices of architectures, as formulas take them."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.machine import Device

CPU_CORES = 8
"""Cores assumed for the machine of a CPU library: CPU architectures state no number."""


def times_of(arch: Arch) -> str:
    """Return the enumerator of kw_times for the formulas that an architecture file names."""
    return f"KW_TIMES_{arch.time_model.upper()}"


def device_of(arch: Arch, dtype: str, units: int) -> Device:
    """Return the device with ``units`` cores or compute units of an architecture, for operands of a type."""
    rates = arch.flops_per_clock_per_cu
    rate = rates.get(dtype) or 1.0
    clocks, moved = (arch.clock_ghz or 1.0) * 1e3, (arch.memory_gbytes_per_s or 1.0) * 1e3
    return Device(units, clocks, moved, rate, rates.get("fp32", 0.0), arch.lds_bytes)
