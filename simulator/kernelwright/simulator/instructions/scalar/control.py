"""Control flow: branches, calls, barriers, the end of a wave; also pipeline hints, which do nothing here."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.simulator.code.instruction import File, Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.instructions.scalar.operands import destination, sign_extend, source
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.barrier import Barrier
from kernelwright.simulator.machine.registers import VCC
from kernelwright.simulator.machine.wave import Wave

_CONDITIONS: dict[str, Callable[[Wave], bool | int]] = {
    "s_cbranch_scc0": lambda wave: not wave.scc,
    "s_cbranch_scc1": lambda wave: wave.scc,
    "s_cbranch_vccz": lambda wave: not wave.read_mask(VCC),
    "s_cbranch_vccnz": lambda wave: wave.read_mask(VCC),
    "s_cbranch_execz": lambda wave: not wave.exec,
    "s_cbranch_execnz": lambda wave: wave.exec,
}
_PC_BITS = (1 << 48) - 1  # on gfx12, compilers sign-extend the result of s_getpc_b64
# Pipeline hints; everything is in order here anyway.
_IDLE = (
    "s_nop", "s_sleep", "s_setprio", "s_clause", "s_delay_alu", "s_wait_alu", "s_waitcnt_depctr", "s_wakeup",
    "s_set_inst_prefetch_distance", "s_icache_inv", "s_version", "s_incperflevel", "s_decperflevel", "s_wait_idle",
    "s_sleep_var", "s_ttracedata", "s_ttracedata_imm", "s_set_valu_coexec_mode",
)  # fmt: skip
# Loads and stores complete at once; only the check ``waits`` interprets these.
WAITS = (
    "s_waitcnt", "s_waitcnt_vscnt", "s_waitcnt_vmcnt", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt", "s_wait_loadcnt",
    "s_wait_storecnt", "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_expcnt", "s_wait_dscnt", "s_wait_kmcnt",
    "s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt",
)  # fmt: skip
_DEALLOCATE_VGPRS = 3
_WORKGROUP_BARRIER = -1


def target_of_branch(instruction: Instruction) -> int:
    """Text offset of the target of a relative branch."""
    return instruction.pc + instruction.size + 4 * sign_extend(instruction.get("simm16"), 16)


@semantics("s_branch", kind="branch")
def build_branch(instruction: Instruction, target: Target) -> Step:
    """Unconditional branch."""
    to = target_of_branch(instruction)
    return lambda wave: wave.jump(to)


@semantics(*_CONDITIONS, kind="branch")
def build_conditional_branch(instruction: Instruction, target: Target) -> Step:
    """Branch on SCC, VCC or EXEC."""
    to, taken = target_of_branch(instruction), _CONDITIONS[instruction.name]

    def step(wave: Wave) -> None:
        if taken(wave):
            wave.jump(to)

    return step


@semantics("s_getpc_b64", kind="scalar")
def build_get_pc(instruction: Instruction, target: Target) -> Step:
    """The address of the next instruction."""
    write, after = destination(instruction, 64), instruction.pc + instruction.size
    return lambda wave: write(wave, wave.code_address + after)


@semantics("s_setpc_b64", "s_swappc_b64", kind="branch")
def build_set_pc(instruction: Instruction, target: Target) -> Step:
    """Branch to an address; s_swappc returns the address of the next instruction."""
    read, after = source(instruction, "ssrc0", 64), instruction.pc + instruction.size
    write = destination(instruction, 64) if instruction.name == "s_swappc_b64" else None

    def step(wave: Wave) -> None:
        to = read(wave) - wave.code_address & _PC_BITS
        if write is not None:
            write(wave, wave.code_address + after)
        wave.jump(to)

    return step


@semantics("s_call_b64", kind="branch")
def build_call(instruction: Instruction, target: Target) -> Step:
    """Branch to a relative address; returns the address of the next instruction."""
    write, after, to = destination(instruction, 64), instruction.pc + instruction.size, target_of_branch(instruction)

    def step(wave: Wave) -> None:
        write(wave, wave.code_address + after)
        wave.jump(to)

    return step


@semantics("s_endpgm", kind="other")
def build_end(instruction: Instruction, target: Target) -> Step:
    """End the wave."""

    def step(wave: Wave) -> None:
        wave.state = "done"

    return step


@semantics("s_barrier", "s_barrier_signal", "s_barrier_wait", kind="barrier")
def build_barrier(instruction: Instruction, target: Target) -> Step:
    """The workgroup's barrier: gfx12 splits it into arriving and waiting. Unmodelled for any other barrier."""
    if instruction.name == "s_barrier_signal":
        number = instruction.operands["ssrc0"]
        if number.file is not File.INLINE or number.value != _WORKGROUP_BARRIER:
            raise Unmodelled(f"barrier {number}; only that of the workgroup (-1) is modelled")
        return lambda wave: _barrier(wave).signal(wave)
    if instruction.name == "s_barrier_wait":
        if sign_extend(instruction.get("simm16"), 16) != _WORKGROUP_BARRIER:
            raise Unmodelled("a barrier other than that of the workgroup (-1)")
        return lambda wave: _barrier(wave).wait(wave)

    def whole(wave: Wave) -> None:
        barrier = _barrier(wave)
        barrier.signal(wave)
        barrier.wait(wave)

    return whole


def _barrier(wave: Wave) -> Barrier:
    if wave.barrier is None:
        raise Trap("a barrier outside a workgroup")
    return wave.barrier


@semantics("s_sendmsg", kind="other")
def build_message(instruction: Instruction, target: Target) -> Step:
    """Send a message: only the one that releases VGPRs is harmless. Unmodelled for any other."""
    if instruction.get("simm16") != _DEALLOCATE_VGPRS or target.cdna:
        raise Unmodelled(f"message {instruction.get('simm16'):#x}; only dealloc_vgprs is modelled")
    return _nothing


@semantics(*_IDLE, kind="other")
def build_idle(instruction: Instruction, target: Target) -> Step:
    """Do nothing."""
    return _nothing


@semantics(*WAITS, kind="wait")
def build_wait(instruction: Instruction, target: Target) -> Step:
    """Do nothing: everything has arrived already."""
    return _nothing


def _nothing(wave: Wave) -> None:
    """Do nothing."""
