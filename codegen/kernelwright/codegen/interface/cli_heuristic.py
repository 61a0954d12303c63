"""``kernelwright heuristic``: compile a trained selection model."""

from __future__ import annotations

from pathlib import Path

import click

from kernelwright.codegen.interface.cli_parts import TREES_HELP, tree_roots


@click.command("heuristic")
@click.argument("model", type=click.Path())
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The library, such as out/libpick.so.")
@click.option("--trees", "tree_file", metavar="FILE", help=TREES_HELP)
@click.option("--cache", metavar="DIR", help="Where results are kept (default: .cache beside the output).")
def heuristic(model: str, output: Path, tree_file: str | None, cache: str | None) -> None:
    """Compile MODEL, which `kernelwright tile-engine train` wrote, to a library for Dispatcher(selection=…).

    A model that is truncated, was altered or was trained on other features is refused.
    """
    from typing import cast

    from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, toolchain
    from kernelwright.codegen.building.execute import LocalExecutor
    from kernelwright.codegen.building.store import write_atomically
    from kernelwright.codegen.planning.heuristic import heuristic_plan
    from kernelwright.codegen.toolchains.host import HostToolchain

    host = cast(HostToolchain, toolchain("host", DEFAULT_TOOLCHAINS["host"]))
    source, actions = heuristic_plan(model, output.name, host)
    executor = LocalExecutor(
        tree_roots=tree_roots(tree_file),
        cache=Path(cache) if cache else output.parent / ".cache",
        jobs=1,
        progress=lambda line: click.echo(line, err=True),
    )
    write_atomically(output, executor.run([source], actions)[output.name].read_bytes())
    click.echo(str(output))
