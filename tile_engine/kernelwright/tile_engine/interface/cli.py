"""``kernelwright tile-engine``: measure every kernel of a library on problems of models."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import click

from kernelwright.arch import Arch, load
from kernelwright.dispatch import Device, Dispatcher, KernelEntry, KernelLibrary, KernelwrightError, NoKernelError
from kernelwright.tile_engine.bench import measure
from kernelwright.tile_engine.interface.enumerate_command import enumerate_command
from kernelwright.tile_engine.interface.learning_commands import evaluate_command, train_command, validate_command
from kernelwright.tile_engine.interface.patterns import Patterns, pattern_options
from kernelwright.tile_engine.interface.progress import ProgressLine
from kernelwright.tile_engine.interface.release_command import release_command
from kernelwright.tile_engine.measuring.executors import require_timed
from kernelwright.tile_engine.measuring.isolation import Child
from kernelwright.tile_engine.measuring.measure import OK, REFUSED
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.registry import KEYS, operation_of, problems
from kernelwright.tile_engine.registry import OPERATIONS, columns_of, measurable
from kernelwright.tile_engine.results.csv_file import CsvFile, measured_before, read_columns, read_rows
from kernelwright.tile_engine.results.junit import write_junit
from kernelwright.tile_engine.results.row import Table

_FAILED, _BAD_INPUT, _WRONG = 1, 2, 3
_VARIANT = (
    "The operation, or a variant of it as in trait configurations, such as forward or fmha_bwd [default: that of the "
    "problems' key, gemm for files]."
)


@click.group("tile-engine", context_settings={"help_option_names": ["-h", "--help"]})
def tile_engine() -> None:
    """Measure kernels on problems of public models."""


for _command in (enumerate_command, train_command, evaluate_command, validate_command, release_command):
    tile_engine.add_command(_command)


@tile_engine.command("problems")
@click.argument("named", required=False)
@click.option("--variant", default="gemm", show_default=True, help="The operation.")
def list_problems(named: str | None, variant: str) -> None:
    """List the keys of problem sets, or the problems of the set or JSON file NAMED as CSV."""
    if named is None:
        for key in KEYS:
            click.echo(key)
        return
    operation, _ = _operation(operation_of(named) or variant)
    click.echo(",".join(operation.columns))
    for record in problems(operation, named):
        click.echo(",".join(str(record[column]) for column in operation.columns))


@tile_engine.command("bench")
@click.option("--variant", help=_VARIANT)
@click.option("--library", required=True, type=click.Path(path_type=Path), help="Folder with <arch>/manifest.json.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda:N or sim:ARCH.")
@click.option("--problems", "named", required=True, help="A key of `tile-engine problems`, or a JSON file.")
@pattern_options
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The CSV file.")
@click.option("--append", is_flag=True, help="Continue an existing file.")
@click.option("--resume", is_flag=True, help="Continue an existing file, without the pairs that it has.")
@click.option("--batch-size", default=20, show_default=True, type=click.IntRange(1), help="Kernels of a child process.")
@click.option("--kernel-timeout", default=30.0, show_default=True, help="Seconds that a kernel may take in one go.")
@click.option("--warmup", default=3, show_default=True, help="Launches before the first timed one.")
@click.option("--repeat", default=0, help="Launches in a round [default: as many as --duration allows].")
@click.option("--duration", default=0.2, show_default=True, help="Seconds of timed launches of a kernel in all.")
@click.option("--rounds", default=5, show_default=True, help="Rounds, in which the kernels of a batch take turns.")
@click.option("--flush-cache", is_flag=True, help="Overwrite a CPU's caches before each round.")
@click.option("--rotating-buffers", default=1, show_default=True, help="Sets of operands that launches rotate through.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Compare with exact results first.")
@click.option("--tags", multiple=True, metavar="KEY=VALUE", help="Written into each row.")
@click.option("--junit", type=click.Path(path_type=Path), help="A JUnit XML file of the rows of this run.")
def bench(**options: Any) -> None:
    """Time every kernel of a library on every problem, each checked first, into a CSV file.

    A hang, a crash or a wrong result is a row with its reason, and the run goes on. Ctrl-C keeps all finished rows;
    --resume continues. Exit code 3 if a result was wrong, 1 if a kernel hung, crashed or failed.
    """
    statuses = _bench(options)
    if "wrong" in statuses:
        sys.exit(_WRONG)
    if statuses - {OK, REFUSED}:
        sys.exit(_FAILED)


@tile_engine.command("report")
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="An earlier table, to list regressions.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The HTML file.")
@click.option("--png", type=click.Path(path_type=Path), help="A folder for the charts as PNG files.")
@click.option(
    "--library", "libraries", multiple=True, type=click.Path(path_type=Path),
    help="The kernels' library: what few kernels reach is then drawn over the seconds that they take to compile.",
)  # fmt: skip
def report(table: Path, against: Path | None, output: Path, png: Path | None, libraries: tuple[Path, ...]) -> None:
    """Write what TABLE says as one HTML page that needs no other file.

    Roofline, the dispatcher's choices against the fastest kernels, what few kernels reach, a heat map, the fastest
    kernel of each problem, failures, and regressions against an earlier table.
    """
    from kernelwright.tile_engine.report.page import Input, page, write_pngs

    given = Input(table.name, read_rows(table))
    earlier = Input(against.name, read_rows(against)) if against else None
    arch = load(given.rows[0]["arch"]) if given.rows else None
    cost = _compile_seconds(libraries, arch) if libraries and arch else None
    output.write_text(page(given, columns_of(read_columns(table)), arch, earlier, cost), "utf-8")
    if png:
        write_pngs(given, arch, png, cost)
    click.echo(f"{output} written", err=True)


def _compile_seconds(libraries: Sequence[Path], arch: Arch) -> dict[str, float]:
    """Seconds of compiling by identity, as the generator estimates them."""
    from kernelwright.codegen.operation import operation
    from kernelwright.codegen.selecting.specs import parse_kernel
    from kernelwright.tile_engine.learning.examples import read_specs

    specs = read_specs(libraries, arch)
    kernels = {identity: parse_kernel(dict(spec), arch) for identity, spec in specs.items()}
    return {identity: operation(kernel.spec.op).seconds(kernel, arch) for identity, kernel in kernels.items()}


def _bench(options: dict[str, Any]) -> set[str]:
    """The statuses that rows of this run have."""
    settings = Settings(
        **{name: options[name] for name in ("warmup", "repeat", "rounds", "flush_cache", "rotating_buffers", "verify")},
        duration_s=options["duration"],
    )
    operation, chosen = _operation(options["variant"] or operation_of(options["named"]) or "gemm")
    device = Device(options["device"])
    require_timed(device)
    records = problems(operation, options["named"])
    library = KernelLibrary.load_for(device, options["library"])
    kernels = _matching([kernel for kernel in library.kernels if chosen(kernel)], options, operation.name)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()  # noqa: UP017 - as in Python 3.9
    table = Table(operation, load(library.arch), device.name, date, ";".join(options["tags"]))
    path: Path = options["output"]
    done = measured_before(path, records, device.name) if options["resume"] and path.exists() else set()
    child = Child(library.manifest.path, device.name, operation.name, settings, options["kernel_timeout"])
    dispatcher = Dispatcher(library, device=device)

    def choose(record: Record) -> Collection[str]:
        try:
            return {stage.kernel.identity for stage in dispatcher.plan(operation.problem(record)).stages}
        except NoKernelError:
            return ()

    rows = []
    with CsvFile(path, table.columns, append=options["append"] or options["resume"]) as file:
        for row in measure(table, child, kernels, records, done, options["batch_size"], choose, ProgressLine()):
            file.write(row)
            rows.append(row)
    if options["junit"]:
        write_junit(options["junit"], rows)
    click.echo(f"{len(rows)} rows written to {path}", err=True)
    return {row["status"] for row in rows}


def _operation(word: str) -> tuple[Measurable, Callable[[KernelEntry], bool]]:
    """The operation of a variant, and which kernels of it the word stands for. ValueError for an unknown word."""
    if word in OPERATIONS:
        return measurable(word), lambda kernel: True
    from kernelwright.codegen.selecting.specs import parse_kernel
    from kernelwright.tile_engine.enumerating.trait_config import keeps
    from kernelwright.tile_engine.enumerating.variants import variant

    meant = variant(word)

    def chosen(kernel: KernelEntry) -> bool:
        own = str(kernel.spec.get("op", "gemm")) == meant.operation
        return own and keeps(parse_kernel(dict(kernel.spec), load(kernel.arch)), meant.axes)

    return measurable(meant.operation), chosen


def _matching(kernels: Sequence[KernelEntry], options: dict[str, Any], operation: str) -> list[KernelEntry]:
    """Kernels of the operation that the patterns choose. ValueError for none."""
    served = [kernel for kernel in kernels if str(kernel.spec.get("op", "gemm")) == operation]
    return Patterns.of(options).matching(served, f"the {len(served)} {operation} kernels of the library")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code as docs/exit_codes.md has it."""
    try:
        tile_engine.main(arguments, prog_name="kernelwright tile-engine", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return _BAD_INPUT
    except (ValueError, OSError, RuntimeError, KernelwrightError) as error:
        click.echo(f"error: {error}", err=True)
        return _BAD_INPUT
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted: rows so far are in the file; --resume continues", err=True)
        return _FAILED
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
