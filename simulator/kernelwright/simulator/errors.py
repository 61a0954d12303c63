"""The simulator's exceptions. A Trap raised inside an instruction becomes a Fault that says where it happened."""

from __future__ import annotations

from typing import Any


class SimulatorError(Exception):
    """Base class of all errors that the simulator raises on purpose."""


class ObjectError(SimulatorError):
    """The code object is damaged, its architecture is not simulated, or it lacks the requested kernel."""


class Trap(SimulatorError):
    """Raised inside one instruction, which does not know its position; the scheduler turns it into a :class:`Fault`."""

    def __init__(self, reason: str, address: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.address = address


class Unmodelled(Trap):
    """An instruction, or a mode of one, is not modelled. Its behaviour is never guessed."""


class Fault(SimulatorError):
    """A kernel did something illegal. ``pc`` is a byte offset into the code object's text.

    ``seed`` is the seed of the order in which waves ran, None for the fixed order.
    """

    def __init__(
        self,
        reason: str,
        *,
        kernel: str,
        workgroup: tuple[int, int, int],
        wave: int,
        pc: int,
        instruction: str,
        address: int | None = None,
        seed: int | None = None,
    ) -> None:
        where = f"{kernel}: workgroup {workgroup}, wave {wave}, pc {pc:#x}: {instruction}"
        at = "" if address is None else f" (address {address:#x})"
        order = "" if seed is None else f" (seed {seed})"
        super().__init__(f"{where}: {reason}{at}{order}")
        self.reason = reason
        self.kernel = kernel
        self.workgroup = workgroup
        self.wave = wave
        self.pc = pc
        self.instruction = instruction
        self.address = address
        self.seed = seed

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all fields: faults are sent between processes."""
        where = (self.kernel, self.workgroup, self.wave, self.pc, self.instruction, self.address, self.seed)
        return _fault, (self.reason, *where)


def _fault(reason: str, *where: Any) -> Fault:
    names = ("kernel", "workgroup", "wave", "pc", "instruction", "address", "seed")
    return Fault(reason, **dict(zip(names, where, strict=True)))
