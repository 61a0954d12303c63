"""``kernelwright tile-engine problems``: the keys of problem sets, and the problems of one as CSV or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import click

from kernelwright.tile_engine.interface.bench_command import operation_of_variant, stated_variant
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.registry import KEYS, problems

_ABOVE_0 = click.FloatRange(0, min_open=True)


@click.command("problems")
@click.argument("named", required=False)
@click.option("--variant", help="The operation of a JSON file's problems, where the file does not say it.")
@click.option("--most-operations", type=_ABOVE_0, help="Leave out problems of more, such as 1e9.")
@click.option("--most-bytes", type=_ABOVE_0, help="Leave out problems that read and write more.")
@click.option(
    "--every", default=1, show_default=True, type=click.IntRange(1), help="Of these, the first of each so many."
)
@click.option("--json", "as_json", is_flag=True, help="As a file that `bench --problems` reads, in place of CSV.")
def problems_command(
    named: str | None,
    variant: str | None,
    most_operations: float | None,
    most_bytes: float | None,
    every: int,
    as_json: bool,
) -> None:
    """List the keys of problem sets, or the problems of the set or JSON file NAMED."""
    if named is None:
        click.echo(json.dumps(KEYS) if as_json else "\n".join(KEYS))
        return
    operation, _ = operation_of_variant(stated_variant(variant, named))
    bounds = most_operations or math.inf, most_bytes or math.inf
    chosen = _chosen(operation, problems(operation, named), *bounds)[::every]
    if not chosen:
        raise ValueError(
            f"no problem of {named} has at most {bounds[0]:g} operations and {bounds[1]:g} bytes; allow more"
        )
    if as_json:
        click.echo(
            f'{{"op": {json.dumps(operation.name)}, "problems": [\n'
            + ",\n".join(json.dumps(record) for record in chosen)
            + "\n]}"
        )
        return
    click.echo(",".join(operation.columns))
    for record in chosen:
        click.echo(",".join(str(record[column]) for column in operation.columns))


def _chosen(
    operation: Measurable, records: Sequence[Record], most_operations: float, most_bytes: float
) -> Sequence[Record]:
    return [
        one for one in records if operation.flops(one) <= most_operations and operation.bytes_moved(one) <= most_bytes
    ]
