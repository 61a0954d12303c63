"""``python -m kernelwright.simulator``."""

import sys

from kernelwright.simulator.cli import main

if __name__ == "__main__":
    sys.exit(main())
