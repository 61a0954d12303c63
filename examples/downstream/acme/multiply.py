"""Multiplies two matrices with whichever kernel is best: one of this repository, or one of kernelwright's own wheel."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from kernelwright.dispatch import Device, Dispatcher, KernelLibrary

# Both libraries are for this level of x86-64, whatever more the processor can do.
DEVICE = Device("cpu", arch="x86_64_v3")


def dispatcher() -> Dispatcher:
    """Chooses among the kernels of both libraries."""
    ours = KernelLibrary.load_for(DEVICE, files("acme") / "kernels")
    theirs = KernelLibrary.load_installed(DEVICE, "gemm")
    return Dispatcher([ours, theirs], DEVICE)


def main() -> None:
    """Multiply, compare with float64, say which kernels there were."""
    chosen = dispatcher()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((100, 300), (300, 200)))
    c = chosen.gemm(a, b)
    if not np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64)):
        raise SystemExit("wrong result")
    print(f"right: {a.shape} x {b.shape} by one of {len(chosen.kernels)} kernels")


if __name__ == "__main__":
    main()
