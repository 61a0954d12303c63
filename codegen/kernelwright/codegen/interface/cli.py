"""The command line ``kernelwright``: list kernels, render, plan, build, package, verify and sign, show and evict."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import click

from kernelwright.arch import ArchError
from kernelwright.codegen.backends.registry import toolchain_words
from kernelwright.codegen.interface.cli_arch import arch as arch_command
from kernelwright.codegen.interface.cli_cache import cache as cache_command
from kernelwright.codegen.interface.cli_complete import complete_arch, complete_set
from kernelwright.codegen.interface.cli_generate import generate
from kernelwright.codegen.interface.cli_heuristic import heuristic
from kernelwright.codegen.interface.cli_made import formulas, headers, plugin_data
from kernelwright.codegen.interface.cli_parts import (
    TREES_HELP,
    compare,
    coverage,
    jit,
    part,
    quality,
    tile_engine,
    tree_roots,
)
from kernelwright.codegen.interface.cli_sign import sign, verify_packages
from kernelwright.codegen.interface.exit_codes import (
    EXIT_BAD_INPUT,
    EXIT_DEFECT,
    EXIT_FAILED,
)
from kernelwright.codegen.operation import operation, operation_names
from kernelwright.codegen.selecting.selection import Selection, load_archs, select
from kernelwright.codegen.violations import SpecError, closest
from kernelwright.files.commands import os_error_code, os_error_text

_Command = TypeVar("_Command", bound=Callable[..., Any])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; an exit code of :mod:`kernelwright.codegen.interface.exit_codes`."""
    from kernelwright.codegen.building.execute import ActionError
    from kernelwright.codegen.packaging.bundle import BrokenKernelError
    from kernelwright.codegen.resources.limits import LimitError

    stdout = sys.stdout
    try:
        code = kernelwright.main(args=arguments, prog_name="kernelwright", standalone_mode=False)
    except click.exceptions.Abort:
        _complain("interrupted")
        return EXIT_FAILED
    except click.ClickException as error:
        error.show()
        return EXIT_BAD_INPUT
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        return 0
    except SystemExit:
        if sys.stdout is not stdout:  # click replaces it where its reader is gone, and ends with 1
            return 0
        raise
    except (SpecError, ArchError) as error:
        _complain(str(error))
        return EXIT_BAD_INPUT
    except OSError as error:
        _complain(os_error_text(error))
        return os_error_code(error)
    except (ActionError, BrokenKernelError, LimitError) as error:
        _complain(str(error))
        return EXIT_FAILED
    except Exception:
        traceback.print_exc()
        _complain("this is a defect of kernelwright; please report it with the lines above")
        return EXIT_DEFECT
    return code if isinstance(code, int) else 0


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        try:
            click.echo(f"kernelwright {metadata.version('kernelwright')}")
        except metadata.PackageNotFoundError:
            click.echo("kernelwright of a checkout")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print it.")
def kernelwright() -> None:
    """Kernels as build targets: list them, render their headers, plan and build libraries of them."""


