"""Static counts of kernels: instructions in their code, and in one iteration of their main loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelwright.files.counts.instruction_set import instruction_set
from kernelwright.files.counts.loops import main_loop
from kernelwright.files.counts.mix import Mix, mix_of
from kernelwright.simulator.code.decode import decode
from kernelwright.simulator.code.descriptor import KernelDescriptor
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.object_file import CodeObject, images, read_code_object
from kernelwright.simulator.counting.lines import lines_of


@dataclass(frozen=True)
class KernelCounts:
    """One kernel of a code object, for one wave. ``loop`` counts one iteration of the main loop, which begins at offset
    ``loop_pc`` of the text; both are None without one. ``outside`` counts all other instructions of the kernel's
    function, each once, whether a wave executes them or not; the same goes for branches inside the loop.
    """

    symbol: str
    arch: str
    loop: Mix | None
    loop_pc: int | None
    outside: Mix
    registers: int
    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int


def count_image(image: bytes, arch: str | None = None) -> Iterator[KernelCounts]:
    """Every kernel of a code object. Raises ObjectError for a damaged one, Unmodelled for bytes that do not decode."""
    code = read_code_object(image, arch)
    for kernel in code.kernels.values():
        yield count_kernel(code, kernel)


def count_library(data: bytes) -> list[KernelCounts]:
    """Every kernel of a library, or of a bare code object, in file order."""
    return [one for image in images(data) for one in count_image(image)]


def count_kernel(code: CodeObject, kernel: KernelDescriptor) -> KernelCounts:
    """One kernel: its entry function; called functions are not followed."""
    function = instructions_of(code, kernel)
    lines, known = lines_of(function), instruction_set(code.target.instructions)
    loop = main_loop(lines)
    inside = [lines[at] for at in sorted(loop)] if loop else []
    rest = [one for at, one in enumerate(lines) if not loop or at not in loop]
    given = kernel.registers
    return KernelCounts(
        symbol=kernel.name,
        arch=code.target.name,
        loop=mix_of(((one, 1) for one in inside), known) if loop else None,
        loop_pc=function[min(loop)].pc if loop else None,
        outside=mix_of(((one, 1) for one in rest), known),
        registers=given.total,
        vgprs=given.vgprs,
        agprs=given.agprs,
        sgprs=given.sgprs,
        lds_bytes=kernel.lds_bytes,
        scratch_bytes=kernel.scratch_bytes,
    )


def instructions_of(code: CodeObject, kernel: KernelDescriptor) -> Sequence[Instruction]:
    """The instructions of a kernel's entry function."""
    symbol = code.function_at(kernel.entry - code.text_start)
    return list(decode(code.text, code.target, symbol.address, symbol.address + symbol.nbytes))
