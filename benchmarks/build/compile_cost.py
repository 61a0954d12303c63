"""CPU seconds and peak memory of every action of a kernel, and of the plain command for the same rendered source.

The plain command is what one would type by hand: for AMD one ``clang -x hip --offload-device-only -c`` of the same
clang, which assembles and links by itself; for NVIDIA ``nvcc`` of the wheels with the machine's g++. Both roads run in
the local executor's sandbox, one command at a time, in turns. Prints JSON. Example::

    PYTHONPATH=arch:codegen python benchmarks/build/compile_cost.py --trees trees.json --out cost.json

With ``--stock`` the other road is the plan with the headers of CK Tile or CUTLASS as they are, and it is compared
whether both roads end in the same assembly (AMD) or object (NVIDIA).

``--set`` names the kernel set, by default GEMM's ``essential``: without ``--filter`` it takes, of that one, the first
fp16 and the first 8-bit kernel of each AMD architecture and the bf16 kernels of sm_90a, and every kernel of others.
CPU seconds grow when other work shares the cores; compare ratios.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action, RenderedFile
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for, toolchains_for
from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.compile_plan import kernel_actions
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.codegen.selecting.sets import set_archs

_COST = Path(__file__).with_name("cost.py")
_EIGHT_BITS = ("fp8", "bf8", "int8")


Cost = dict[str, float]


@dataclass(frozen=True)
class Road:
    """One way from a kernel's rendered source to its object; ``missing`` says why it is unavailable here."""

    files: tuple[RenderedFile, ...] = ()
    actions: tuple[Action, ...] = ()
    missing: str = ""


def chosen(name: str, expression: str | None, archs: Sequence[str]) -> Iterator[tuple[Arch, Kernel]]:
    """The kernels of the set ``name`` to measure; see the module docstring."""
    known = load_archs()
    gpus = [arch for arch in set_archs(name) if known[arch].backend != "cpu"]
    for selection in select("set", name, [arch for arch in gpus if arch in (archs or gpus)], known, expression):
        kernels = list(selection.kernels)
        if expression is None and name == "gemm:essential":
            kernels = _few(kernels, selection.arch.backend)
        yield from ((selection.arch, kernel) for kernel in kernels)


def _few(kernels: Sequence[Kernel], backend: str) -> list[Kernel]:
    """The first fp16 and the first 8-bit kernel for AMD, the bf16 kernels for NVIDIA."""
    if backend == "cutlass":
        return [kernel for kernel in kernels if kernel.spec.dtype_a == "bf16"]
    halves = [kernel for kernel in kernels if kernel.spec.dtype_a == "fp16"]
    return [*halves[:1], *[kernel for kernel in kernels if kernel.spec.dtype_a in _EIGHT_BITS][:1]]


def our_road(kernel: Kernel, arch: Arch, stock: bool = False) -> Road:
    """The compile plan of the kernel, with the default toolchains or with those that use unmodified headers."""
    toolchains = {**DEFAULT_TOOLCHAINS, **({"hip": "stock", "cuda": "stock"} if stock else {})}
    plan = kernel_actions(kernel, arch, backend_for(arch, toolchains))
    return Road(plan.files, plan.actions)


def plain_road(kernel: Kernel, arch: Arch, tools: Path) -> Road:
    """The plain command for the same rendered source; ``tools`` holds further tools that it needs.

    It uses unmodified headers.
    """
    if arch.backend == "cutlass":
        gxx = shutil.which("g++")
        if gxx is None:
            return Road(missing="not measured: no g++")
        fingerprint = hashlib.sha256(Path(gxx).read_bytes()).hexdigest()
        nvcc = {"choice": "nvcc", "host_compiler": gxx, "fingerprint": fingerprint}
        plan = kernel_actions(kernel, arch, backend_for(arch, {**DEFAULT_TOOLCHAINS, "cuda": nvcc}))
        return Road(plan.files, plan.actions)
    if arch.backend == "ck_tile":
        ours = our_road(kernel, arch, stock=True)
        to_assembly = ours.actions[0]
        *flags, mode, source, _, assembly = to_assembly.argv
        assert mode == "-S", to_assembly.argv
        code = assembly.removesuffix(".s") + ".co"
        argv = (*flags, f"-B{tools}", "-c", source, "-o", code)
        return Road(ours.files[:1], (dataclasses.replace(to_assembly, argv=argv, outputs=(code,)),))
    return Road(missing="not measured: the plan is the plain command")


def other_road(kernel: Kernel, arch: Arch, name: str, tools: Path) -> Road:
    """The road to compare ours with."""
    return our_road(kernel, arch, stock=True) if name == "stock" else plain_road(kernel, arch, tools)


@dataclass(frozen=True)
class Ran:
    """Cost of each action by its first word ("compile", "assemble", …), and the sha256 of the first one's output."""

    costs: dict[str, Cost]
    first: str


def run(road: Road, trees: Mapping[str, Path], cache: Path) -> Ran:
    """Run the actions of a road one by one, without results of earlier runs."""
    costs = {action.description.split()[0].lower(): f"{action.outputs[0]}.cost.json" for action in road.actions}
    assert len(costs) == len(road.actions)
    timed = [
        dataclasses.replace(
            action,
            argv=(sys.executable, "-I", "-S", str(_COST), result, *action.argv),
            outputs=(*action.outputs, result),
        )
        for action, result in zip(road.actions, costs.values(), strict=True)
    ]
    shutil.rmtree(cache / "actions", ignore_errors=True)  # keeps only the digests of the trees
    made = LocalExecutor(trees, cache).run(road.files, timed)
    first = hashlib.sha256(made[road.actions[0].outputs[0]].read_bytes()).hexdigest()
    return Ran({step: json.loads(made[result].read_text("ascii")) for step, result in costs.items()}, first)


