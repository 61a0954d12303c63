"""bf16 GEMM against torch.matmul on the same GPU, interleaved, and what a launch costs the host.

The card throttles: the same product reads 760 TFLOP/s cold and 640 hot. So every round times torch and each kernel in
turn, and the ratio is taken within the round. ``cool`` rounds are bursts of about 4 ms with 0.1 s of idle between,
``hot`` ones 60 ms back to back. Outputs are compared with float64 first: a wrong one is an error, not a ratio.
Run ``python benchmarks/gpu/gemm.py --library libgemm.so --out result.json``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from timing import environment, poison, product, relative_error

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "gpu"))

from equality import error_limit, require_equal
from ratios import spread
from raw_abi import OK, Kernel, Library, aligned

from kernelwright.dispatch.core.native import Launch
from kernelwright.problems.gemm.structs import GemmArgs

SHAPES = [(8192, 8192, 8192), (4096, 4096, 4096), (4096, 14336, 4096)]
KERNEL = "cooperative_True_True_True_True_128x256x64_2x1x1_64x256x16_cluster2x1x1"
MODES = {"cool": {"rounds": 21, "burst_ms": 4.0, "idle_s": 0.1}, "hot": {"rounds": 21, "burst_ms": 60.0, "idle_s": 0.0}}
Call = Callable[[], object]


def _milliseconds(call: Call, repeats: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats


def _launcher(kernel: Kernel, a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> Call:
    """Return a call that launches ``d = a @ b.T`` through the C ABI with everything prepared in advance."""
    plan = kernel.plan(kernel.problem(a.shape[0], b.shape[0], a.shape[1]))
    stream = torch.cuda.current_stream().cuda_stream
    where = Launch(ctypes.sizeof(Launch), a.device.index, stream)
    args = GemmArgs(ctypes.sizeof(GemmArgs), 0, a.data_ptr(), b.data_ptr(), None, d.data_ptr())
    function, pointers = kernel.descriptor.launch, (kernel.pointer, aligned(plan))
    structs = ctypes.addressof(where), ctypes.addressof(args)

    def call(keep: tuple[object, ...] = (plan, where, args)) -> int:
        return int(function(*pointers, *structs))

    return call


def _errors(calls: dict[str, Call], d: torch.Tensor, expected: torch.Tensor, what: str) -> dict[str, float]:
    """Relative errors of the calls' outputs in ``d``. Raises UnequalOutputsError if one is too large."""
    errors = {}
    for name, call in calls.items():
        poison(d)
        call()
        errors[name] = relative_error(d, expected)
    require_equal(errors, error_limit("bf16", "bf16"), what)
    return errors


def _compare(kernels: Sequence[Kernel], m: int, n: int, k: int) -> dict[str, object]:
    """Times of torch and of each kernel in interleaved rounds; errors against float64."""
    a, b = (torch.randn(extent, k, device="cuda").bfloat16() for extent in (m, n))
    d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    calls: dict[str, Call] = {"torch": lambda: torch.matmul(a, b.T, out=d)}
    for kernel in kernels:
        calls[kernel.name] = _launcher(kernel, a, b, d)
        if calls[kernel.name]() != OK:
            raise RuntimeError(f"{kernel.name}: {kernel.last_error()}")
    errors = _errors(calls, d, product(a, b), f"bf16 {m}x{n}x{k}")
    operations = 2.0 * m * n * k
    result: dict[str, object] = {"m": m, "n": n, "k": k, "relative_error": errors}
    for mode, settings in MODES.items():
        result[mode] = _rounds(calls, operations, **settings)
    return result


