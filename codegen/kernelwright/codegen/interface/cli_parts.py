"""Commands that parse their own arguments, including those of optional parts; installed compilers; choices of words."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from kernelwright.codegen.interface.cli_complete import JitCommand, complete_jit
from kernelwright.codegen.violations import SpecError, closest

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


class Choice(click.Choice):  # type: ignore[type-arg]  # which takes no type before click 8.2
    """One of several words; the error for another proposes the closest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert as click does."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            text = proposing(error.message, value, map(str, self.choices))
            raise click.BadParameter(text, ctx, param) from None


def proposing(message: str, word: object, allowed: Iterable[str]) -> str:
    """Return a message of click's that ends with the proposal for a misspelt word, if one is close."""
    return f"{message.removesuffix('.')}{closest(word, allowed)}."
