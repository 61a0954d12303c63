"""One launch of one kernel per template on the smallest shapes, without torch: what compute-sanitizer is run on.

``compute-sanitizer --tool memcheck python3 tests/gpu/smallest.py LIBGEMM.so``; memory comes from cudaMalloc, operands
and results are initialised, the workspace is not, but for one part of it.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from raw_abi import OK, Kernel, Library, aligned

from kernelwright.dispatch.core.native import Launch
from kernelwright.problems.gemm.structs import (
    GemmArgs,
    GemmGroup,
    GemmProblem,
    GroupedGemmArgs,
    GroupedGemmProblem,
)

_CUDART = ctypes.CDLL("libcudart.so")
_OPERAND_BYTES = 1 << 20
_M, _N, _K = 32, 32, 96
_GROUPS = ((32, 32, 96), (0, 32, 32), (160, 48, 80), (16, 16, 0), (1, 144, 208))
_TABLE_BYTES = 512  # of so many groups, see grouped.hpp
_GROUPED = 2  # of descriptor.op


def allocate(nbytes: int, value: int | None = None) -> int:
    """Device memory, every byte ``value`` unless None."""
    pointer = ctypes.c_void_p()
    check(_CUDART.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(nbytes)))
    if value is not None:
        check(_CUDART.cudaMemset(pointer, value, ctypes.c_size_t(nbytes)))
    return int(pointer.value or 0)


def check(error: int) -> None:
    if error:
        raise RuntimeError(f"CUDA error {error}")


def template(kernel: Kernel) -> tuple[object, ...]:
    """What tells the templates apart."""
    traits, name = kernel.traits, kernel.name
    swapped = traits.warp_tile_n == 64 and traits.warp_tile_m == traits.tile_m != 64
    cut = traits.stream_k, traits.max_split_k > 1
    kind = kernel.descriptor.op, traits.num_d > 0, traits.batched
    return "pingpong" in name, swapped, cut, *kind, kernel.dtypes[0], kernel.layout


def run(kernel: Kernel) -> None:
    traits = kernel.traits
    problem = kernel.problem(_M, _N, _K)
    problem.split_k = 2 if traits.max_split_k > 1 else 1
    problem.num_d, problem.d_op, problem.activation = traits.num_d, traits.d_op, traits.activation
    for number in range(traits.num_d):
        problem.ld_multi_d[number] = _N * (number % 2)
    args = GemmArgs()
    args.struct_size = ctypes.sizeof(GemmArgs)
    args.a, args.b, args.c, args.d = (allocate(_OPERAND_BYTES, 0) for _ in range(4))
    args.multi_d[:] = [allocate(_OPERAND_BYTES, 0) for _ in range(4)]
    launch(kernel, problem, args)


def run_groups(kernel: Kernel) -> None:
    """Groups of a tile, of several, without rows and without K."""
    groups = (GemmGroup * len(_GROUPS))()
    for group, (m, n, k) in zip(groups, _GROUPS, strict=True):
        a, b = (m if kernel.layout[0] == "c" else k), (k if kernel.layout[1] == "c" else n)
        group.m, group.n, group.k = m, n, k
        group.lda, group.ldb, group.ldc = (-(-max(1, extent) // 16) * 16 for extent in (a, b, n))
    args = GroupedGemmArgs(ctypes.sizeof(GroupedGemmArgs), 0, len(groups), groups)
    for name in "abcd":
        setattr(args, name, (ctypes.c_void_p * len(groups))(*(allocate(_OPERAND_BYTES, 0) for _ in groups)))
    launch(kernel, kernel.grouped_problem(groups, 1.0, 1.0), args)


def launch(kernel: Kernel, problem: GemmProblem | GroupedGemmProblem, args: GemmArgs | GroupedGemmArgs) -> None:
    """Plan, give a workspace, launch and wait."""
    needed = ctypes.c_uint64()
    size = kernel.descriptor.workspace_size(kernel.pointer, ctypes.addressof(problem), ctypes.addressof(needed))
    if size != OK:
        raise RuntimeError(kernel.last_error())
    where = Launch(ctypes.sizeof(Launch), 0, None, allocate(needed.value + 256), needed.value)
    if isinstance(args, GroupedGemmArgs):
        # The TMA descriptors behind the table of groups are written by exchanges, which initcheck takes for reads.
        behind = ctypes.c_void_p(where.workspace + _TABLE_BYTES)
        check(_CUDART.cudaMemset(behind, 0, ctypes.c_size_t(needed.value + 256 - _TABLE_BYTES)))
    plan = kernel.plan(problem)
    launched = kernel.descriptor.launch(kernel.pointer, aligned(plan), ctypes.addressof(where), ctypes.addressof(args))
    if launched != OK:
        raise RuntimeError(kernel.last_error())
    check(_CUDART.cudaDeviceSynchronize())


def main() -> None:
    seen = set()
    for kernel in Library(Path(sys.argv[1])):
        if template(kernel) not in seen:
            seen.add(template(kernel))
            (run_groups if kernel.descriptor.op == _GROUPED else run)(kernel)
            print(kernel.name, flush=True)


if __name__ == "__main__":
    main()