def _kernel_options(command: _Command) -> _Command:
    arch_help = "Architecture; may be repeated."
    set_help = "A set such as gemm:essential; fp16_rcr_compute alone where one operation has it."
    options = (
        click.option("--arch", "archs", multiple=True, metavar="ARCH", help=arch_help, shell_complete=complete_arch),
        click.option("--arch-file", "arch_files", multiple=True, metavar="FILE", help="An architecture of your own."),
        click.option("--set", "rule_set", metavar="NAME", help=set_help, shell_complete=complete_set),
        click.option("--config", metavar="FILE", help="A JSON configuration: lists and ranges of values."),
        click.option("--spec", metavar="FILE", help="A JSON spec, or a list of specs."),
        click.option("--filter", "expression", metavar="EXPR", help="Keep kernels c for which this is true."),
        click.option("--problems", metavar="FILE", help="A trace of recorded problems; --set or --config: candidates."),
        click.option("--sweep", metavar="CSV", help="Times of the tile engine, for --problems."),
        click.option("--budget-kernels", type=int, metavar="N", help="At most so many kernels, with --problems."),
        click.option("--budget-seconds", type=float, metavar="S", help="Of compiling, estimated; with --problems."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _toolchain_options(command: _Command) -> _Command:
    for kind in ("cuda", "hip", "host"):
        allowed = ", ".join(toolchain_words(kind))
        command = click.option(f"--{kind}-toolchain", kind, metavar="NAME", help=f"One of {allowed}.")(command)
    return command


@kernelwright.command("kernels")
@_kernel_options
@click.option("--list", "as_list", is_flag=True, help="One line per kernel: arch, name, identity (the default).")
@click.option("--count", "as_count", is_flag=True, help="One line per arch: arch, number of kernels.")
@click.option("--json", "as_json", is_flag=True, help="All fields, as JSON on stdout.")
@click.option("--export-json", "export", metavar="FILE", help="All fields, as JSON into a file.")
@click.option("--explain", is_flag=True, help="With --problems: which problems each kernel is there for.")
def list_kernels(
    as_list: bool, as_count: bool, as_json: bool, export: str | None, explain: bool, **options: Any
) -> None:
    """List the kernels that a rule set, configuration or spec describes."""
    selections = _selections(**options)
    _report_dropped(selections)
    if export or as_json:
        text = json.dumps(_expanded(selections), indent=1) + "\n"
        if export:
            from kernelwright.codegen.building.execute import write_atomically

            write_atomically(Path(export), text.encode())
        if as_json:
            click.echo(text, nl=False)
    if as_count:
        for selection in selections:
            click.echo(f"{selection.arch.name} {len(selection.kernels)}")
    if explain and not options["problems"]:
        raise click.UsageError("--explain goes with --problems")
    if as_list or not (as_count or as_json or export):
        for selection in selections:
            for kernel in selection.kernels:
                click.echo(f"{kernel.arch} {kernel.name} {kernel.identity}")
                for line in selection.purposes.get(kernel.identity, ()) if explain else ():
                    click.echo(f"  {line}")


@kernelwright.command("render")
@_kernel_options
@_toolchain_options
@click.option("--out", required=True, metavar="DIR", help="Where headers go, as <arch>/<name>.hpp.")
def render(out: str, host: str | None, hip: str | None, cuda: str | None, **options: Any) -> None:
    """Write the headers of kernels; unchanged files stay as they are, files of kernels that are gone are removed."""
    from kernelwright.codegen.backends.registry import backend_for
    from kernelwright.codegen.building.sync import sync_folder
    from kernelwright.codegen.planning.compile_plan import kernel_actions

    files = {}
    for selection in _selections(**options):
        backend = backend_for(selection.arch, _toolchains(host, hip, cuda))
        for kernel in selection.kernels:
            for file in kernel_actions(kernel, selection.arch, backend).files:
                files[file.path] = file.text
    written, removed = sync_folder(Path(out), files)
    click.echo(f"{len(files)} files, {written} written, {removed} removed", err=True)


kernelwright.add_command(arch_command)
kernelwright.add_command(generate)
kernelwright.add_command(cache_command)
kernelwright.add_command(sign)
kernelwright.add_command(verify_packages)
kernelwright.add_command(heuristic)
kernelwright.add_command(plugin_data)
kernelwright.add_command(formulas)
kernelwright.add_command(headers)
kernelwright.add_command(jit)
kernelwright.add_command(tile_engine)
kernelwright.add_command(coverage)
kernelwright.add_command(quality)
kernelwright.add_command(compare)


@kernelwright.command("plan")
@click.option(
    "--request",
    required=True,
    metavar="FILE",
    help="What to expand or plan, see kernelwright.codegen.interface.protocol.",
)
@click.option("--response", required=True, metavar="FILE", help="Where the response goes.")
def plan(request: str, response: str) -> None:
    """Respond to a JSON request with kernels, or with the files and commands of libraries (for build tools)."""
    from kernelwright.codegen.inputs import read_json
    from kernelwright.codegen.interface.respond import respond

    _write_response(response, json.dumps(respond(read_json(request))))


@kernelwright.command("bundle")
@click.option(
    "--request", required=True, metavar="FILE", help="What to describe, see kernelwright.codegen.interface.protocol."
)
@click.option("--response", metavar="FILE", help="Where the response goes.")
@click.option("--folder", metavar="DIR", help="Where the files of the response go, instead.")
def bundle(request: str, response: str | None, folder: str | None) -> None:
    """Describe a library that was built from a plan: its manifest and its provenance (for build tools)."""
    from kernelwright.codegen.inputs import read_json
    from kernelwright.codegen.packaging.bundle import respond_bundle

    if (response is None) == (folder is None):
        raise click.UsageError("give exactly one of --response and --folder")
    text = respond_bundle(read_json(request))
    files = {response: text} if response else {f"{folder}/{name}": file for name, file in json.loads(text).items()}
    for path, file in files.items():
        _write_response(path, file)


@kernelwright.command("wheel")
@click.option(
    "--request", required=True, metavar="FILE", help="What goes in, see kernelwright.codegen.packaging.wheels."
)
@click.option("--response", required=True, metavar="FILE", help="Where the response goes.")
def wheel(request: str, response: str) -> None:
    """Write a wheel with its provenance (for build tools)."""
    from kernelwright.codegen.inputs import read_json
    from kernelwright.codegen.packaging.wheels import respond_wheel

    _write_response(response, respond_wheel(read_json(request)))


@kernelwright.command("info")
@click.argument("library", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def show_resources(library: tuple[str, ...], as_json: bool) -> int:
    """Show what the kernels of libraries use: registers, LDS, spills, occupancy, matrix instructions, code, seconds."""
    from kernelwright.codegen.resources import report

    return report.main([*library, "--json"] if as_json else library)


@kernelwright.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option(
    "--verify",
    "folders",
    is_flag=False,
    flag_value="",
    multiple=True,
    metavar="[FOLDER]",
    help="Compare every file of a store of Pants, a cache or a folder of libraries, and of installed toolchains, with "
    "its digest, and kernels with each other; may be given several times [default: the store of Pants and the cache "
    "of the JIT]. Stop builds first.",
)
def show_machine(as_json: bool, folders: tuple[str, ...]) -> int:
    """Show interpreter, libraries, devices, drivers, toolchains and caches of this machine. Exit code 1: problems."""
    doctor = part("kernelwright.dispatch.tools.doctor", "build")
    verified = [word for folder in folders for word in ("--verify", *([folder] if folder else []))]
    code: int = doctor.main([*(["--json"] if as_json else []), *verified])
    return code


@kernelwright.command("build")
@_kernel_options
@_toolchain_options
@click.option("--name", required=True, help="Library name, a C identifier; the file is lib<name>.so.")
@click.option("--trees", "tree_file", metavar="FILE", help=TREES_HELP)
@click.option("--out", required=True, metavar="DIR", help="Where <arch>/lib<name>.so and manifest.json go.")
@click.option("--cache", metavar="DIR", help="Where results are kept (default: .cache in the output folder).")
@click.option("--retry-failed", is_flag=True, help="Run commands again that failed before on the same inputs.")
@click.option("--ninja", is_flag=True, help="Write build.ninja to the output folder, for ninja -C DIR; build nothing.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=N", help="Such as max_vgpr_spills=0; may be repeated.")
@click.option("--model", "models", multiple=True, metavar="FILE", help="A trained selection model; may be repeated.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Commands at a time.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=1800,
    help="Seconds for each command; one that takes longer is ended.",
    show_default=True,
)
def build(
    name: str,
    tree_file: str | None,
    out: str,
    cache: str | None,
    jobs: int,
    retry_failed: bool,
    ninja: bool,
    timeout_s: float,
    limits: tuple[str, ...],
    models: tuple[str, ...],
    host: str | None,
    hip: str | None,
    cuda: str | None,
    **options: Any,
) -> None:
    """Build libraries on this machine."""
    from kernelwright.codegen.building.build import build_libraries
    from kernelwright.codegen.building.execute import LocalExecutor
    from kernelwright.codegen.building.run_command import interrupt_on_signals
    from kernelwright.codegen.planning.models import read_models

    if ninja:
        from kernelwright.codegen.building.ninja.build_file import write_ninja

        selections = _selections(**options, limits=_stated_limits(limits))
        _report_dropped(selections)
        roots, chosen = tree_roots(tree_file), _toolchains(host, hip, cuda)
        click.echo(write_ninja(name, selections, chosen, roots, Path(out), read_models(models)))
        return
    interrupt_on_signals()
    executor = LocalExecutor(
        tree_roots=tree_roots(tree_file),
        cache=Path(cache) if cache else Path(out, ".cache"),
        jobs=jobs,
        progress=lambda line: click.echo(line, err=True),
        retry_failed=retry_failed,
        timeout_s=timeout_s,
    )
    selections = _selections(**options, limits=_stated_limits(limits))
    _report_dropped(selections)
    chosen = _toolchains(host, hip, cuda)
    for path in build_libraries(name, selections, chosen, executor, Path(out), read_models(models)):
        click.echo(path)


@kernelwright.command("rules")
@click.option("--backend", "only", metavar="NAME", help="Only the rules of this backend: ck_tile, cutlass or cpu.")
def list_rules(only: str | None) -> None:
    """List the rules that kernels must keep: id, and why the rule exists."""
    from kernelwright.codegen.backends.registry import backend_names

    if only is not None and only not in backend_names():
        hint = closest(only, backend_names())
        raise SpecError(f"unknown backend {only!r}{hint}; allowed: {', '.join(backend_names())}")
    rules = {}
    for known in map(operation, operation_names()):
        for backend in known.backends:
            if only in (None, backend):
                rules.update({rule.id: rule.reason for rule in known.rules(backend)})
    for rule, reason in rules.items():
        click.echo(f"{rule}: {reason}")


def _selections(
    archs: Sequence[str],
    arch_files: Sequence[str],
    rule_set: str | None,
    config: str | None,
    spec: str | None,
    expression: str | None,
    limits: Mapping[str, float] | None = None,
    **recorded: Any,
) -> list[Selection]:
    given: list[tuple[str, Any]] = [
        (kind, value) for kind, value in (("set", rule_set), ("config", config), ("specs", spec)) if value
    ]
    if recorded["problems"]:
        given = [("problems", _recorded(dict(given), recorded))]
    elif any(value is not None for value in recorded.values()):
        raise click.UsageError("--sweep, --budget-kernels and --budget-seconds go with --problems")
    if len(given) != 1:
        raise click.UsageError("give exactly one of --set, --config, --spec and --problems")
    known = load_archs(arch_files)
    if not archs and given[0][0] != "set":
        raise click.UsageError(f"give at least one --arch; known: {', '.join(known)}")
    if not archs:
        from kernelwright.codegen.selecting.sets import set_archs

        archs = set_archs(given[0][1])
    return select(*given[0], archs, known, expression, limits)


def _recorded(candidates: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    if "specs" in candidates:
        raise click.UsageError("--problems takes candidates of --set or --config, not of --spec")
    stated = {key: recorded[key] for key in ("sweep", "budget_kernels", "budget_seconds") if recorded[key] is not None}
    return {"trace": recorded["problems"], **candidates, **stated}


def _stated_limits(texts: Sequence[str]) -> dict[str, float] | None:
    from kernelwright.codegen.resources.limits import read_limit

    try:
        return dict(map(read_limit, texts)) or None
    except ValueError as error:
        raise click.UsageError(f"--limit {error}") from None


def _expanded(selections: Sequence[Selection]) -> dict[str, Any]:
    from kernelwright.codegen.interface.respond import expansion_json

    return expansion_json(selections)


def _report_dropped(selections: Sequence[Selection]) -> None:
    for selection in selections:
        for rule, count in selection.dropped.items():
            click.echo(f"{selection.arch.name}: {count} combinations dropped by {rule}", err=True)


def _toolchains(host: str | None, hip: str | None, cuda: str | None) -> Mapping[str, str]:
    chosen = {"host": host, "hip": hip, "cuda": cuda}
    return {kind: choice for kind, choice in chosen.items() if choice}


def _write_response(path: str, text: str) -> None:
    from kernelwright.codegen.building.execute import write_atomically

    write_atomically(Path(path), text.encode())


def _complain(message: str) -> None:
    colored = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    click.echo(f"{click.style('error:', fg='red') if colored else 'error:'} {message}", err=True)
