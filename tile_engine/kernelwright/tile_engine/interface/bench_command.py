"""``kernelwright tile-engine bench``: time kernels of a library, or of a configuration, on problems."""

from __future__ import annotations

import datetime
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kernelwright.arch import load
from kernelwright.dispatch import Device, KernelEntry, KernelLibrary
from kernelwright.tile_engine.bench import measure
from kernelwright.tile_engine.interface.patterns import Patterns, pattern_options
from kernelwright.tile_engine.interface.progress import ProgressLine
from kernelwright.tile_engine.measuring.choosing import LibraryHangsError, choices
from kernelwright.tile_engine.measuring.isolation import Child
from kernelwright.tile_engine.measuring.measure import OK, REFUSED
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.operation import Measurable
from kernelwright.tile_engine.problems.registry import operation_of, problems
from kernelwright.tile_engine.registry import OPERATIONS, measurable
from kernelwright.tile_engine.results.csv_file import CsvFile, measured_before
from kernelwright.tile_engine.results.junit import write_junit
from kernelwright.tile_engine.results.row import Table

_FAILED, _WRONG = 1, 3
_VARIANT = (
    "The operation, or a variant of it as in trait configurations, such as forward or fmha_bwd [default: that of the "
    "configuration, or of the problems' key or file]."
)


@click.command("bench")
@click.option("--variant", help=_VARIANT)
@click.option("--library", type=click.Path(path_type=Path), help="Folder with <arch>/manifest.json.")
@click.option(
    "--config", type=click.Path(path_type=Path),
    help="A trait configuration in place of a library: its kernels are compiled first, through kernelwright.jit.",
)  # fmt: skip
@click.option("--workers", type=click.IntRange(1), help="Compilers at once [default: one for each core].")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda:N, hip:N or sim:ARCH.")
@click.option("--problems", "named", required=True, help="A key of `tile-engine problems`, or a JSON file.")
@pattern_options
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The CSV file.")
@click.option("--append", is_flag=True, help="Continue an existing file.")
@click.option("--resume", is_flag=True, help="Continue an existing file, without the pairs that it has.")
@click.option("--batch-size", default=20, show_default=True, type=click.IntRange(1), help="Kernels of a child process.")
@click.option(
    "--kernel-timeout", default=30.0, show_default=True, type=click.FloatRange(0, min_open=True),
    help="Seconds that a kernel may take in one go.",
)  # fmt: skip
@click.option("--warmup", default=3, show_default=True, help="Launches before the first timed one.")
@click.option(
    "--warm-clocks",
    default=0.1,
    show_default=True,
    help="Seconds of launches before the first round, so that clocks rise.",
)
@click.option("--repeat", default=0, help="Launches in a round [default: as many as --duration allows].")
@click.option("--duration", default=0.2, show_default=True, help="Seconds of timed launches of a kernel in all.")
@click.option("--rounds", default=5, show_default=True, help="Rounds, in which the kernels of a batch take turns.")
@click.option("--flush-cache", is_flag=True, help="Overwrite a CPU's caches before each round.")
@click.option("--rotating-buffers", default=1, show_default=True, help="Sets of operands that launches rotate through.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Compare with exact results first.")
@click.option("--tags", multiple=True, metavar="KEY=VALUE", help="Written into each row.")
@click.option("--junit", type=click.Path(path_type=Path), help="A JUnit XML file of the rows of this run.")
def bench_command(**options: Any) -> None:
    """Time every kernel of a library on every problem, each checked first, into a CSV file.

    A hang, a crash or a wrong result is a row with its reason, and the run goes on. Ctrl-C keeps all finished rows;
    --resume continues. Exit code 3 if a result was wrong, 1 if a kernel hung, crashed or failed.
    """
    statuses = _bench(options)
    if "wrong" in statuses:
        sys.exit(_WRONG)
    if statuses - {OK, REFUSED}:
        sys.exit(_FAILED)


