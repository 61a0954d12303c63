"""``kernelwright tile-engine enumerate``: the kernels that a trait configuration describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kernelwright.arch import load
from kernelwright.tile_engine.interface.patterns import Patterns, pattern_options


@click.command("enumerate")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--arch", required=True, help="The architecture.")
@click.option("--variant", help="The variant, where CONFIG does not state it, such as gemm_universal.")
@click.option("--dtype", help="The element type of its problem, where CONFIG does not state it.")
@click.option("--layout", help="The layout of its problem, where CONFIG does not state it, such as rcr.")
@click.option("--count-only", is_flag=True, help="Print the number of kernels.")
@click.option("--list", "as_list", is_flag=True, help="Print name and identity of each kernel (the default).")
@click.option("--filter", "expression", metavar="EXPR", help="Only kernels c for which this is true: c.tile_n >= 128.")
@pattern_options
@click.option("--export-json", type=click.Path(path_type=Path), help="Write specs for `kernelwright build --spec`.")
def enumerate_command(
    config: Path,
    arch: str,
    variant: str | None,
    dtype: str | None,
    layout: str | None,
    count_only: bool,
    as_list: bool,
    expression: str | None,
    export_json: Path | None,
    **patterns: Any,
) -> None:
    """Print the legal kernels that CONFIG, a JSON file with `variant` and `trait_config`, describes; none is an error.

    Each field of trait_config is {"values": […]}, the list alone, or {"min", "max", "step", "exclude"}. With
    trait_config alone it narrows the operation's tables; with tile_config the kernels are the product of all fields.
    """
    from kernelwright.codegen.inputs import read_json
    from kernelwright.codegen.selecting.filters import apply_filter
    from kernelwright.tile_engine.enumerating.trait_config import enumerate_kernels, with_options

    stated = with_options(read_json(config), variant=variant, dtype=dtype, layout=layout)
    kernels = list(enumerate_kernels(stated, load(arch)))
    if expression is not None:
        kernels = apply_filter(expression, kernels)
    kernels = Patterns.of(patterns).matching(kernels, f"the {len(kernels)} kernels of {config}")
    if export_json:
        specs = [kernel.spec.model_dump(mode="json") for kernel in kernels]
        export_json.write_text(json.dumps(specs, indent=1) + "\n", "utf-8")
    if count_only:
        click.echo(len(kernels))
    if as_list or not (count_only or export_json):
        for kernel in kernels:
            click.echo(f"{kernel.name} {kernel.identity}")
