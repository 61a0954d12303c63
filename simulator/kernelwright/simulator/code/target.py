"""The simulated architectures, including the user's, and the properties in which they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelwright.files import arch_files
from kernelwright.files.arch_files import ArchFileError, DeviceFacts
from kernelwright.simulator.errors import ObjectError, SimulatorError

Tables = Literal["cdna", "rdna3", "rdna4"]
_INSTRUCTIONS: dict[str, tuple[Tables, bool]] = {
    "gfx90a": ("cdna", False),
    "gfx942": ("cdna", True),
    "gfx950": ("cdna", True),
    "gfx1100": ("rdna3", False),
    "gfx1201": ("rdna4", True),
}
"""The tables that decode each instruction set, and whether it has fp8 instructions."""


@dataclass(frozen=True)
class Target:
    """One architecture.

    ``machine`` is EF_AMDGPU_MACH of the ELF header's flags (LLVM, AMDGPUUsage, "AMDGPU Machine"), ``hip_name`` its name
    in the HIP runtime. ``instructions`` is its instruction set, ``tables`` names the tables that decode it. ``float8``
    is the format of its fp8 instructions. ``lds_bytes`` is the maximum per workgroup. Scalar operand encodings 124 and
    125 are M0 and reserved on CDNA, null and M0 on RDNA.
    """

    name: str
    hip_name: str
    machine: int
    instructions: str
    tables: Tables
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


def _target(one: DeviceFacts) -> Target:
    if one.machine is None or one.instructions not in _INSTRUCTIONS:
        known = ", ".join(_INSTRUCTIONS)
        raise SimulatorError(f"arch {one.name}: amdgpu.instructions is {one.instructions!r}; simulated: {known}")
    tables, has_float8 = _INSTRUCTIONS[one.instructions]
    float8: Literal["fnuz", "ocp", "none"] = "none"
    if has_float8:
        float8 = "fnuz" if one.fp8_format == "fnuz" else "ocp"
    return Target(
        one.name, one.target, one.machine, one.instructions, tables, one.wave_size, float8, one.lds_bytes
    )  # fmt: skip


def _targets() -> dict[str, Target]:
    try:
        return {one.name: _target(one) for one in arch_files.simulated()}
    except ArchFileError as error:
        raise SimulatorError(str(error)) from None


TARGETS = _targets()
"""Targets by the names of architecture files, in the order of the stand-in runtime's devices."""


def target_of(flags: int, name: str | None = None) -> Target:
    """The target of a code object, from ``e_flags`` of its ELF header. Raises ObjectError if it is not simulated.

    ``name`` selects the architecture if several have the same machine.
    """
    for target in sorted(TARGETS.values(), key=lambda one: one.name != name):
        if target.machine == flags & 0xFF:
            return target
    raise ObjectError(f"the code object's machine is {flags & 0xFF:#x}; simulated: {', '.join(TARGETS)}")
