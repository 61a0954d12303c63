"""What our GPU norm kernels cannot do, on AMD and NVIDIA GPUs alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.norm.complete import ACCESS_BYTES
from kernelwright.codegen.operations.norm.spec import NormSpec
from kernelwright.codegen.violations import Violation, rules
from kernelwright.problems.norm.description import LARGEST
from kernelwright.problems.shared import ITEM_BYTES

UNROLLS = (1, 2, 4, 8)
MOST_THREADS = 1024
"""The most threads of a workgroup."""
MOST_KEPT = 32
"""The most elements that a thread keeps in registers: gradients have two fp32 sums for each."""
_WORD = 4
_POWERS = tuple(2**i for i in range(11))


def check_threads_per_row(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """Threads of a row are halved to add their sums up, so they are a power of two."""
    if spec.threads_per_row not in _POWERS:
        yield _other("threads_per_row", spec.threads_per_row, "its sums are added up in halves", _POWERS)


def check_rows_per_block(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """A workgroup has whole waves, and no more threads than the hardware starts together."""
    rows, threads = spec.rows_per_block, spec.threads_per_row
    if rows * threads % arch.wave_size == 0 and rows * threads <= MOST_THREADS:
        return
    allowed = [one for one in _POWERS if one * threads % arch.wave_size == 0 and one * threads <= MOST_THREADS]
    why = (
        f"a workgroup would have {rows * threads} threads: not whole waves of {arch.wave_size}, or above {MOST_THREADS}"
    )
    yield _other("rows_per_block", rows, why, allowed or (1,))


def check_vector(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """A thread reads 4, 8 or 16 bytes at once, and writes whole registers of results."""
    sizes = [ITEM_BYTES[dtype] for dtype in (spec.dtype, spec.dtype_y)]
    allowed = [
        one for one in _POWERS if one * max(sizes) <= ACCESS_BYTES and all(one * size % _WORD == 0 for size in sizes)
    ]
    if spec.vector not in allowed:
        yield _other("vector", spec.vector, "accesses have 4, 8 or 16 bytes, and results whole registers", allowed)


def check_unroll(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """What a thread keeps of a row, and the sums of gradients, fit into registers."""
    allowed = [one for one in UNROLLS if one * spec.vector <= MOST_KEPT]
    if spec.unroll not in allowed:
        why = f"a thread keeps up to {MOST_KEPT} elements in registers"
        yield _other("unroll", spec.unroll, why, allowed or (1,))


def check_fp8(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """Numbers are converted to fp8 by instructions, which not every architecture has."""
    if spec.dtype_y == DType.FP8 and not arch.flops_per_clock_per_cu.get(DType.FP8):
        allowed = ", ".join((spec.dtype, *(one for one in LARGEST if one != DType.FP8)))
        yield Violation(
            "norm_gpu.fp8", "dtype_y", spec.dtype_y, f"{arch.name} has no instruction that converts to it", allowed,
            str(DType.INT8),
        )  # fmt: skip


def _other(field: str, given: int, why: str, allowed: Sequence[int]) -> Violation:
    nearest = min(allowed, key=lambda one: abs(one - given))
    return Violation(f"norm_gpu.{field}", field, str(given), why, ", ".join(map(str, allowed)), str(nearest))


RULES = rules("norm_gpu.", (check_threads_per_row, check_rows_per_block, check_vector, check_unroll, check_fp8))
"""Rules that GPU backends add to the common ones."""
