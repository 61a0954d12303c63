"""Commands that parse their own arguments, including those of optional parts; installed compilers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kernelwright.codegen.interface.cli_complete import JitCommand, complete_jit
from kernelwright.codegen.violations import SpecError

_PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}
TREES_HELP = "JSON object: tree name to folder. Default: KERNELWRIGHT_TREES, else the installed wheels, as for JIT."


def tree_roots(file: str | None) -> Mapping[str, Path]:
    """Return the folders that a file of ``--trees`` names; without one, those that JIT uses, each found on demand."""
    from kernelwright.codegen.building.build import read_tree_roots

    if file is not None:
        return read_tree_roots(file)
    trees: Mapping[str, Path] = part("kernelwright.jit.toolchains", "jit").InstalledTrees()
    return trees


def part(module: str, extra: str) -> Any:
    """Import a module of a part that may not be installed. SpecError says what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise SpecError(f"this command needs the package {error.name}; pip install 'kernelwright[{extra}]'") from None


@click.command("quality", context_settings=_PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def quality(arguments: tuple[str, ...]) -> int:
    """Show what bounds the kernels of libraries: clocks, bank conflicts, occupancy. See kernelwright quality --help."""
    from kernelwright.codegen.resources.quality import main

    return main(arguments)


@click.command("compare", context_settings=_PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def compare(arguments: tuple[str, ...]) -> int:
    """Show what a change did to the kernels of a library. See kernelwright compare --help."""
    from kernelwright.codegen.resources.compare import main

    return main(arguments)


@click.command("jit", JitCommand, context_settings=_PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_jit)
def jit(arguments: tuple[str, ...]) -> int:
    """Compile kernels that are missing into the cache, print the path of their library. See kernelwright jit --help."""
    code: int = part("kernelwright.jit.command", "jit").main(arguments)
    return code


@click.command("tile-engine", context_settings=_PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def tile_engine(arguments: tuple[str, ...]) -> int:
    """Measure kernels on problems of public models, report, train selection. See kernelwright tile-engine --help."""
    code: int = part("kernelwright.tile_engine.interface.cli", "build").main(list(arguments))
    return code


@click.command("coverage", context_settings=_PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def coverage(arguments: tuple[str, ...]) -> int:
    """Show which problems of public models the kernels of libraries serve. See kernelwright coverage --help."""
    code: int = part("kernelwright.tile_engine.interface.cli", "build").main(["coverage", *arguments])
    return code
