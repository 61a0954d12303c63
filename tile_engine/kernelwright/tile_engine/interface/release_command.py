"""``kernelwright tile-engine release``: the kernels of a release set, from tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kernelwright.arch import load

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
@click.option("--into", type=_PATH, help="The rule set's file that gets the kernels, such as release.json.")
@click.option("--output", required=True, type=_PATH, help="Where the choice goes, with its provenance, as JSON.")
def release_command(
    tables: tuple[Path, ...], libraries: tuple[Path, ...], arch: str, dtype: str, reach: float, most: int | None,
    also: tuple[str, ...], into: Path | None, output: Path,
) -> None:  # fmt: skip
    """Choose the fewest kernels that reach a share of the fastest kernels' speed, by a greedy cover.

    Each next kernel gains most for a second of compiling, as the generator estimates it. Choose on tuning problems.
    """
    from kernelwright.codegen.operation import operation
    from kernelwright.codegen.selecting.specs import parse_kernel
    from kernelwright.tile_engine.learning.examples import read_specs
    from kernelwright.tile_engine.results.analysis import timed
    from kernelwright.tile_engine.results.csv_file import read_rows
    from kernelwright.tile_engine.results.release import add_to_rule_set, choose_release, entry

    if len(tables) > 1:
        raise ValueError("problems of several tables have the same numbers; give one --table")
    loaded = load(arch)
    specs = read_specs(libraries, loaded)
    rows = [row for row in read_rows(tables[0]) if row["dtype"] == dtype and row["arch"] == arch]
    times = timed(rows)
    if unknown := sorted({one.identity for one in times} - set(specs)):
        raise ValueError(f"no library holds kernel {unknown[0]} ({len(unknown)} such); add its folder with --library")
    kernels = {one.identity: parse_kernel(dict(specs[one.identity]), loaded) for one in times}
    cost = {identity: operation(kernel.spec.op).seconds(kernel, loaded) for identity, kernel in kernels.items()}
    found = choose_release(times, cost, reach, most)
    for step in found.steps:
        click.echo(f"{step.efficiency:.4f} mean, {step.worst:.4f} worst, {step.cost:.0f} s: {step.kernel}")
    content: dict[str, Any] = {
        "table": tables[0].name,
        "arch": arch,
        "dtype": dtype,
        "device": sorted({row["device"] for row in rows}),
        "dates": sorted({row["date"] for row in rows}),
        "problems": found.problems,
        "candidates": len(kernels),
        "kernels": [
            {**vars(step), "spec": kernels[step.identity].spec.model_dump(mode="json")} for step in found.steps
        ],
    }
    output.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    if into:
        chosen = [entry(one["spec"], dtype, other) for other in (dtype, *also) for one in content["kernels"]]
        count = add_to_rule_set(into, arch, chosen)
        click.echo(f"{into}: {count} kernels for {arch}", err=True)
