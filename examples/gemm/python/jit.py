"""Compiles a kernel now, or takes it from the cache: jit.py [--cache DIR].

Needs the compilers of kernelwright[jit]; the second run compiles nothing. What a build shows goes to standard error.
"""

from __future__ import annotations

import argparse

import numpy as np

from kernelwright.jit import Registry


def main(arguments: list[str] | None = None) -> None:
    """Compile one kernel for this CPU and multiply with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", help="default: $KERNELWRIGHT_CACHE, else kernelwright in the user's cache folder")
    options = parser.parse_args(arguments)
    registry = Registry("cpu", cache=options.cache)
    registry.add_set("gemm:essential", filter="c.dtype == 'fp32' and c.layout == 'rrr' and c.variant == 'standard'")
    missing = registry.missing()
    print(f"{len(registry.kernels)} kernels, {len(missing)} to compile")

    library = registry.build(max_workers=2)
    dispatcher = registry.dispatcher()
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (70, 90)).astype(np.float32), rng.integers(-3, 4, (90, 50)).astype(np.float32)
    assert np.array_equal(dispatcher.gemm(a, b), a @ b)
    print(f"{library.kernels[0].name}: exact")


if __name__ == "__main__":
    main()
