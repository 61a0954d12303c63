"""What the examples share: which library they run on, and convolution by NumPy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from kernelwright.dispatch import KernelLibrary


def example_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with ``--library DIR``; DIR holds <arch>/manifest.json."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--library", help="folder of the library; without it, an installed wheel is used")
    return made


def open_library(options: argparse.Namespace, device: str = "cpu") -> KernelLibrary:
    """The library of ``--library``, else the one of an installed kernelwright-kernels-convolution wheel."""
    if options.library:
        return KernelLibrary.load_for(device, options.library)
    return KernelLibrary.load_installed(device, "convolution")


def by_numpy(x: Any, w: Any, stride: int = 1, padding: Sequence[int] | int = 0, groups: int = 1) -> Any:
    """x (n, …, c) by w (k, …, c / groups) in fp32, of one to three dimensions, padded alike on both sides."""
    dims = x.ndim - 2
    sides = [padding] * dims if isinstance(padding, int) else padding
    padded = np.pad(x, [(0, 0), *((side, side) for side in sides), (0, 0)])
    windows = sliding_window_view(padded, w.shape[1:-1], axis=tuple(range(1, dims + 1)))  # n, …, c, filter points
    windows = windows[(slice(None), *[slice(None, None, stride)] * dims)]
    windows = np.moveaxis(windows, dims + 1, -1)  # n, …, filter points, c
    parts = np.split(windows, groups, axis=-1), np.split(w, groups)
    axes = list(range(dims + 1, 2 * dims + 2)), list(range(1, dims + 2))
    return np.concatenate([np.tensordot(a, b, axes) for a, b in zip(*parts, strict=True)], axis=-1)
