"""Microseconds that Python adds to a launch, against a kernel that does nothing; prints JSON.

Usage: overhead.py FOLDER [DEVICE] [VARIANTS]. FOLDER is a library that serves fp16 rrr (`run` builds one), on a GPU
bf16 rcr; VARIANTS, on the CPU, one that serves fp32 rrr with a D tensor and relu, in batches and in groups.
Figures are CPU time of the calling thread, so that other work on the machine does not count: medians of interleaved
repeats with their spread. "above_raw_us" is the median difference to the bare ctypes call of kw_plan_launch in the same
repeat. Rows for torch tensors are there where torch can be imported.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.dispatch import Dispatcher, GemmProblem, GroupedGemmProblem, Plan
from kernelwright.dispatch.core import native

REPEATS, CALLS = 21, 5000
GROUPED = 20  # divisor of the number of calls that take tens of microseconds
GPU_CALLS = 400  # below the number at which a launch waits for the stream's queue

Cases = dict[str, Callable[[], Any]]


def _in_turn(plan: Plan, operands: list[tuple[Any, Any, Any]]) -> Callable[[], Any]:
    turn = [0]

    def call() -> None:
        turn[0] ^= 1
        a, b, out = operands[turn[0]]
        plan(a, b, out=out)

    return call


def _cpu_cases(folder: str, variants: str | None) -> Cases:
    dispatcher = Dispatcher([folder])
    problem = GemmProblem(64, 64, 64, dtype="fp16", layout="rrr")
    plan = dispatcher.plan(problem)
    a, b, out = (np.zeros((64, 64), np.float16) for _ in range(3))
    cases = _plan_cases(plan, a, b, out, [array.ctypes.data for array in (a, b, out)])
    cases["plan_same_arrays"] = lambda: plan(a, b, out=out)
    cases["plan_other_arrays"] = _in_turn(plan, [(np.zeros((64, 64), np.float16), b, out) for _ in range(2)])
    cases["dispatcher_plan_hit"] = lambda: dispatcher.plan(problem)
    cases["gemm_with_out"] = lambda: dispatcher.gemm(a, b, out=out)
    cases["gemm"] = lambda: dispatcher.gemm(a, b)
    if variants is not None:
        cases.update(_variant_cases(Dispatcher([variants])))
    with contextlib.suppress(ImportError):
        torch = importlib.import_module("torch")
        tensors = [torch.zeros(64, 64, dtype=torch.float16) for _ in range(4)]
        # Another plan, since a plan remembers how the arrays of its last call looked.
        cases.update(_torch_cases(Dispatcher([folder]), problem, *tensors))
    return cases


def _variant_cases(dispatcher: Dispatcher) -> Cases:
    a, b, out, bias = (np.zeros(shape, np.float32) for shape in ((64, 64), (64, 64), (64, 64), (64,)))
    as_, outs = (np.zeros((4, 64, 64), np.float32) for _ in range(2))
    fused = dispatcher.plan(
        GemmProblem(64, 64, 64, layout="rrr", num_d=1, ld_multi_d=(0,), activation="relu"),
    )
    batched = dispatcher.plan(GemmProblem(64, 64, 64, layout="rrr", batch=4, stride_b=0))
    # Each group has another size; lists of arrays, as callers have them.
    groups = [(np.zeros((m, 64), np.float32), b, np.zeros((m, 64), np.float32)) for m in (16, 32, 48, 64)]
    firsts, seconds, results = (list(column) for column in zip(*groups, strict=True))
    grouped = dispatcher.plan_grouped(
        GroupedGemmProblem([(m, 64, 64, 64, 64, 64) for m in (16, 32, 48, 64)], layout="rrr")
    )
    return {
        "plan_one_d": lambda: fused(a, b, out=out, ds=(bias,)),
        "gemm_one_d_with_out": lambda: dispatcher.gemm(a, b, out=out, ds=(bias,), activation="relu"),
        "plan_batch_of_4": lambda: batched(as_, b, out=outs),
        "gemm_batch_of_4_with_out": lambda: dispatcher.gemm(as_, b, out=outs),
        "plan_4_groups": lambda: grouped(firsts, seconds, results),
        "grouped_gemm_4_with_outs": lambda: dispatcher.grouped_gemm(firsts, seconds, results),
    }


def _gpu_cases(folder: str, device: str) -> Cases:
    torch = importlib.import_module("torch")
    dispatcher = Dispatcher([folder], device=device)
    problem = GemmProblem(128, 128, 128, dtype="bf16", layout="rcr")
    tensors = [torch.zeros(128, 128, dtype=torch.bfloat16, device=device.replace("hip", "cuda")) for _ in range(4)]
    a, b, out, other = tensors[0], tensors[1].t(), tensors[2], tensors[3]
    cases = _plan_cases(dispatcher.plan(problem), a, b, out, [tensor.data_ptr() for tensor in tensors])
    return {**cases, **_torch_cases(dispatcher, problem, a, b, out, other)}


def _plan_cases(plan: Plan, a: Any, b: Any, out: Any, pointers: list[int]) -> Cases:
    bound = plan.bind(a, b, out=out)
    plan(a, b, out=out)  # fills in what the bare call refers to
    launch, handle, state = native.library().kw_plan_launch, plan._handle, plan._new_state()
    frame, args = native.byref(state.frame), native.byref(state.args)

    def empty() -> None:
        pass

    return {
        "loop": empty,
        "raw_ctypes_launch": lambda: launch(handle, frame, args),
        "bound_plan": lambda: bound(),
        "plan_pointers": lambda: plan(pointers[0], pointers[1], out=pointers[2]),
    }


def _torch_cases(dispatcher: Dispatcher, problem: GemmProblem, a: Any, b: Any, out: Any, other: Any) -> Cases:
    plan = dispatcher.plan(problem)
    return {
        "torch_plan_same_tensors": lambda: plan(a, b, out=out),
        "torch_plan_other_tensors": _in_turn(plan, [(a, b, out), (other, b, out)]),
        "torch_gemm_with_out": lambda: dispatcher.gemm(a, b, out=out),
        "torch_gemm": lambda: dispatcher.gemm(a, b),
    }


def _samples(cases: Cases, calls: int, finish: Callable[[], Any]) -> dict[str, list[float]]:
    """CPU microseconds per call of each way, in turn; ``finish`` waits for the device, outside of the measurement."""
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(REPEATS):
        for name, call in cases.items():
            call()
            finish()
            count = calls // GROUPED if "group" in name else calls
            start = time.thread_time_ns()
            for _ in range(count):
                call()
            samples[name].append((time.thread_time_ns() - start) / count / 1000)
            finish()
    return samples


def main() -> int:
    """Measure and print JSON. Returns the exit status."""
    if len(sys.argv) not in (2, 3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    if device == "cpu":
        calls = CALLS
        samples = _samples(_cpu_cases(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else None), calls, lambda: None)
    else:
        calls = GPU_CALLS
        samples = _samples(_gpu_cases(sys.argv[1], device), calls, importlib.import_module("torch").cuda.synchronize)
    raw = samples["raw_ctypes_launch"]
    figures = {
        name: {
            "median_us": round(statistics.median(values), 3),
            "min_us": round(min(values), 3),
            "p90_us": round(sorted(values)[len(values) * 9 // 10], 3),
            "above_raw_us": round(statistics.median(v - r for v, r in zip(values, raw, strict=True)), 3),
        }
        for name, values in samples.items()
    }
    print(
        json.dumps(
            {"python": platform.python_version(), "device": device, "calls": calls, "repeats": REPEATS, **figures},
            indent=1,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
