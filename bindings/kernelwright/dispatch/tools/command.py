"""The ``kernelwright`` command: ``doctor`` and ``info`` need no other package, all else the code generator's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwright.dispatch.tools import doctor

_EXIT_BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, see :mod:`kernelwright.codegen.interface.protocol`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["doctor"]:
        return doctor.main(given[1:])
    if given[:1] == ["info"]:
        return int(importlib.import_module("kernelwright.codegen.resources.report").main(given[1:]))
    if given == ["--cmake-dir"]:
        return _print_cmake_folder(Path(__file__).resolve().parents[1] / "native/cmake")
    try:
        cli = importlib.import_module("kernelwright.codegen.interface.cli")
    except ModuleNotFoundError as error:
        print(
            f"error: this command needs the package {error.name}; allowed without it: doctor, info, --cmake-dir; "
            "pip install 'kernelwright[build]'",
            file=sys.stderr,
        )
        return _EXIT_BAD_INPUT
    code: int = cli.main(given)
    return code


def _print_cmake_folder(folder: Path) -> int:
    if not folder.is_dir():
        print(f"error: {folder} is not there: this is a checkout; install the kernelwright wheel", file=sys.stderr)
        return _EXIT_BAD_INPUT
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
