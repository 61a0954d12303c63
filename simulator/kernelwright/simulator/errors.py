"""What the simulator raises: a trap inside an instruction becomes a fault that says where it happened."""

from __future__ import annotations

from typing import Any


class SimulatorError(Exception):
    """Base of everything the simulator raises on purpose."""


class ObjectError(SimulatorError):
    """A code object that is damaged, of an architecture that is not simulated, or without the asked kernel."""


class Trap(SimulatorError):
    """Raised by one instruction, which does not know where it stands; the scheduler turns it into a :class:`Fault`."""

    def __init__(self, reason: str, address: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.address = address


class Unmodelled(Trap):
    """An instruction, or a mode of one, that has no semantics here. Never guessed."""


class Fault(SimulatorError):
    """A kernel did what it must not. ``pc`` is a byte offset into the code object's text."""

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
    ) -> None:
        where = f"{kernel}: workgroup {workgroup}, wave {wave}, pc {pc:#x}: {instruction}"
        at = "" if address is None else f" (address {address:#x})"
        super().__init__(f"{where}: {reason}{at}")
        self.reason = reason
        self.kernel = kernel
        self.workgroup = workgroup
        self.wave = wave
        self.pc = pc
        self.instruction = instruction
        self.address = address

    def __reduce__(self) -> tuple[Any, ...]:
        """Faults cross process borders."""
        where = (self.kernel, self.workgroup, self.wave, self.pc, self.instruction, self.address)
        return _fault, (self.reason, *where)


def _fault(reason: str, *where: Any) -> Fault:
    names = ("kernel", "workgroup", "wave", "pc", "instruction", "address")
    return Fault(reason, **dict(zip(names, where, strict=True)))
