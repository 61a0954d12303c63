"""``python -m tilewright.simulator``."""

import sys

from tilewright.simulator.cli import main

if __name__ == "__main__":
    sys.exit(main())
