"""Convolutions of 15 networks on a GPU, kernels chosen by the dispatcher, against torch (cuDNN), interleaved, as JSON.

Tiles and the numbers of selection were chosen while looking at the networks under ``tuned`` of
``benchmarks/shapes/conv.json``; a claim is made on those under ``held_out``. The shapes are those of processors with
``--images`` times the images (8 unless given): batches of 32, or of 8. Both sides read the same channels-last tensors
in captured graphs, operands rotate through more memory than L2 has, and calls take turns in every round. cuDNN may
search (``torch.backends.cudnn.benchmark``) and gets one-dimensional problems as two-dimensional ones, which it is
faster at. Outputs are compared first, ours after poisoning, with torch's convolution in fp32. Ratios are torch ÷ ours:
above 1 we are faster.

    python benchmarks/gpu/conv.py --library .gpu/conv/sm_90a --out result.json

Several libraries take turns with the same torch calls, and have a file each.
KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is installed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from ratios import geometric_mean, ratios, spread
from results_file import text
from timing import COLD_BYTES, capture, environment, interleaved, relative_error

from kernelwright.dispatch import ConvProblem, Dispatcher, KernelLibrary

SHAPES = Path(__file__).resolve().parents[1] / "shapes/conv.json"
DIRECTIONS = ("forward", "backward_data", "backward_weight")
GRAPH_US = 1500.0
MOST_SETS = 12
WRONG = 6e-3  # for bf16 results: rounding alone gives 1.7e-3
Call = Callable[[int], object]


def shapes(sets: Sequence[str], images: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Set, network, and a convolution as column values by name."""
    listed = json.loads(SHAPES.read_text())
    for kind in sets:
        for network, rows in listed[kind].items():
            for row in rows:
                shape = dict(zip(listed["columns"], row, strict=True))
                yield kind, network, {**shape, "n": shape["n"] * images}


def problem_of(shape: dict[str, Any], direction: str, dtype: str) -> ConvProblem:
    """The shape as a problem."""
    return ConvProblem(
        direction, shape["n"], shape["c"], shape["k"], shape["size"], shape["filter"], shape["groups"],
        shape["stride"], shape["dilation"], shape["padding"], dtype=dtype,
    )  # fmt: skip


class Case:
    """One problem with its operands: as many sets as needed to leave L2 cold."""

    def __init__(self, problem: ConvProblem) -> None:
        """Draw normally distributed operands, with weights scaled so that results are near 1."""
        self.problem = p = problem
        kind = torch.float16 if p.dtype == "fp16" else torch.bfloat16
        spans = sum(p.span(name) for name in "xwy")
        self.count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / spans)))
        fan = {"forward": p.c, "backward_data": p.k}.get(p.direction, 1) // p.groups or 1

        def made(shape: Sequence[int], scale: float = 1.0) -> list[torch.Tensor]:
            return [(torch.randn(tuple(shape), device="cuda") * scale).to(kind) for _ in range(self.count)]

        self.x, self.y = made(p.x_shape), made(p.y_shape)
        self.w = made(p.w_shape, (fan * math.prod(p.filter)) ** -0.5)  # type: ignore[arg-type]
        self.out = torch.empty_like({"forward": self.y, "backward_data": self.x}.get(p.direction, self.w)[0])

    def ours(self, dispatcher: Dispatcher) -> tuple[Call, str]:
        """The launch of the kernel chosen by the dispatcher, and the choice."""
        p = self.problem
        plan = dispatcher.plan(p)
        workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")
        first, second = {"forward": (self.x, self.w), "backward_data": (self.y, self.w)}.get(
            p.direction, (self.x, self.y)
        )

        def call(number: int) -> None:
            at = number % self.count
            plan(
                first[at].data_ptr(), second[at].data_ptr(), self.out.data_ptr(),
                stream=torch.cuda.current_stream().cuda_stream, workspace=workspace.data_ptr(),
            )  # fmt: skip

        return call, f"{plan.kernel.name} {plan.choices}".strip()

    def theirs(self, wide: bool = False) -> Callable[[int], torch.Tensor]:
        """torch's call; ``wide``: in fp32 without tf32, on one set of images."""
        p = self.problem
        dims = len(p.sizes)

        def first(values: torch.Tensor) -> torch.Tensor:
            values = values.float() if wide else values
            return (values.unsqueeze(1) if dims == 1 else values).movedim(-1, 1)

        along = [[*([one] if dims == 1 else []), *values] for one, values in (
            (1, p.stride), (0, p.pad_left), (1, p.dilation),
        )]  # fmt: skip
        convolve = torch.nn.functional.conv3d if dims == 3 else torch.nn.functional.conv2d
        back = (*along, False, [0] * max(2, dims), p.groups)

        def call(number: int) -> torch.Tensor:
            at = number % self.count
            x, w, y = (first(values[at]) for values in (self.x, self.w, self.y))
            if p.direction == "forward":
                output = convolve(x, w, None, *along, p.groups)
            else:
                which = p.direction == "backward_weight"
                mask = [not which, which, False]
                output = torch.ops.aten.convolution_backward(y, x, w, None, *back, mask)[int(which)]
            output = output.movedim(1, -1)
            return output.squeeze(1) if dims == 1 else output

        return call


