"""``python -m kernelwright.simulator``."""

import sys

from kernelwright.files.commands import run_module

if __name__ == "__main__":
    sys.exit(run_module("kernelwright.simulator.tools.cli", "simulator"))
