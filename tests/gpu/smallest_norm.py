"""Every kernel of norms of a library on the smallest shapes, without torch: what compute-sanitizer is run on.

``compute-sanitizer --tool memcheck python3 tests/gpu/smallest_norm.py FOLDER [WORD]``; FOLDER holds the library.
WORD is in the names of the kernels that are run, all unless given. Operands are memory of exactly their size, zero;
results and workspace are not initialised.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from smallest import allocate, check

from kernelwright.dispatch import Dispatcher, KernelLibrary
from kernelwright.dispatch.operations.norm import NormProblem

# Rows, columns, gaps between rows: whole vectors, vectors that end within a row, rows beyond registers.
_SHAPES = ((2, 256, 0), (3, 33, 5), (9, 1, 0), (1, 20000, 0), (12, 130, 1))
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "fp8": 1}


def run(dispatcher: Dispatcher, spec: Any, rows: int, columns: int, gap: int) -> None:
    """Plan, allocate, launch and wait."""
    backward, stride = spec["direction"] == "backward", columns + gap
    strides = {"stride_x": stride, "stride_y": stride, "stride_residual": stride}
    strides |= {"stride_dy": stride} if backward else {"stride_sum": stride}
    problem = NormProblem(
        spec["kind"], rows, columns, dtype=spec["dtype"], dtype_y=spec["dtype_y"], backward=backward, residual=True,
        bias=spec["kind"] == "layer", **strides,
    )  # fmt: skip
    x, y = _BYTES[spec["dtype"]], _BYTES[spec["dtype_y"]]
    span, row = (rows - 1) * stride + columns, columns * x
    given: dict[str, int] = {"x": allocate(span * x, 0), "weight": allocate(row, 0), "residual": allocate(span * x, 0)}
    given["out"] = allocate(span * y)
    if backward:
        given |= {"dy": allocate(span * x, 0), "dweight": allocate(row)}
        given |= {"dbias": allocate(row)} if problem.bias else {}
    else:
        given["sum"] = allocate(span * x)
        given |= {"bias": allocate(row, 0)} if problem.bias else {}
        given |= {"scales": allocate(4 * rows)} if problem.quantised else {}
    plan = dispatcher.plan(problem)
    plan(**given, stream=0, workspace=allocate(plan.workspace_bytes) if plan.workspace_bytes else None)
    check(int(ctypes.CDLL("libcudart.so").cudaDeviceSynchronize()))


def main() -> None:
    """All kernels."""
    library = KernelLibrary.load(Path(sys.argv[1]))
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    count = 0
    for kernel in (one for one in library.kernels if word in one.name):
        dispatcher = Dispatcher([library], device="cuda:0", selection=kernel.name)
        for shape in _SHAPES:
            run(dispatcher, kernel.spec, *shape)
        count += 1
    print(f"{count} kernels, {len(_SHAPES)} shapes each")


if __name__ == "__main__":
    main()