def measure(dispatchers: Sequence[Dispatcher], problem: ConvProblem, rounds: int) -> list[dict[str, Any]]:
    """Errors, microseconds per call and ratios of each dispatcher's choice."""
    case = Case(problem)
    theirs = case.theirs()
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, allow_tf32=False):
        expected = case.theirs(wide=True)(0).double()
    reference = relative_error(theirs(0), expected)
    count = max(3, min(200, int(GRAPH_US / max(problem.flops / 4e8, 4.0))))
    results: list[dict[str, Any]] = []
    calls, graphs = [], {}
    for number, dispatcher in enumerate(dispatchers):
        ours, kernel = case.ours(dispatcher)
        calls.append(ours)  # graphs use its workspace
        case.out.fill_(math.nan)
        ours(0)
        torch.cuda.synchronize()
        results.append({"kernel": kernel, "errors": {"ours": relative_error(case.out, expected), "torch": reference}})
        if results[-1]["errors"]["ours"] < WRONG:
            graphs[str(number)] = capture(ours, count)
        else:
            results[-1]["state"] = "wrong"
    graphs["torch"] = capture(theirs, count)
    times = interleaved(graphs, count, rounds, 0.003)
    for number, result in enumerate(results):
        if "state" not in result:
            ours_us = times[str(number)]
            result["us"] = {"ours": spread(ours_us), "torch": spread(times["torch"])}
            result["ratio"] = spread(ratios(times["torch"], ours_us))
    return results


def main() -> int:
    """Measure, print a line per problem and the means, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, nargs="+", help="folders with manifest.json")
    parser.add_argument("--sets", nargs="+", default=["tuned", "held_out"])
    parser.add_argument("--directions", nargs="+", default=list(DIRECTIONS), choices=DIRECTIONS)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, nargs="+", help="a file for each library")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    dispatchers = [Dispatcher([KernelLibrary.load(path)], device="cuda:0") for path in options.library]
    facts = {"dtype": options.dtype, "images": options.images, "rounds": options.rounds}
    cudnn = torch.backends.cudnn.version()
    heads = [{"environment": {**environment(path), "cudnn": cudnn}, **facts} for path in options.library]
    results: list[list[dict[str, Any]]] = [[] for _ in dispatchers]
    for kind, network, shape in shapes(options.sets, options.images):
        for direction in options.directions:
            problem = problem_of(shape, direction, options.dtype)
            what = {"set": kind, "network": network, "shape": shape, "direction": direction}
            for rows, figures in zip(results, measure(dispatchers, problem, options.rounds), strict=True):
                rows.append(what | figures)
                print(line(rows[-1], problem), flush=True)
            torch.cuda.empty_cache()
        for path, head, rows in zip(options.out or (), heads, results, strict=False):
            path.write_text(text({**head, "torch ÷ ours": means(rows)}, rows))
    print(json.dumps([means(rows) for rows in results], indent=1))
    return int(any("state" in result for rows in results for result in rows))


def means(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Geometric mean and worst of the median ratios, by set and direction, for all, grouped and depthwise ones."""
    groups: dict[str, list[float]] = {}
    for result in results:
        if "ratio" not in result:
            continue
        shape, ratio = result["shape"], result["ratio"]["median"]
        of_groups = "depthwise" if shape["groups"] == shape["c"] > 1 else "grouped" if shape["groups"] > 1 else "dense"
        groups.setdefault(f"{result['set']} {result['direction']}", []).append(ratio)
        groups.setdefault(f"{result['set']} {result['direction']} {of_groups}", []).append(ratio)
    return {
        name: {"shapes": len(group), "geometric_mean": round(geometric_mean(group), 3), "worst": round(min(group), 3)}
        for name, group in groups.items()
    }


def line(result: dict[str, Any], problem: ConvProblem) -> str:
    """One line about a result."""
    shape = " ".join(str(value).replace(" ", "") for value in result["shape"].values())
    what = f"{result['set'][:5]} {result['network']:15} {result['direction']:15} {shape:44}"
    if "ratio" not in result:
        return f"{what} {result['state']} {result['errors']} {result['kernel']}"
    ours = result["us"]["ours"]["median"]
    rate = 1e-6 * problem.flops / ours
    return f"{what} {result['ratio']['median']:.3f} {ours:8.1f} us {rate:6.1f} TF {result['kernel']}"


if __name__ == "__main__":
    sys.exit(main())
