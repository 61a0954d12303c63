"""How many waves of a kernel a SIMD can hold given its LDS: ``__launch_bounds__`` cannot ask for more."""

from __future__ import annotations

from kernelwright.arch import Arch

_SIMDS = 4  # SIMDs of a compute unit, or of the two that share LDS on RDNA


def most_waves_per_simd(arch: Arch, lds_bytes: int, waves: int) -> int:
    """Return the waves on the fullest SIMD when as many workgroups run as fit.

    A workgroup has ``waves`` waves and ``lds_bytes`` of LDS. The second argument of ``__launch_bounds__`` is the number
    of waves that each SIMD must hold, and the compiler fails where LDS forbids it (LLVM 22, GCNSubtarget.cpp,
    getOccupancyWithWorkGroupSizes).
    """
    unit = arch.compute_unit
    room, simds = (unit.lds_bytes, unit.simds) if unit else (arch.lds_bytes, _SIMDS)
    return -(-(room // max(1, lds_bytes)) * waves // simds)