def _rounds(
    calls: dict[str, Call], operations: float, rounds: int, burst_ms: float, idle_s: float
) -> dict[str, dict[str, dict[str, float]]]:
    once = {name: _milliseconds(call, 5) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            if idle_s:
                time.sleep(idle_s)
            calls[name]()
            times[name].append(_milliseconds(calls[name], max(1, round(burst_ms / once[name]))))
    return {
        name: {
            "tflops": spread([operations / ms / 1e9 for ms in values]),
            "ratio_to_torch": spread([t / ms for t, ms in zip(times["torch"], values, strict=True)]),
        }
        for name, values in times.items()
    }


def _host_microseconds(call: Call, batch: int = 200, batches: int = 50) -> dict[str, float]:
    """Host time per call with a short queue: batches of asynchronous launches, synchronised in between."""
    taken = []
    for _ in range(batches):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(batch):
            call()
        taken.append((time.perf_counter() - start) / batch * 1e6)
    torch.cuda.synchronize()
    return spread(taken)


def _launch_costs(library: Path, kernel: Kernel) -> dict[str, dict[str, float]]:
    a, b = (torch.randn(128, 128, device="cuda").bfloat16() for _ in range(2))
    d = torch.empty(128, 128, device="cuda", dtype=torch.bfloat16)
    transposed = b.T
    nothing: dict[str, Call] = {"ctypes call that does nothing": lambda: kernel.table.last_error()}
    calls: dict[str, Call] = {
        "raw launch through ctypes": _launcher(kernel, a, b, d),
        "torch.matmul(out=)": lambda: torch.matmul(a, transposed, out=d),
    }
    try:
        from kernelwright.dispatch import Dispatcher, GemmProblem

        dispatcher = Dispatcher([library.parent], device="cuda:0", selection=kernel.name)
        plan = dispatcher.plan(GemmProblem(128, 128, 128, dtype="bf16"))
        pointers = a.data_ptr(), b.data_ptr(), d.data_ptr()
        stream = torch.cuda.current_stream().cuda_stream
        calls["Plan.bind(...)()"] = plan.bind(a, transposed, out=d)
        calls["Plan(addresses)"] = lambda: plan(pointers[0], pointers[1], out=pointers[2], stream=stream)
        calls["Plan(torch tensors)"] = lambda: plan(a, transposed, out=d)
        calls["Dispatcher.gemm(torch tensors)"] = lambda: dispatcher.gemm(a, transposed, out=d)
    except Exception as error:  # the raw ABI is timed even without the dispatcher
        print(f"no dispatcher: {type(error).__name__}: {error}")
    _errors(calls, d, product(a, b), "bf16 128x128x128")
    return {name: _host_microseconds(call) for name, call in {**nothing, **calls}.items()}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="libgemm.so for sm_90a")
    parser.add_argument("--kernel", default=KERNEL, help="time kernels whose names end so")
    parser.add_argument("--out", type=Path, help="write JSON here")
    options = parser.parse_args()
    kernels = [
        kernel
        for kernel in Library(options.library)
        if kernel.dtypes == ("bf16", "bf16", "bf16", "fp32")
        and kernel.layout == "rcr"
        and kernel.name.endswith(options.kernel)
    ]
    if not kernels:
        parser.error(f"{options.library} has no bf16 rcr kernel whose name ends with {options.kernel!r}")
    result: dict[str, object] = {"environment": environment(options.library.parent), "shapes": []}
    for shape in SHAPES:
        measured = _compare(kernels, *shape)
        result["shapes"].append(measured)  # type: ignore[attr-defined]
        for mode in MODES:
            for name, figures in measured[mode].items():  # type: ignore[attr-defined]
                rate, ratio = figures["tflops"], figures["ratio_to_torch"]
                print(
                    f"{'x'.join(map(str, shape)):>16} {mode:4} {rate['median']:6.1f} TFLOP/s"
                    f" ({rate['min']:.1f}-{rate['max']:.1f}) ratio {ratio['median']:.3f}"
                    f" ({ratio['min']:.3f}-{ratio['max']:.3f}) {name}",
                    flush=True,
                )
    result["launch_microseconds"] = _launch_costs(options.library, kernels[0])
    print(json.dumps(result["launch_microseconds"], indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    _main()
