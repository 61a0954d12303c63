"""GEMM of the dispatcher's choice against torch on the same GPU: bf16, fp16, fp8, int8, and fused epilogues in bf16.

Shapes are those that kernels were tuned on and, reported apart, those that nothing was tuned on (shape_sets.py). Both
sides write into existing memory, in CUDA graphs over operands that rotate through more memory than L2 has, in turns
within each round; a ratio is taken within its round, because the card's clocks change. All of torch's calls for the
operation are timed (references.py), and the fastest is the reference. What each graph writes is compared with float64
first: a call that is off has no ratio. ``python benchmarks/gpu/speed.py --library FOLDER --out result.json`` needs the
folder of libgemm.so and manifest.json, and $KERNELWRIGHT_LIBRARY; report.py prints the result as Markdown. The exit
status is 1 if an output of ours was wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import references
import torch
from timing import (
    OUTPUT,
    Call,
    Operands,
    capture,
    environment,
    interleaved,
    operand_sets,
    output_errors,
    product,
    repeats,
)

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary, NoKernelError

sys.path.insert(0, str(Path(__file__).parents[1]))

from equality import error_limit, unequal
from ratios import NO_REFERENCE, NOT_SERVED, UNEQUAL, fastest, ratios, spread, summary
from results_file import text
from shape_sets import PLAIN, SETS, Case, cases

OURS = "kernelwright"
ACTIVATION = {"bias": "none", "bias_relu": "relu", "bias_gelu": "fast_gelu", "bias_gelu_erf": "gelu"}


def measure(dispatcher: Dispatcher, case: Case, rounds: int) -> dict[str, Any]:
    """Microseconds of ours and each of torch's calls, and the ratio to the fastest: above 1 if ours is faster."""
    # Fused results are about 1, in the nonlinear range of activations.
    sets = operand_sets(case.m, case.n, case.k, case.dtype, case.k**-0.5 if case.epilogue else 1.0)
    bias = torch.randn(case.n, device="cuda").bfloat16()
    row: dict[str, Any] = {
        "set": case.set, "what": case.what, "m": case.m, "n": case.n, "k": case.k,
        **({"family": case.family, "layer": case.origin} if case.family else {}), "sets": len(sets),
    }  # fmt: skip
    try:
        ours, row["kernel"] = our_call(dispatcher, case, sets, bias)
    except NoKernelError as error:
        return {**row, "state": NOT_SERVED, "reason": str(error).partition("\n")[0]}
    theirs = references.plain_calls(sets, case.dtype)
    if case.epilogue:
        theirs = references.fused_calls(sets, bias, case.epilogue)
    row["calls"] = count = repeats(case.m, case.n, case.k, case.dtype, len(sets))
    graphs, row["refused"] = captured(ours, theirs, count)
    expected = product(*sets[0][:2])
    if case.epilogue:
        expected = references.apply_epilogue(expected, bias.double(), case.epilogue)
    row["errors"] = output_errors(graphs, sets[0][2], expected)
    del expected
    off = unequal(row["errors"], error_limit(case.dtype, OUTPUT.get(case.dtype, case.dtype)))
    graphs = {name: graph for name, graph in graphs.items() if name not in off}
    if OURS not in graphs:
        return {**row, "state": UNEQUAL}
    if len(graphs) == 1:
        return {**row, "state": NO_REFERENCE}
    times = interleaved(graphs, count, rounds, idle_s=0.004)
    row["reference"] = fastest(times, [name for name in times if name != OURS])
    row["us"] = {name: spread(values) for name, values in times.items()}
    return {**row, "ratio": spread(ratios(times[row["reference"]], times[OURS]))}


def our_call(dispatcher: Dispatcher, case: Case, sets: list[Operands], bias: torch.Tensor) -> tuple[Call, str]:
    """The launch of the kernel chosen by the dispatcher, and the kernel's name."""
    more: dict[str, Any] = {}
    if case.epilogue:
        more = {"num_d": 1, "ld_multi_d": (0,), "activation": ACTIVATION[case.epilogue]}
    output = OUTPUT.get(case.dtype, case.dtype)
    problem = GemmProblem(case.m, case.n, case.k, dtype=case.dtype, dtype_c=output, split_k=0, **more)
    plan = dispatcher.plan(problem)
    workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")
    ds = [bias.data_ptr()] if case.epilogue else []

    def call(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        plan(
            a.data_ptr(), b.data_ptr(), out=out.data_ptr(), ds=ds,
            stream=torch.cuda.current_stream().cuda_stream, workspace=workspace.data_ptr(),
        )  # fmt: skip

    return call, str(plan.kernel.name)


def captured(ours: Call, theirs: dict[str, Call], count: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Graphs of all calls by name, and torch's messages for calls that it refuses."""
    graphs, refused = {OURS: capture(ours, count)}, {}
    for name, call in theirs.items():
        try:
            graphs[name] = capture(call, count)
        except (RuntimeError, TypeError) as error:
            refused[name] = str(error).partition("\n")[0]
    return graphs, refused


def line(result: dict[str, Any]) -> str:
    """One line about a result."""
    extents = f"{result['m']}x{result['n']}x{result['k']}"
    if "ratio" not in result:
        return (
            f"{result['set']:8} {result['what']:20} {extents}: {result['state']}, no ratio {result.get('errors', '')}"
        )
    rate = 2e-6 * result["m"] * result["n"] * result["k"] / result["us"][OURS]["median"]
    ratio = f"{result['ratio']['median']:.3f} of {result['reference']}"
    return f"{result['set']:8} {result['what']:20} {extents}: {ratio}  {rate:7.1f} Tops/s  {result['kernel']}"


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of libgemm.so and manifest.json")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=",".join((*PLAIN, "fused")))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    dispatcher = Dispatcher([KernelLibrary.load(options.library)], device="cuda:0")
    torch.manual_seed(0)
    where = environment(options.library)
    results: list[dict[str, Any]] = []
    for set_name in options.sets.split(","):
        for what in options.only.split(","):
            for case in cases(set_name, what):
                results.append(measure(dispatcher, case, options.rounds))
                print(line(results[-1]), flush=True)
                torch.cuda.empty_cache()
            if options.out:
                head = {"environment": where, "rounds": options.rounds, "summary": summary(results)}
                options.out.write_text(text(head, results))
    for group in summary(results):
        print(json.dumps(group))
    spreads = [r["ratio"]["max"] / r["ratio"]["min"] - 1 for r in results if "ratio" in r]
    if spreads:
        print(f"median spread of a ratio over its rounds: {100 * statistics.median(spreads):.1f} %")
    return int(any(result.get("state") == UNEQUAL for result in results))


if __name__ == "__main__":
    sys.exit(_main())
