"""Every convolution kernel of a library on the smallest shapes, without torch: what compute-sanitizer is run on.

``compute-sanitizer --tool memcheck python3 tests/gpu/smallest_conv.py FOLDER [WORD]``; FOLDER holds the library.
WORD is in the names of the kernels that are run, all unless given. Operands are memory of exactly their size, zero;
results and workspace are not initialised.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from smallest import allocate, check

from kernelwright.dispatch import ConvProblem, Dispatcher, KernelLibrary

_CASES: tuple[dict[str, Any], ...] = (
    {"n": 2, "c": 72, "k": 80, "size": (9, 7), "filter": 3, "pad_left": 1},
    {"n": 1, "c": 3, "k": 5, "size": (11, 10), "filter": 3, "stride": 2, "pad_left": 1},
    {"n": 2, "c": 64, "k": 64, "groups": 8, "size": (6, 5), "filter": 3, "pad_left": 1},
    {"n": 1, "c": 64, "k": 72, "size": (6, 7), "filter": 1, "stride": 2},
    {"n": 2, "c": 64, "k": 64, "size": (5, 5), "filter": 1},
    {"n": 1, "c": 16, "k": 24, "size": (3, 5, 6), "filter": 3, "pad_left": 1},
    {"n": 2, "c": 3, "k": 5, "size": (31, 20), "filter": 10, "stride": 10},
    {"n": 1, "c": 8, "k": 12, "groups": 4, "size": (21, 19), "filter": 5, "stride": 9, "pad_left": 2},
)
_DEPTHWISE: tuple[dict[str, Any], ...] = (
    {"n": 2, "c": 40, "k": 40, "groups": 40, "size": (9, 10), "filter": 3, "pad_left": 1},
    {"n": 1, "c": 24, "k": 24, "groups": 24, "size": (17, 11), "filter": 7, "pad_left": 3},
    {"n": 1, "c": 24, "k": 24, "groups": 24, "size": (11, 12), "filter": 3, "stride": 2, "pad_left": 1},
)


def run(dispatcher: Dispatcher, problem: ConvProblem) -> None:
    """Plan, allocate, launch and wait."""
    kinds = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[problem.direction]
    plan = dispatcher.plan(problem)
    a, b = (allocate(problem.span(kind), 0) for kind in kinds[:2])
    extras = {
        "bias": allocate(2 * problem.k, 0) if problem.bias else None,
        "residual": allocate(problem.span("y"), 0) if problem.residual else None,
    }
    plan(
        a, b, allocate(problem.span(kinds[2])), **extras, stream=0,
        workspace=allocate(plan.workspace_bytes + 256) if plan.workspace_bytes else None,
    )  # fmt: skip
    check(_synchronize())


def _synchronize() -> int:
    import ctypes

    return int(ctypes.CDLL("libcudart.so").cudaDeviceSynchronize())


def main() -> None:
    """All kernels."""
    library = KernelLibrary.load(Path(sys.argv[1]))
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    for kernel in (one for one in library.kernels if word in one.name):
        dispatcher = Dispatcher([library], device="cuda:0", selection=kernel.name)
        spec = kernel.spec
        epilogue = {name: spec[name] for name in ("bias", "residual", "activation") if name in spec}
        if epilogue.get("activation") == "any":
            epilogue = {"bias": True, "residual": True, "activation": "gelu"}
        weight = {"split_k": 2} if spec["direction"] == "backward_weight" else {}
        for case in _DEPTHWISE if spec["depthwise"] else _CASES:
            run(dispatcher, ConvProblem(spec["direction"], dtype=spec["dtype"], **epilogue, **weight, **case))
        print(kernel.name, flush=True)


if __name__ == "__main__":
    main()
