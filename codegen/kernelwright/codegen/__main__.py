"""``python -m kernelwright.codegen``: the ``kernelwright`` command."""

import importlib
import sys


def main() -> int:
    """Run the command line; 2 without the packages of its extra."""
    try:
        cli = importlib.import_module("kernelwright.codegen.interface.cli")
    except ModuleNotFoundError as error:
        hint = "pip install 'kernelwright[build]'"
        print(f"error: kernelwright.codegen needs the package {error.name}; {hint}", file=sys.stderr)
        return 2
    code: int = cli.main()
    return code


if __name__ == "__main__":
    sys.exit(main())
