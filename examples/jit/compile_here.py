"""Kernels compiled where they are used: compile_here.py [--arch x86_64_v3] [--workers N].

Needs tilewright[jit]. The second run finds everything in the cache; TILEWRIGHT_JIT=off then forbids compiling.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tilewright.dispatch import Device
from tilewright.jit import Registry

# A tile that suits no shipped kernel, for both levels of x86-64.
TILES = {"x86_64_v3": ([12, 48, 32], [6, 16, 1]), "x86_64_v4": ([28, 96, 32], [14, 32, 1])}


def main(arguments: list[str] | None = None) -> None:
    """Describe kernels, build what is missing, multiply."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=sorted(TILES), help="a level of x86-64; left out: this machine's")
    parser.add_argument("--workers", type=int)
    options = parser.parse_args(arguments)

    registry = Registry(Device("cpu", arch=options.arch))
    tile, warp_tile = TILES[registry.arch.name]
    for layout in ("rrr", "rcr"):
        registry.add(dtype="fp32", layout=layout, tile=tile, warp_tile=warp_tile)
    print(f"{len(registry.missing())} of {len(registry.kernels)} kernels have to be compiled")

    begin = time.monotonic()
    dispatcher = registry.dispatcher(max_workers=options.workers, progress=True)
    print(f"ready after {time.monotonic() - begin:.2f} s: {dispatcher.libraries[0]}")

    a = np.arange(300.0, dtype=np.float32).reshape(20, 15)
    b = np.arange(150.0, dtype=np.float32).reshape(15, 10)
    assert np.array_equal(dispatcher.gemm(a, b), a @ b)
    print("equal to NumPy's result")


if __name__ == "__main__":
    main()
