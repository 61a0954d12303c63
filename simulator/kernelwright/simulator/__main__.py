"""``python -m kernelwright.simulator``."""

import sys

from kernelwright.simulator.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
