"""Debugging of running kernels: traces, breakpoints, registers at a breakpoint or at a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.checks.effects import effects
from kernelwright.simulator.checks.state import vector_name
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import SimulatorError, Trap
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.machine.registers import VCC, VGPRS
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import POISON

Words = NDArray[np.uint32]
# Interpretations of a register.
_KINDS: Mapping[str, Any] = {
    **{"u32": np.uint32, "i32": np.int32, "f32": np.float32},
    **{"u16": np.uint16, "i16": np.int16, "f16": np.float16, "bf16": ml_dtypes.bfloat16},
}
_SHOWN = 4  # lanes of a vector register in a line of a trace
_DUMPED = 8  # lanes of a vector register in a dump


@dataclass(frozen=True)
class Event:
    """One executed instruction. ``changed``: register name → new value, an int or one uint32 per lane.

    ``fault`` is the reason if the instruction faulted; ``changed`` is empty then.
    """

    workgroup: tuple[int, int, int]
    wave: int
    pc: int
    instruction: str
    changed: Mapping[str, int | Words]
    fault: str = ""

    def __str__(self) -> str:
        """One line of a trace."""
        where = f"{','.join(map(str, self.workgroup))} w{self.wave} {self.pc:6x}"
        values = " ".join(f"{name}={_short(value)}" for name, value in self.changed.items())
        return f"{where}  {self.instruction:<60}  {self.fault or values}".rstrip()


class Stop:
    """A wave stopped before the instruction at ``pc`` (a byte offset in the text), valid while the callback runs.

    The methods read registers and memory; ``state`` is the wave itself, through which they can be changed.
    """

    def __init__(self, wave: Wave, instruction: Instruction, reason: str = "") -> None:
        self.state, self.pc, self.instruction, self.reason = wave, instruction.pc, str(instruction), reason
        self.workgroup, self.wave = wave.workgroup, wave.index

    def v(self, index: int, kind: str = "u32") -> NDArray[Any]:
        """VGPR ``index`` as values of ``kind``, one per lane (lanes,), or two if they have 16 bits (lanes, 2).

        u32, i32 and f32 fill a register; f16, bf16, i16 and u16 halve it, the lower half first. bf16 is ml_dtypes'
        type. Raises SimulatorError for any other kind.
        """
        return self._row(index, kind)

    def a(self, index: int, kind: str = "u32") -> NDArray[Any]:
        """AGPR ``index``; see :meth:`v`."""
        return self._row(VGPRS + index, kind)

    def s(self, index: int) -> int:
        """Scalar operand ``index``: an SGPR below 106, VCC at 106, M0 at 124 (CDNA) or 125, EXEC at 126."""
        return self.state.read_scalar(index)

    @property
    def exec(self) -> int:
        """The mask of active lanes, lane 0 in bit 0."""
        return self.state.exec

    def lds(self, address: int, nbytes: int) -> bytes:
        """Bytes of the workgroup's LDS."""
        content: bytes = self.state.lds.bytes[address : address + nbytes].tobytes()
        return content

    def memory(self, address: int, nbytes: int) -> bytes:
        """``nbytes`` bytes of registered memory. Raises SimulatorError if no buffer holds all of them."""
        region = self.state.memory.find(address, nbytes)
        if region is None:
            raise SimulatorError(f"no registered memory holds {nbytes} bytes at {address:#x}")
        content: bytes = region.data[address - region.address :][:nbytes].tobytes()
        return content

    def dump(self) -> str:
        """All registers that were written, one or more per line; the first 8 lanes of vector registers."""
        wave = self.state
        lines = [
            f"workgroup {self.workgroup}, wave {self.wave}, pc {self.pc:#x}: {self.instruction}",
            *([self.reason] if self.reason else []),
            f"exec={wave.exec:#x} vcc={wave.read_mask(VCC):#x} scc={wave.scc} mode={wave.mode:#x}",
        ]
        scalars = [f"s{n}={wave.s[n]:#x}" for n in range(VCC) if wave.s[n] != POISON]
        lines += ["  ".join(scalars[at : at + 8]) for at in range(0, len(scalars), 8)]
        for row in np.flatnonzero((wave.v[: 2 * VGPRS] != POISON).any(axis=1)).tolist():
            values = " ".join(f"{word:08x}" for word in wave.v[row, :_DUMPED].tolist())
            lines.append(f"{vector_name(row):>5}: {values} …")
        return "\n".join(lines)

    def _row(self, row: int, kind: str) -> NDArray[Any]:
        if kind not in _KINDS:
            raise SimulatorError(f"a register seen as {kind!r}; allowed: {', '.join(_KINDS)}")
        lanes: NDArray[Any] = self.state.v[row].copy().view(_KINDS[kind])
        return lanes if lanes.itemsize == 4 else lanes.reshape(-1, 2)


@dataclass(frozen=True)
class Debug:
    """Callbacks of a launch, which then runs in one process.

    ``trace`` is called after every instruction, ``breakpoints`` (pc → callback) before one, ``fault`` on a fault.
    ``workgroup`` and ``wave`` restrict all of them to one workgroup and one wave; None means all.
    """

    trace: Callable[[Event], None] | None = None
    breakpoints: Mapping[int, Callable[[Stop], None]] = field(default_factory=dict)
    fault: Callable[[Stop], None] | None = None
    workgroup: tuple[int, int, int] | None = None
    wave: int | None = None

    def watches(self, wave: Wave) -> bool:
        """Whether this wave triggers callbacks."""
        return self.workgroup in (None, wave.workgroup) and self.wave in (None, wave.index)


def print_to(file: TextIO) -> Callable[[Event], None]:
    """A ``trace`` callback that writes one line per instruction to ``file``."""
    return lambda event: print(event, file=file)


def watch(instruction: Instruction, step: Step, target: Target, debug: Debug) -> Step:
    """Wrap ``step`` in the callbacks of ``debug``."""
    usage = effects(instruction, target)
    rows, numbers, text = list(usage.vector_writes), usage.scalar_writes, str(instruction)
    stop_here = debug.breakpoints.get(instruction.pc)

    def look(wave: Wave) -> None:
        if not debug.watches(wave):
            return step(wave)
        if stop_here is not None:
            stop_here(Stop(wave, instruction))
        vectors, scalars, masks = wave.v[rows], [wave.s[n] for n in numbers], (wave.exec, wave.scc)
        try:
            step(wave)
        except Trap as trap:
            if debug.trace is not None:
                debug.trace(Event(wave.workgroup, wave.index, instruction.pc, text, {}, trap.reason))
            if debug.fault is not None:
                debug.fault(Stop(wave, instruction, trap.reason))
            raise
        if debug.trace is not None:
            changed: dict[str, int | Words] = {}
            for row, old in zip(rows, vectors, strict=True):
                if (wave.v[row] != old).any():
                    changed[vector_name(row)] = wave.v[row].copy()
            for number, value in zip(numbers, scalars, strict=True):
                if wave.s[number] != value:
                    changed[f"s{number}"] = wave.s[number]
            for name, value, now in zip(("exec", "scc"), masks, (wave.exec, wave.scc), strict=True):
                if now != value:
                    changed[name] = now
            debug.trace(Event(wave.workgroup, wave.index, instruction.pc, text, changed))

    return look


def _short(value: int | Words) -> str:
    if isinstance(value, int):
        return f"{value:#x}"
    if (value == value[0]).all():
        return f"{int(value[0]):#x}(all)"
    return "[" + " ".join(f"{word:#x}" for word in value[:_SHOWN].tolist()) + " …]"
