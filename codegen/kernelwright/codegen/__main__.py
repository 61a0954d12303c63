"""``python -m kernelwright.codegen``: the ``kernelwright`` command."""

import sys

from kernelwright.files.commands import run_module

if __name__ == "__main__":
    sys.exit(run_module("kernelwright.codegen.interface.cli", "build"))
