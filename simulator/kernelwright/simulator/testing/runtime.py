"""For tests of the HIP runtime: the library, compiled if it is not packaged, and code objects with only symbols."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.run.runtime import LIBRARY

_SOURCE = Path(__file__).resolve().parents[3] / "native" / "hip_runtime.c"


@cache
def runtime_path() -> Path:
    """The packaged library, or one compiled here. FileNotFoundError without either and without a C compiler."""
    packaged = Path(__file__).resolve().parents[1] / LIBRARY
    if packaged.is_file():
        return packaged
    compiler = next((name for name in ("gcc", "cc", "clang") if shutil.which(name)), None)
    if compiler is None:
        raise FileNotFoundError(f"{packaged} is not there and no C compiler is on PATH")
    output = Path(tempfile.mkdtemp(prefix="kernelwright-runtime-")) / LIBRARY
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([compiler, *flags, str(_SOURCE), "-o", str(output), "-lpthread"], check=True, timeout=120)
    os.environ["KERNELWRIGHT_SIMULATOR_LIBRARY"] = str(output)
    return output


def code_object(arch: str, kernels: Sequence[str] = ("kernel",), machine: int = 224, padding: int = 0) -> bytes:
    """An ELF file for an architecture, with a descriptor symbol per kernel and no code.

    Its section table comes last, after ``padding`` bytes.
    """
    names = b"\0" + b"".join(f"{kernel}.kd\0".encode() for kernel in kernels)
    symbols, at = bytes(24), 1
    for kernel in kernels:
        symbols += struct.pack("<IBBHQQ", at, 0x11, 0, 1, 0, 64)
        at += len(kernel) + 4
    body = symbols + names + bytes(-len(names) % 8 + padding)
    sections = struct.pack("<IIQQQQIIQQ", *[0] * 10)
    sections += struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, 64, len(symbols), 2, 1, 8, 24)  # SHT_DYNSYM
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(symbols), len(names), 0, 0, 1, 0)  # SHT_STRTAB
    sections += struct.pack("<IIQQQQIIQQ", 0, 8, 0, 0, 1 << 40, 1 << 40, 0, 0, 1, 0)  # SHT_NOBITS: not in the file
    ident = b"\x7fELF\x02\x01\x01\x40\x04" + bytes(7)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, 64 + len(body), 0x500 | TARGETS[arch].machine, 64, 56, 0, 64, 4, 0
    )
    return header + body + sections
