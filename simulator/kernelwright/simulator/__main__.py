"""``python -m kernelwright.simulator``."""

import importlib
import sys


def main() -> int:
    """Run the command line. Returns 2 if the packages of its extra are missing."""
    try:
        cli = importlib.import_module("kernelwright.simulator.tools.cli")
    except ModuleNotFoundError as error:
        hint = "pip install 'kernelwright[simulator]'"
        print(f"error: kernelwright.simulator needs the package {error.name}; {hint}", file=sys.stderr)
        return 2
    code: int = cli.main()
    return code


if __name__ == "__main__":
    sys.exit(main())
