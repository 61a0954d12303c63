"""Commands that write generated files of this repository; a test compares them with what is checked in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click


@click.command("plugin-data")
def plugin_data() -> None:
    """Print BUILD fields and trees as JSON, for the Pants plugin."""
    from kernelwright.codegen.interface.plugin_data import plugin_data_text

    click.echo(plugin_data_text(), nl=False)


@click.command("formulas")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def formulas(folder: Path) -> None:
    """Write the C headers of formulas and rules below FOLDER, and launchers' beside it: dispatcher_cpp/include."""
    from kernelwright.codegen.formulas.made import headers

    _write(headers(), folder)


@click.command("headers")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def headers(folder: Path) -> None:
    """Write the C headers of the operations' descriptions below FOLDER, which is dispatcher_cpp/include."""
    from kernelwright.codegen.descriptions.made import headers

    _write(headers(), folder)


def _write(texts: Mapping[str, str], folder: Path) -> None:
    for name, text in texts.items():
        path = (folder if name.startswith("kernelwright/") else folder.parent) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        click.echo(path)