def _bench(options: dict[str, Any]) -> set[str]:
    """Run the benchmark. Returns the statuses of its rows."""
    settings = Settings(
        **{name: options[name] for name in ("warmup", "repeat", "rounds", "flush_cache", "rotating_buffers", "verify")},
        duration_s=options["duration"],
        warm_s=options["warm_clocks"],
    )
    config = _config(options)
    operation, chosen = operation_of_variant(stated_variant(options["variant"], options["named"], config))
    device = Device(options["device"])
    records = problems(operation, options["named"])
    if config is None:  # children load it: running its constructors is left to them
        manifest = KernelLibrary.find_for(device, options["library"])
    else:
        manifest = _built(config, device, options).manifest
    kernels = _matching([kernel for kernel in manifest.kernels if chosen(kernel)], options, operation.name)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()  # noqa: UP017 - as in Python 3.9
    units = len(os.sched_getaffinity(0)) if device.kind == "cpu" else 0
    table = Table(operation, load(manifest.arch), device.name, date, _tags(options["tags"]), units)
    path: Path = options["output"]
    done = measured_before(path, records, device.name) if options["resume"] and path.exists() else set()
    child = Child(manifest.path, device.name, operation.name, settings, options["kernel_timeout"])
    unmeasured = {
        index: record
        for index, record in enumerate(records)
        if any((index, kernel.identity) not in done for kernel in kernels)
    }
    try:
        chosen_by = choices(child, unmeasured, lambda text: click.echo(f"warning: {text}", err=True))
    except LibraryHangsError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(_FAILED)
    rows = []
    try:
        with CsvFile(path, table.columns, append=options["append"] or options["resume"]) as file:
            for row in measure(table, child, kernels, records, done, options["batch_size"], chosen_by, ProgressLine()):
                file.write(row)
                rows.append(row)
    except KeyboardInterrupt:
        click.echo(f"{len(rows)} rows written to {path}; the same command with --resume continues", err=True)
        raise
    finally:  # an interrupted run has rows too
        if options["junit"]:
            write_junit(options["junit"], rows)
    statuses = Counter(row["status"] for row in rows)
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    click.echo(f"{len(rows)} rows written to {path}{f': {counted}' if counted else ''}", err=True)
    return set(statuses)


def _tags(pairs: Sequence[str]) -> str:
    """Format the pairs as a row holds them. Raises ValueError for an item that is not a key and a value."""
    for pair in pairs:
        key, equals, _ = pair.partition("=")
        if not key or not equals or ";" in pair:
            raise ValueError(
                f"--tags is {pair!r}; write KEY=VALUE without a semicolon, and the option again for another"
            )
    return ";".join(pairs)


def _config(options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The trait configuration, or None for a library. Raises ValueError unless exactly one of the two is given."""
    if (options["library"] is None) == (options["config"] is None):
        raise ValueError("give one of --library, a folder with <arch>/manifest.json, and --config, a JSON file")
    if options["config"] is None:
        return None
    from kernelwright.codegen.inputs import read_json

    document = read_json(options["config"])
    if not isinstance(document, Mapping):
        raise ValueError(f"{options['config']} is no object with variant and trait_config")
    return document if options["variant"] is None else {"variant": options["variant"], **document}


def _built(config: Mapping[str, Any], device: Device, options: Mapping[str, Any]) -> KernelLibrary:
    """A library of the configuration's kernels that match the patterns, compiled if missing."""
    from kernelwright.jit import BuildFailedError, Registry
    from kernelwright.tile_engine.enumerating.trait_config import enumerate_kernels

    registry = Registry(device, name="tile_engine")
    kernels = enumerate_kernels(config, registry.arch)
    for kernel in Patterns.of(options).matching(kernels, f"the {len(kernels)} kernels of {options['config']}"):
        registry.add(kernel.spec.model_dump(mode="json"))
    try:
        return registry.build(options["workers"])
    except BuildFailedError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(_FAILED)


def stated_variant(given: str | None, named: str, config: Mapping[str, Any] | None = None) -> str:
    """The variant stated by an option, a configuration, or the problems' key or file. ValueError if none states it."""
    word = given or (config or {}).get("variant") or operation_of(named)
    if not word:
        raise ValueError(
            f"{named} does not say of which operation its problems are; allowed: {', '.join(OPERATIONS)}; add "
            '--variant, or write {"op": …, "problems": […]} in the file'
        )
    return str(word)


def operation_of_variant(word: str) -> tuple[Measurable, Callable[[KernelEntry], bool]]:
    """The operation of a variant, and a predicate for its kernels. Raises ValueError for an unknown word."""
    if word in OPERATIONS:
        return measurable(word), lambda kernel: True
    from kernelwright.codegen.selecting.specs import parse_kernel
    from kernelwright.tile_engine.enumerating.trait_config import keeps
    from kernelwright.tile_engine.enumerating.variants import variant

    meant = variant(word)

    def chosen(kernel: KernelEntry) -> bool:
        return kernel.spec["op"] == meant.operation.name and keeps(
            parse_kernel(dict(kernel.spec), load(kernel.arch)), meant.axes
        )

    return meant.operation, chosen


def _matching(kernels: Sequence[KernelEntry], options: dict[str, Any], operation: str) -> list[KernelEntry]:
    """Kernels of the operation that match the patterns. Raises ValueError if there are none."""
    served = [kernel for kernel in kernels if kernel.spec["op"] == operation]
    return Patterns.of(options).matching(served, f"the {len(served)} {operation} kernels of the library")
