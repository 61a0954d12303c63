"""``kernelwright tile-engine release``: the kernels of a release set, from tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelwright.arch import Arch, load

if TYPE_CHECKING:
    from kernelwright.codegen.kernel import Kernel
    from kernelwright.tile_engine.results.cover import Step

_PATH = click.Path(path_type=Path)


@click.command("release")
@click.option("--table", "tables", required=True, multiple=True, type=_PATH, help="A CSV file of tuning problems.")
@click.option(
    "--library", "libraries", required=True, multiple=True, type=_PATH, help="Its kernels' library, or a list of specs."
)
@click.option("--arch", required=True, help="The architecture.")
@click.option("--dtype", required=True, help="Element type of A.")
@click.option("--reach", default=0.98, show_default=True, help="Geometric mean share of the fastest kernels' speed.")
@click.option("--most", type=click.IntRange(1), help="At most so many kernels.")
@click.option("--also", multiple=True, help="Element types of the same size that get the same kernels in the set.")
@click.option("--into", type=_PATH, help="GEMM: the rule set's file that gets the kernels, such as release.json.")
@click.option("--specs", "specs_file", type=_PATH, help="The kernels as a list, for `kernelwright build --spec`.")
@click.option("--output", required=True, type=_PATH, help="Where the choice goes, with its provenance, as JSON.")
def release_command(
    tables: tuple[Path, ...], libraries: tuple[Path, ...], arch: str, dtype: str, reach: float, most: int | None,
    also: tuple[str, ...], into: Path | None, specs_file: Path | None, output: Path,
) -> None:  # fmt: skip
    """Choose the fewest kernels that reach a share of the fastest kernels' speed, by a greedy cover.

    Each next kernel gains most for a second of compiling, as the generator estimates it; kernels that its plans need
    to prepare or to finish come with it. Choose on tuning problems.
    """
    from kernelwright.codegen.operation import operation
    from kernelwright.tile_engine.results.analysis import timed
    from kernelwright.tile_engine.results.csv_file import read_tables
    from kernelwright.tile_engine.results.release import add_to_rule_set, choose_release, entry, require_stages

    loaded = load(arch)
    rows = [row for row in read_tables(tables) if row["dtype"] == dtype and row["arch"] == arch]
    require_stages(rows[0] if rows else (), sorted({row["kernel"] for row in rows if row.get("auxiliary")}))
    times = timed(rows)
    kernels = _kernels(libraries, loaded, {identity for one in times for identity in (one.identity, *one.stages)})
    if into and (others := sorted({str(kernel.spec.op) for kernel in kernels.values()} - {"gemm"})):
        raise ValueError(f"--into writes rule sets of GEMM, not of {', '.join(others)}; take --specs")
    cost = {identity: operation(kernel.spec.op).seconds(kernel, loaded) for identity, kernel in kernels.items()}
    release = choose_release(times, cost, reach, most)
    for step in release.steps:
        with_them = "".join(f" with {kernels[one].name}" for one in step.companions)
        click.echo(f"{step.efficiency:.4f} mean, {step.worst:.4f} worst, {step.cost:.0f} s: {step.kernel}{with_them}")
    content: dict[str, Any] = {
        "table": ", ".join(table.name for table in tables),
        "arch": arch,
        "dtype": dtype,
        "device": sorted({row.get("device", "") for row in rows}),
        "dates": sorted({row.get("date", "") for row in rows}),
        "problems": release.problems,
        "candidates": len({one.identity for one in times}),
        "kernels": [_step(step, kernels) for step in release.steps],
    }
    output.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    whole = [one["spec"] for step in content["kernels"] for one in (step, *step["companions"])]
    if specs_file:
        specs_file.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    if into:
        chosen = [entry(spec, dtype, other) for other in (dtype, *also) for spec in whole]
        click.echo(f"{into}: {add_to_rule_set(into, arch, chosen)} kernels for {arch}", err=True)


def _kernels(libraries: tuple[Path, ...], arch: Arch, needed: Collection[str]) -> dict[str, Kernel]:
    """Kernels by identity. Raises ValueError for an identity that no library holds."""
    from kernelwright.codegen.selecting.specs import parse_kernel
    from kernelwright.tile_engine.learning.examples import read_specs

    specs = read_specs(libraries, arch)
    if unknown := sorted(set(needed) - set(specs)):
        raise ValueError(f"no library holds kernel {unknown[0]} ({len(unknown)} such); add its folder with --library")
    return {identity: parse_kernel(dict(specs[identity]), arch) for identity in sorted(needed)}


def _step(step: Step, kernels: Mapping[str, Kernel]) -> dict[str, Any]:
    """A step as JSON values, with the specs of its kernels."""

    def described(identity: str) -> dict[str, Any]:
        kernel = kernels[identity]
        return {"identity": identity, "kernel": kernel.name, "spec": kernel.spec.model_dump(mode="json")}

    return {**vars(step), **described(step.identity), "companions": [described(one) for one in step.companions]}
