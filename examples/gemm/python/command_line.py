"""The command line of the examples: which library they run on."""

from __future__ import annotations

import argparse

from kernelwright.dispatch import KernelLibrary


def example_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with ``--library DIR``; DIR holds <arch>/manifest.json."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--library", help="folder of the library; without it, an installed wheel is used")
    return made


def open_library(options: argparse.Namespace, device: str = "cpu") -> KernelLibrary:
    """The library of ``--library``, else the one of an installed kernelwright-kernels-gemm wheel."""
    if options.library:
        return KernelLibrary.load_for(device, options.library)
    return KernelLibrary.load_installed(device, "gemm")
