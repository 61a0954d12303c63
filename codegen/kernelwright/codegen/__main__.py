"""``python -m kernelwright.codegen``: the ``kernelwright`` command."""

import sys

from kernelwright.codegen.interface.cli import main

if __name__ == "__main__":
    sys.exit(main())
