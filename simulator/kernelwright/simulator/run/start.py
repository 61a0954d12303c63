"""The initial state of a kernel's waves (LLVM, AMDGPUUsage, "Initial Kernel Execution State")."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from kernelwright.simulator.code.arguments import Arguments
from kernelwright.simulator.code.descriptor import KernelDescriptor
from kernelwright.simulator.code.object_file import CodeObject
from kernelwright.simulator.errors import ObjectError, SimulatorError
from kernelwright.simulator.machine.barrier import Barrier
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.memory import Memory
from kernelwright.simulator.machine.scratch import BUFFER, Scratch
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import POISON
from kernelwright.simulator.run.program import Program

Index = tuple[int, int, int]

# Simulated addresses that Linux does not use for processes on x86-64 and AArch64. They are below 2^47 because gfx12's
# code sign-extends the 48 bits that s_getpc returns.
CODE_ADDRESS = 0x3000_0000_0000
ARGUMENT_ADDRESS = 0x3800_0000_0000
_TTMP7, _TTMP9 = 115, 117
_HANDLED = {"kernarg_segment_ptr", "private_segment_buffer", "flat_scratch_init"}


@dataclass(frozen=True)
class Start:
    """Initial state of a launch's waves. ``block`` is in work-items; ``arguments`` includes the hidden arguments."""

    code: CodeObject
    kernel: KernelDescriptor
    block: Index
    arguments: bytes
    lds_bytes: int

    @property
    def work_items(self) -> int:
        """Work-items of one workgroup."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def waves(self) -> int:
        """Waves of one workgroup."""
        return -(-self.work_items // self.code.target.lanes)

    def make_waves(self, program: Program, memory: Memory) -> list[Wave]:
        """The waves of one workgroup, which :meth:`set_up` reuses for each. ObjectError for unmodelled user SGPRs."""
        unknown = self.kernel.user_sgprs.keys() - _HANDLED
        if unknown:
            raise ObjectError(f"kernel {self.kernel.name} asks for {', '.join(sorted(unknown))}; that is not modelled")
        waves = []
        for index in range(self.waves):
            scratch = Scratch(self.kernel.scratch_bytes, self.code.target.lanes) if self.kernel.scratch_bytes else None
            wave = Wave(self.code.target, Lds(0), memory, scratch)
            wave.index = index
            wave.labels = program.labels
            wave.code_address = CODE_ADDRESS + self.code.text_start
            waves.append(wave)
        return waves

    def set_up(self, waves: list[Wave], workgroup: Index, entry: int, lds: Lds) -> None:
        """Put the waves into the initial state of ``workgroup``."""
        barrier = Barrier(len(waves))
        for wave in waves:
            wave.reset()
            wave.pc, wave.workgroup, wave.lds, wave.barrier = entry, workgroup, lds, barrier
            wave.mode = self.kernel.mode
            if wave.scratch is not None:
                wave.scratch.words.fill(POISON)
            self._set_vectors(wave)
            self._set_scalars(wave, workgroup)

    def _set_vectors(self, wave: Wave) -> None:
        flat = wave.index * wave.lanes + np.arange(wave.lanes, dtype=np.uint32)
        wave.set_exec((1 << min(wave.lanes, self.work_items - wave.index * wave.lanes)) - 1)
        x, y = np.uint32(self.block[0]), np.uint32(self.block[1])
        ids = [flat % x, flat // x % y, flat // (x * y)][: self.kernel.workitem_ids]
        packed = np.zeros_like(flat)
        for position, one in enumerate(ids):
            packed |= one << np.uint32(10 * position)
        np.copyto(wave.u[0], packed, where=wave.mask)

    def _set_scalars(self, wave: Wave, workgroup: Index) -> None:
        at = self.kernel.user_sgprs.get("kernarg_segment_ptr")
        if at is not None:
            wave.write_scalar64(at, ARGUMENT_ADDRESS)
        for name, words in (("private_segment_buffer", BUFFER), ("flat_scratch_init", (0, 0))):
            at = self.kernel.user_sgprs.get(name)
            if at is not None:
                wave.s[at : at + len(words)] = words
        offset, count = self.kernel.preload
        preloaded = self.arguments[4 * offset : 4 * (offset + count)].ljust(4 * count, b"\0")
        first = self.kernel.user_sgpr_count - count
        wave.s[first : first + count] = struct.unpack(f"<{count}I", preloaded)
        if wave.target.tables == "rdna4":
            wave.s[_TTMP9] = workgroup[0]
            wave.s[_TTMP7] = workgroup[1] | workgroup[2] << 16
            return
        at = self.kernel.user_sgpr_count
        for enabled, one in zip(self.kernel.workgroup_ids, workgroup, strict=True):
            if enabled:
                wave.s[at] = one
                at += 1
        if self.kernel.private_segment and wave.target.instructions == "gfx90a":  # offset of the wave in all scratch
            wave.s[at + self.kernel.workgroup_info] = 0


def kernel_arguments(
    code: CodeObject, kernel: KernelDescriptor, given: bytes, grid: Index, block: Index, dynamic_lds: int
) -> bytes:
    """The kernel's argument segment: the given bytes, then the hidden arguments that its metadata lists.

    A kernel without metadata has explicit arguments only. Hidden arguments that are not modelled (queues, the heap,
    buffers of printf and host calls) are 0. Raises SimulatorError if not all explicit arguments were given.
    """
    layout = code.arguments.get(kernel.name, Arguments(kernel.kernarg_bytes, ()))
    if len(given) < layout.explicit_bytes:
        hidden = f" and {len(layout.hidden)} hidden ones, which are not given" if layout.hidden else ""
        raise SimulatorError(
            f"kernel {kernel.name} takes {layout.explicit_bytes} bytes of arguments{hidden}; {len(given)} given"
        )
    if not layout.hidden:
        return given.ljust(kernel.kernarg_bytes, b"\0")
    beyond_x = sum(groups * items > 1 for groups, items in zip(grid[1:], block[1:], strict=True))
    values = {"grid_dims": 1 + beyond_x, "dynamic_lds_size": dynamic_lds}
    for axis, letter in enumerate("xyz"):
        values |= {f"block_count_{letter}": grid[axis], f"group_size_{letter}": block[axis]}
    segment = bytearray(given[: layout.explicit_bytes].ljust(kernel.kernarg_bytes, b"\0"))
    for kind, offset, nbytes in layout.hidden:
        segment[offset : offset + nbytes] = values.get(kind, 0).to_bytes(nbytes, "little")
    return bytes(segment)
