"""``python -m tilewright.codegen``: the ``tilewright`` command."""

import sys

from tilewright.codegen.cli import main

if __name__ == "__main__":
    sys.exit(main())
