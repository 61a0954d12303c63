"""The ``kernelwright`` command: ``doctor`` and ``info`` need no other package, the rest needs the code generator."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from kernelwright.dispatch.tools import doctor
from kernelwright.files.commands import os_error_code, os_error_text
from kernelwright.files.proposals import closest

_EXIT_FAILED, _EXIT_BAD_INPUT = 1, 2
_COMPLETE = "_KERNELWRIGHT_COMPLETE"
"""Variables that click's completion sets, in the shell's start-up files and at each key."""
_HELP = """\
Usage: kernelwright [OPTIONS] COMMAND [ARGS]...

  This install runs compiled kernels. Commands with a star need the package {missing}: pip install 'kernelwright[build]'

Options:
  --cmake-dir  Print the folder for CMAKE_PREFIX_PATH.
  --version    Print the version.
  -h, --help   Print this text.

Commands:
  doctor  Show interpreter, libraries, devices, drivers, toolchains and caches of this machine.
  info    Show what the kernels of libraries use.
  * {others}"""
BASE = ("doctor", "info")
OTHERS = (
    *("arch", "build", "bundle", "cache", "compare", "coverage", "formulas", "generate", "headers", "heuristic", "jit"),
    *("kernels", "plan", "plugin-data", "quality", "render", "rules", "sign", "tile-engine", "verify", "wheel"),
)
"""The commands of the code generator, for installs without it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns its exit code, see :mod:`kernelwright.codegen.interface.exit_codes`."""
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        if sys.stdout is not None:  # None if the shell closed it
            sys.stdout.flush()  # a failure here would otherwise occur at interpreter exit, with a traceback
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _drop_unwritten()
        return 0
    except OSError as error:
        _drop_unwritten()
        print(f"error: {os_error_text(error)}", file=sys.stderr)
        return os_error_code(error)
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return _EXIT_FAILED
    return code


def _drop_unwritten() -> None:
    """Write pending standard output or discard it: the interpreter would retry at exit, with a traceback."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(given: list[str]) -> int:
    if given[:1] == ["doctor"]:
        return doctor.main(given[1:])
    if given[:1] == ["info"]:
        return int(importlib.import_module("kernelwright.codegen.resources.report").main(given[1:]))
    if given == ["--cmake-dir"]:
        return _print_cmake_folder(Path(__file__).resolve().parents[2] / "native/cmake")
    if given == ["--version"]:
        print(f"kernelwright {_version()}")
        return 0
    try:
        cli = importlib.import_module("kernelwright.codegen.interface.cli")
    except ModuleNotFoundError as error:
        if _COMPLETE in os.environ:  # the shell evaluates what is printed
            return 0
        if given in ([], ["-h"], ["--help"]):
            print(
                _HELP.format(missing=error.name, others=textwrap.fill(", ".join(OTHERS), 110, subsequent_indent="    "))
            )
            return 0
        word = next((word for word in given if not word.startswith("-")), "")
        if word and word not in OTHERS:
            known = (*BASE, *OTHERS)
            print(f"error: no such command {word!r}{closest(word, known)}; see kernelwright --help", file=sys.stderr)
            return _EXIT_BAD_INPUT
        print(
            f"error: this command needs the package {error.name}; allowed without it: doctor, info, --cmake-dir, "
            "--version; pip install 'kernelwright[build]'",
            file=sys.stderr,
        )
        return _EXIT_BAD_INPUT
    code: int = cli.main(given)
    return code


def _version() -> str:
    try:
        return metadata.version("kernelwright")
    except metadata.PackageNotFoundError:
        return "of a checkout"


def _print_cmake_folder(folder: Path) -> int:
    if not folder.is_dir():
        print(f"error: {folder} is not there: this is a checkout; install the kernelwright wheel", file=sys.stderr)
        return _EXIT_BAD_INPUT
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
