"""Shell completion of architectures, sets, and the options of ``kernelwright jit``."""

from __future__ import annotations

import argparse
import importlib

import click
from click.shell_completion import CompletionItem

from kernelwright.codegen.selecting.selection import load_archs
from kernelwright.codegen.selecting.sets import set_names
from kernelwright.files.arch_files import simulated


def complete_arch(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Architectures that begin with ``incomplete``."""
    return [name for name in sorted(load_archs()) if name.startswith(incomplete)]


def complete_set(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Kernel sets that begin with ``incomplete``, with the operation or, if there is no match, without it."""
    names = sorted(set_names())
    begin = [name for name in names if name.startswith(incomplete)]
    return begin or [name for name in names if name.partition(":")[2].startswith(incomplete)]


def complete_jit(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str] | list[CompletionItem]:
    """Values of the ``kernelwright jit`` option before the cursor."""
    given = context.params.get("arguments") or ()
    option = str(given[-1]) if given else ""
    if option == "--arch":
        return complete_arch(context, parameter, incomplete)
    if option == "--set":
        return complete_set(context, parameter, incomplete)
    if option == "--device":
        devices = ("cpu", "cuda:0", "hip:0", *(f"sim:{one.name}" for one in simulated()))
        return [name for name in devices if name.startswith(incomplete)]
    if option in ("--config", "--spec", "--problems", "--cache"):
        return [CompletionItem(incomplete, type="dir" if option == "--cache" else "file")]
    return []


class JitCommand(click.Command):
    """``kernelwright jit``, which passes its arguments to a parser of its own."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Matching options of that parser; none where its package is not installed."""
        try:
            parser: argparse.ArgumentParser = importlib.import_module("kernelwright.jit.command").parser()
        except ModuleNotFoundError:
            return []
        options = (name for action in parser._actions for name in action.option_strings)
        return [CompletionItem(name) for name in sorted(options) if name.startswith(incomplete)]
