"""``kernelwright jit``: compile the kernels of a set, configuration or spec that are missing, and print where they are.

Standard output holds the library's path and nothing else, or one JSON object: "library", "manifest", "name", "arch",
"kernels" (names) and "compiled" (those that were not there before). What a build shows goes to standard error. So a
program in any language can start it, read a line and load the file. Exit status: 0 done; 1 it could not be built; 2 bad
input, as docs/exit_codes.md lists.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import suppress

from kernelwright.codegen.building.run_command import TIMEOUT_S, interrupt_on_signals
from kernelwright.codegen.inputs import read_json
from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT, EXIT_FAILED
from kernelwright.codegen.resources.limits import LimitError, read_limit
from kernelwright.codegen.violations import SpecError
from kernelwright.dispatch import Device, DeviceNameError, KernelwrightError
from kernelwright.files.commands import ArgumentParser, os_error_code, os_error_text
from kernelwright.jit.errors import UntrustedCacheError, UnusableCacheError
from kernelwright.jit.registry import Registry


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status."""
    options = parser().parse_args(arguments)
    interrupt_on_signals()
    try:
        registry = _registry(options)
        missing = [kernel.name for kernel in registry.missing()]
        library = registry.build(
            options.jobs, retry_failed=options.retry_failed, timeout_s=options.timeout, progress=options.progress
        )
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return EXIT_FAILED
    except (SpecError, DeviceNameError, UntrustedCacheError, UnusableCacheError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except OSError as error:
        print(f"error: {os_error_text(error)}", file=sys.stderr)
        return os_error_code(error)
    except (KernelwrightError, LimitError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_FAILED
    manifest = library.path.with_name("manifest.json")
    summary = {"library": str(library.path), "manifest": str(manifest), "name": library.name, "arch": library.arch}
    names = [kernel.name for kernel in library.kernels]
    print(json.dumps({**summary, "kernels": names, "compiled": missing}) if options.json else library.path)
    return 0


def _registry(options: argparse.Namespace) -> Registry:
    device = Device(options.device, arch=options.arch) if options.arch else Device.of(options.device)
    registry = Registry(device, name=options.name, cache=options.cache, shared_cache=options.shared_cache)
    limits = dict(options.limit) or None
    if options.set:
        registry.add_set(options.set, filter=options.filter, limits=limits)
    elif options.config:
        registry.add_config(options.config, filter=options.filter, limits=limits)
    elif options.filter:
        raise SpecError(
            "--filter chooses among the kernels of --set or --config; leave it out with --spec or --problems"
        )
    elif options.problems:
        registry.add_problems(options.problems, limits=limits)
    else:
        for spec in _specs(options.spec):
            registry.add(spec, limits=limits)
    return registry


def _specs(path: str) -> list[dict[str, object]]:
    document = read_json(path)
    specs = document if isinstance(document, list) else [document]
    if not specs or not all(isinstance(spec, dict) for spec in specs):
        example = '{"op": "gemm", "dtype": …}'
        raise SpecError(f"{path} holds no spec: allowed: one JSON object such as {example}, or a list of them")
    return specs


def parser() -> argparse.ArgumentParser:
    """The options; also used for shell completion."""
    made = ArgumentParser(
        "kernelwright jit",
        description="Compile the kernels that are missing, into the cache, and print the path of their library.",
    )
    made.add_argument("--device", default="cpu", help="cpu, cuda:N, hip:N or sim:ARCH (default: %(default)s)")
    made.add_argument("--arch", help="the device's architecture, where the device is not at hand, such as gfx942")
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("--set", metavar="NAME", help="a set such as gemm:essential or fp16_rcr_compute")
    what.add_argument("--config", metavar="FILE", help="a JSON configuration: lists and ranges of values")
    what.add_argument("--spec", metavar="FILE", help="a JSON spec, or a list of specs")
    what.add_argument("--problems", metavar="FILE", help="a trace of recorded problems: kernels that serve them")
    made.add_argument("--filter", metavar="EXPR", help="of a set or configuration: kernels c for which this is true")
    made.add_argument(
        "--limit", metavar="NAME=N", action="append", default=[], type=_limit, help="such as max_registers=128"
    )
    made.add_argument("--name", default="jit", help="of the library, a C identifier (default: %(default)s)")
    made.add_argument("--cache", metavar="DIR", help="default: $KERNELWRIGHT_CACHE, else in the user's cache folder")
    made.add_argument("--shared-cache", action="store_true", default=None, help="allow a cache that others can write")
    made.add_argument("-j", "--jobs", type=_jobs, metavar="N", help="commands at a time (default: all processors)")
    made.add_argument(
        "--timeout",
        type=_seconds,
        default=TIMEOUT_S,
        metavar="S",
        help="of each command (default: %(default)g seconds)",
    )
    made.add_argument("--retry-failed", action="store_true", help="run commands again that failed before")
    made.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None, help="show it on stderr, or do not"
    )
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def _limit(text: str) -> tuple[str, float]:
    try:
        return read_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: whole numbers from 1")
    return int(text)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if float(text) > 0:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r}; allowed: seconds above 0")
