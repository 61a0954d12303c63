"""How many waves of a kernel LDS lets a SIMD hold: more than that cannot be asked of ``__launch_bounds__``."""

from __future__ import annotations

from kernelwright.arch import Arch

_SIMDS = 4  # of a compute unit, or of the two that share LDS on RDNA


def most_waves_per_simd(arch: Arch, lds_bytes: int, waves: int) -> int:
    """Waves on the fullest SIMD of as many workgroups of ``waves`` waves and ``lds_bytes`` of LDS as fit.

    The second argument of ``__launch_bounds__`` is the number of waves that each SIMD must hold, and the compiler fails
    where LDS forbids it (LLVM 22, GCNSubtarget.cpp, getOccupancyWithWorkGroupSizes).
    """
    unit = arch.compute_unit
    room, simds = (unit.lds_bytes, unit.simds) if unit else (arch.lds_bytes, _SIMDS)
    return -(-(room // max(1, lds_bytes)) * waves // simds)
