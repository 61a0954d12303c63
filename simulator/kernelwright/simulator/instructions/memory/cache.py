"""Cache control and prefetches, which do nothing: memory is coherent here."""

from __future__ import annotations

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.wave import Wave

_NAMES = (
    *("buffer_wbl2", "buffer_inv", "buffer_gl0_inv", "buffer_gl1_inv", "global_inv", "global_wb", "global_wbinv"),
    *("s_dcache_inv", "s_dcache_wb", "s_gl1_inv"),
    *("s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data", "s_prefetch_data_pc_rel"),
    "s_buffer_prefetch_data",
)


def _nothing(wave: Wave) -> None:
    pass


@semantics(*_NAMES, kind="other")
def nothing(instruction: Instruction, target: Target) -> Step:
    """No effect."""
    return _nothing