def measure(
    kernels: Sequence[tuple[Arch, Kernel]], trees: Mapping[str, Path], repeats: int, other: str
) -> list[dict[str, Any]]:
    """Measure our road and the ``other`` ("plain" or "stock") of each kernel in turns, alternating the order."""
    with tempfile.TemporaryDirectory() as folder:
        _write_lld(Path(folder), Path(trees["zig"]))
        pairs = [
            {
                "ours": our_road(kernel, arch),
                other: our_road(kernel, arch, stock=True)
                if other == "stock"
                else plain_road(kernel, arch, Path(folder)),
            }
            for arch, kernel in kernels
        ]
        runs: list[dict[str, list[Ran]]] = [{name: [] for name in pair} for pair in pairs]
        for turn in range(repeats):
            for (_, kernel), pair, results in zip(kernels, pairs, runs, strict=True):
                for name in ("ours", other) if turn % 2 == 0 else (other, "ours"):
                    if not pair[name].missing:
                        ran = run(pair[name], trees, Path(folder, "cache"))
                        results[name].append(ran)
                        print(f"{kernel.arch} {kernel.name} {name}: {ran.costs}", file=sys.stderr, flush=True)
    return [
        {"arch": arch.name, "kernel": kernel.name, **_summary(results, other, pair[other].missing)}
        for (arch, kernel), pair, results in zip(kernels, pairs, runs, strict=True)
    ]


def _write_lld(folder: Path, zig_root: Path) -> None:
    wrapper = folder / "lld"  # clang's driver calls "lld -flavor gnu …"; zig spells that "zig ld.lld …"
    wrapper.write_text(f'#!/bin/sh\nshift 2\nexec {zig_root.resolve()}/ziglang/zig ld.lld "$@"\n')
    wrapper.chmod(0o755)


def _summary(results: Mapping[str, Sequence[Ran]], other: str, missing: str) -> dict[str, Any]:
    ours, theirs = ([_total(ran.costs) for ran in results[name]] for name in ("ours", other))
    steps = results["ours"][0].costs
    summary: dict[str, Any] = {
        "ours": _spread_all(ours),
        "steps": {step: _spread_all([ran.costs[step] for ran in results["ours"]]) for step in steps},
        other: missing or _spread_all(theirs),
    }
    if not missing:
        ratios = [mine["cpu_s"] / its["cpu_s"] for mine, its in zip(ours, theirs, strict=True)]
        summary[f"cpu_ratio_to_{other}"] = _spread(ratios)
    if other == "stock":
        summary["same_output"] = len({ran.first for rans in results.values() for ran in rans}) == 1
    return summary


def _total(steps: Mapping[str, Cost]) -> Cost:
    costs = steps.values()
    return {"cpu_s": sum(cost["cpu_s"] for cost in costs), "peak_mb": max(cost["peak_mb"] for cost in costs)}


def _spread_all(costs: Sequence[Cost]) -> dict[str, Cost]:
    return {key: _spread([cost[key] for cost in costs]) for key in ("cpu_s", "peak_mb")}


def _spread(values: Sequence[float]) -> Cost:
    return {name: round(f(values), 3) for name, f in (("median", statistics.median), ("min", min), ("max", max))}


def _geometric_mean(measured: Sequence[Mapping[str, Any]], other: str) -> dict[str, float]:
    key = f"cpu_ratio_to_{other}"
    ratios = [kernel[key]["median"] for kernel in measured if key in kernel]
    return {f"geometric_mean_{key}": round(statistics.geometric_mean(ratios), 3)} if ratios else {}


def _versions(archs: Iterable[Arch]) -> dict[str, str]:
    """Our toolchains by kind, and the host compiler that nvcc uses."""
    versions = {
        kind: made.identity for arch in archs for kind, made in toolchains_for(arch, DEFAULT_TOOLCHAINS).items()
    }
    if gxx := shutil.which("g++"):
        versions["g++"] = subprocess.check_output([gxx, "--version"], text=True).splitlines()[0]
    return versions


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", required=True, help="a JSON file that says where each tree is")
    parser.add_argument("--arch", action="append", default=[], help="may be repeated; all GPUs unless given")
    parser.add_argument("--set", default="gemm:essential", help="the kernel set; CPU kernels of it are left out")
    parser.add_argument("--filter", help="an expression over kernels c; see the module's text for what is taken else")
    parser.add_argument("--stock", action="store_true", help="compare with CK Tile's and CUTLASS's headers as they are")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the JSON here as well")
    options = parser.parse_args()
    kernels = list(chosen(options.set, options.filter, options.arch))
    machine = describe(**_versions(arch for arch, _ in kernels))
    other = "stock" if options.stock else "plain"
    measured = measure(kernels, read_tree_roots(options.trees), options.repeats, other)
    result = {"machine": machine, "repeats": options.repeats, "kernels": measured, **_geometric_mean(measured, other)}
    text = json.dumps(result, indent=1) + "\n"
    if options.out:
        options.out.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
