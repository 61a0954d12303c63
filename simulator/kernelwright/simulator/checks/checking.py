"""Put the requested checks around every step."""

from __future__ import annotations

from kernelwright.simulator.checks.effects import effects
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.checks.state import Around
from kernelwright.simulator.checks.uninitialised import require_defined
from kernelwright.simulator.checks.waits import require_arrived, track_accesses
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.machine.wave import Wave


def check(instruction: Instruction, step: Step, target: Target, checks: Checks) -> Step:
    """Wrap the step in the requested checks, which raise Trap for their findings."""
    usage = effects(instruction, target)
    around: list[Around] = [track_accesses(instruction, target, usage, checks)]
    if checks.waits:
        around.append((require_arrived(usage, instruction, target), None))
    if checks.uninitialised:
        around.append(require_defined(instruction, usage))
    before = [first for first, _ in reversed(around) if first is not None]
    after = [last for _, last in around if last is not None]
    if not before and not after:
        return step

    def checked(wave: Wave) -> None:
        for check in before:
            check(wave)
        step(wave)
        for check in after:
            check(wave)

    return checked
