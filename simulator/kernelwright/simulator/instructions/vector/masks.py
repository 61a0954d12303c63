"""Lane masks in scalar registers, as vector instructions read and write them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.registers import VCC, to_mask
from kernelwright.simulator.machine.wave import Wave

Mask = NDArray[np.bool_]


@lru_cache(maxsize=4096)
def lane_mask(bits: int, lanes: int) -> Mask:
    """One bool per lane; the arrays are shared, so they are read-only."""
    mask = to_mask(bits, lanes)
    mask.flags.writeable = False
    return mask


def mask_source(operand: Operand | None, target: Target) -> Callable[[Wave], int]:
    """Return a reader of a lane mask as an int, one bit per lane; without an operand, of VCC."""
    everywhere = (1 << target.lanes) - 1
    if operand is None or (operand.file is File.SGPR and operand.index == VCC):
        if target.lanes == 64:
            return lambda wave: wave.s[VCC] | wave.s[VCC + 1] << 32
        return lambda wave: wave.s[VCC]
    if operand.constant and not isinstance(operand.value, float):
        bits = operand.value & everywhere
        return lambda wave: bits
    if operand.file is File.SGPR:
        index = operand.index
        return lambda wave: wave.read_mask(index)
    raise Unmodelled(f"a lane mask in {operand}")


def mask_destination(instruction: Instruction) -> Callable[[Wave, int], None]:
    """Return a writer of carries and comparisons: to ``sdst``, a comparison's ``vdst``, or VCC."""
    operand = instruction.operands.get("sdst")
    if "SDWA" in instruction.encoding and operand is not None and not instruction.get("sd"):
        operand = None
    if operand is None and instruction.encoding.startswith("VOP3"):
        operand = instruction.operands["vdst"]
    index = VCC if operand is None else operand.index
    if operand is not None and operand.file is not File.SGPR:
        raise Unmodelled(f"{instruction.name}: a lane mask in {operand}")
    return lambda wave, bits: wave.write_mask(index, bits)
