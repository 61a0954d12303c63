"""``kernelwright tile-engine``: measure every kernel of a library on problems of models."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kernelwright.arch import Arch, load
from kernelwright.arch.texts import shortened
from kernelwright.dispatch import KernelwrightError
from kernelwright.files.commands import os_error_code, os_error_text
from kernelwright.tile_engine.interface.bench_command import bench_command
from kernelwright.tile_engine.interface.coverage_command import coverage_command
from kernelwright.tile_engine.interface.enumerate_command import enumerate_command
from kernelwright.tile_engine.interface.learning_commands import evaluate_command, train_command, validate_command
from kernelwright.tile_engine.interface.problems_command import problems_command
from kernelwright.tile_engine.interface.release_command import release_command
from kernelwright.tile_engine.registry import operation_of_columns
from kernelwright.tile_engine.results.analysis import timed
from kernelwright.tile_engine.results.csv_file import read_columns, read_rows, write_best
from kernelwright.tile_engine.results.records import with_rates

_FAILED, _BAD_INPUT, _DEFECT = 1, 2, 4


@click.group("tile-engine", context_settings={"help_option_names": ["-h", "--help"]})
def tile_engine() -> None:
    """Measure kernels on problems of public models."""


for _command in (
    *(bench_command, problems_command, enumerate_command, release_command),
    *(train_command, evaluate_command, validate_command, coverage_command),
):
    tile_engine.add_command(_command)


@tile_engine.command("report")
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="An earlier table, to list regressions.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The HTML file.")
@click.option("--png", type=click.Path(path_type=Path), help="A folder for the charts as PNG files.")
@click.option(
    "--csv", "best_csv", type=click.Path(path_type=Path),
    help="A CSV file of the fastest kernel of each problem, beside the selected one.",
)  # fmt: skip
@click.option(
    "--library", "libraries", multiple=True, type=click.Path(path_type=Path),
    help="The kernels' library: charts then have short names, and few kernels' reach over the seconds of compiling.",
)  # fmt: skip
def report(
    table: Path,
    against: Path | None,
    output: Path,
    png: Path | None,
    best_csv: Path | None,
    libraries: tuple[Path, ...],
) -> None:
    """Write what TABLE says as one HTML page that needs no other file.

    Roofline, the dispatcher's choices against the fastest kernels, what few kernels reach, a heat map, the fastest
    kernel of each problem, failures, and regressions against an earlier table. Of tables of simulated devices, the
    kernels with the fewest instructions.
    """
    from kernelwright.problems.short_names import short_name
    from kernelwright.tile_engine.report.page import Input, page, write_pngs

    operation = operation_of_columns(read_columns(table))
    rows = with_rates(read_rows(table), operation)
    if not rows:
        raise ValueError(f"{table} has no rows; measure some with `tile-engine bench`")
    if against and operation_of_columns(read_columns(against)) != operation:
        raise ValueError(f"{against} is of another operation than {table}; compare tables of one problem set")
    earlier = Input(against.name, read_rows(against)) if against else None
    arch = load(rows[0]["arch"])
    specs = _specs(libraries, arch) if libraries else {}
    names = {row["identity"]: row["kernel"] for row in rows}
    short = {identity: short_name(spec, names.get(identity, identity)) for identity, spec in specs.items()}
    given = Input(table.name, rows, short)
    cost = _compile_seconds(specs, arch) if libraries else None
    output.write_text(page(given, operation.columns, arch, earlier, cost), "utf-8")
    if png:
        write_pngs(given, arch, png, cost)
    if best_csv:
        write_best(best_csv, timed(given.rows), operation.columns)
    click.echo(f"{output} written", err=True)


def _specs(libraries: Sequence[Path], arch: Arch) -> Mapping[str, Mapping[str, Any]]:
    """Specs of the libraries' kernels by identity."""
    from kernelwright.tile_engine.learning.examples import read_specs  # not needed without libraries

    return read_specs(libraries, arch)


def _compile_seconds(specs: Mapping[str, Mapping[str, Any]], arch: Arch) -> dict[str, float]:
    """Compile time in seconds by identity, as the generator estimates it."""
    from kernelwright.codegen.operation import operation
    from kernelwright.codegen.selecting.specs import parse_kernel

    kernels = {identity: parse_kernel(dict(spec), arch) for identity, spec in specs.items()}
    return {identity: operation(kernel.spec.op).seconds(kernel, arch) for identity, kernel in kernels.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code, as docs/exit_codes.md lists it."""
    stdout = sys.stdout
    try:
        tile_engine.main(arguments, prog_name="kernelwright tile-engine", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return _BAD_INPUT
    except (KeyboardInterrupt, click.Abort):  # Abort is a RuntimeError too
        click.echo("interrupted", err=True)
        return _FAILED
    except OSError as error:
        click.echo(f"error: {os_error_text(error)}", err=True)
        return os_error_code(error)
    except (ValueError, RuntimeError, KernelwrightError) as error:
        click.echo(f"error: {shortened(str(error))}", err=True)
        return _BAD_INPUT
    except SystemExit as end:
        return int(end.code or 0) if sys.stdout is stdout else 0  # click replaces stdout if its reader is gone
    except Exception:
        traceback.print_exc()
        click.echo("error: this is a defect of kernelwright; please report it with the lines above", err=True)
        return _DEFECT
    return 0


if __name__ == "__main__":
    sys.exit(main())
