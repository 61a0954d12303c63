"""gpu_helper with kernel libraries that are build targets: ./pants run examples:gpu_helper -- 256 256 256 --validate"""

from __future__ import annotations

import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from kernelwright.dispatch import Device
from kernelwright.dispatch.tools import gpu_helper as program


def main(arguments: list[str] | None = None) -> int:
    """Run it on the packaged libraries unless --library names others; the exit status."""
    return program.main(arguments, _packaged)


def _packaged(device: Device) -> Traversable | None:
    package = resources.files(__package__) if __package__ else Path(__file__).parent
    folder = package.joinpath("cpu_gemm" if device.kind == "cpu" else f"{device.arch}_gemm")
    return folder if folder.is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
