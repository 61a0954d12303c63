"""The five simulated architectures and the properties in which they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelwright.simulator.errors import ObjectError


@dataclass(frozen=True)
class Target:
    """One architecture.

    ``machine`` is EF_AMDGPU_MACH of the ELF header's flags (LLVM, AMDGPUUsage, "AMDGPU Machine"). ``tables`` names the
    instruction tables that decode it. ``float8`` is the format of its fp8 instructions. ``lds_bytes`` is the most that
    one workgroup may have. Scalar operand encodings 124 and 125 are M0 and reserved on CDNA, null and M0 on RDNA.
    """

    name: str
    machine: int
    tables: Literal["cdna", "rdna3", "rdna4"]
    lanes: int
    float8: Literal["fnuz", "ocp", "none"]
    lds_bytes: int

    @property
    def cdna(self) -> bool:
        """Whether it is of the CDNA family (wave64, MFMA, AGPRs)."""
        return self.tables == "cdna"

    @property
    def m0(self) -> int:
        """Scalar operand number of M0."""
        return 124 if self.cdna else 125

    @property
    def null(self) -> int | None:
        """Scalar operand number of the null register."""
        return None if self.cdna else 124


TARGETS = {
    target.name: target
    for target in (
        Target("gfx90a", 0x3F, "cdna", 64, "none", 65536),
        Target("gfx942", 0x4C, "cdna", 64, "fnuz", 65536),
        Target("gfx950", 0x4F, "cdna", 64, "ocp", 163840),
        Target("gfx1100", 0x41, "rdna3", 32, "none", 65536),
        Target("gfx1201", 0x4E, "rdna4", 32, "ocp", 65536),
    )
}


def target_of(flags: int) -> Target:
    """The target of a code object, from ``e_flags`` of its ELF header. ObjectError if it is not simulated."""
    for target in TARGETS.values():
        if target.machine == flags & 0xFF:
            return target
    raise ObjectError(f"the code object's machine is {flags & 0xFF:#x}; simulated: {', '.join(TARGETS)}")
