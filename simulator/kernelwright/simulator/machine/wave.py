"""One wave: its registers and everything it can reach: memory, LDS, scratch, the barrier, its program's labels."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.simulator.code.target import Target
from kernelwright.simulator.machine.barrier import Barrier
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.memory import Memory
from kernelwright.simulator.machine.registers import Registers
from kernelwright.simulator.machine.scratch import Scratch


class Wave(Registers):
    """One wave. Steps take it, change its registers and access every memory through it.

    ``scratch`` is None for a kernel without scratch, ``barrier`` None outside a workgroup.
    """

    __slots__ = ("barrier", "code_address", "labels", "lds", "memory", "scratch")

    def __init__(self, target: Target, lds: Lds, memory: Memory, scratch: Scratch | None = None) -> None:
        super().__init__(target)
        self.lds = lds
        self.memory = memory
        self.scratch = scratch
        self.barrier: Barrier | None = None  # of the workgroup
        self.labels: Mapping[int, int] = {}  # text offset → index in the program
        self.code_address = 0  # address of the text in memory, for instructions that read their own address

    def jump(self, pc: int) -> None:
        """Continue at text offset ``pc``. Trap if no instruction of a function starts there."""
        self.pc = self.labels[pc]
