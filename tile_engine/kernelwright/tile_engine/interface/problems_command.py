"""``kernelwright tile-engine problems``: the keys of problem sets, and the problems of one as CSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from kernelwright.tile_engine.interface.bench_command import operation_of_variant
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.registry import KEYS, operation_of, problems


@click.command("problems")
@click.argument("named", required=False)
@click.option("--variant", default="gemm", show_default=True, help="The operation of a JSON file's problems.")
@click.option(
    "--most-operations", type=click.FloatRange(0, min_open=True), help="Leave out problems of more, such as 1e9."
)
@click.option(
    "--every", default=1, show_default=True, type=click.IntRange(1), help="Of these, the first of each so many."
)
@click.option("--json", "as_json", is_flag=True, help="As a file that `bench --problems` reads, in place of CSV.")
def problems_command(named: str | None, variant: str, most_operations: float | None, every: int, as_json: bool) -> None:
    """List the keys of problem sets, or the problems of the set or JSON file NAMED."""
    if named is None:
        for key in KEYS:
            click.echo(key)
        return
    operation, _ = operation_of_variant(operation_of(named) or variant)
    chosen = _chosen(operation, problems(operation, named), most_operations, every)
    if not chosen:
        raise ValueError(f"no problem of {named} has at most {most_operations:g} operations; allow more")
    if as_json:
        click.echo('{"problems": [\n' + ",\n".join(json.dumps(record) for record in chosen) + "\n]}")
        return
    click.echo(",".join(operation.columns))
    for record in chosen:
        click.echo(",".join(str(record[column]) for column in operation.columns))


def _chosen(
    operation: Measurable, records: Sequence[Record], most_operations: float | None, every: int
) -> Sequence[Record]:
    bounded = [one for one in records if most_operations is None or operation.flops(one) <= most_operations]
    return bounded[::every]
