"""A formula of the generator, compiled with its constants as variables, since fits evaluate it thousands of times."""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.codegen.formulas.machine import Device
from kernelwright.codegen.formulas.made import find, formulas
from kernelwright.codegen.formulas.translate import constants, translate

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "dispatcher_cpp/include"
Array = np.ndarray[Any, np.dtype[np.float64]]

_ROWS = """
#include "{header}"
#include <math.h>
#include <stdint.h>
double* number(const char* name) {{ return {prefix}_number(name); }}
void predict(const double* r, uint64_t count, double* us) {{
  for (uint64_t i = 0; i < count; ++i, r += {width}) {{
    us[i] = {prefix}_estimate({arguments}{rest}).total_us;
  }}
}}
"""


class Formula:
    """Microseconds of rows of inputs, by a formula whose ``estimate`` takes a problem, a kernel and a device."""

    def __init__(self, module: str, *, ends_early: bool) -> None:
        """:param module: module below ``kernelwright.codegen``. ``ends_early``: ``estimate`` takes a time limit, too.

        Raises RuntimeError with the compiler's message.
        """
        self.source = find(module)
        loaded = importlib.import_module(f"kernelwright.codegen.{module}")
        records = (("Problem", loaded.Problem), ("Kernel", loaded.Kernel), ("Device", Device))
        self.columns = tuple(f"{name}.{field}" for name, record in records for field in _fields(record))
        arguments, at = [], 0
        for name, record in records:
            width = len(_fields(record))
            values = ", ".join(f"r[{at + index}]" for index in range(width))
            prefix = find(record.__module__.removeprefix("kernelwright.codegen.")).prefix
            arguments.append(f"({prefix}_{name}){{{values}}}")
            at += width
        self._code = self._compiled(arguments, at, ", HUGE_VAL" if ends_early else "")
        self._code.number.restype = ctypes.POINTER(ctypes.c_double)

    def _compiled(self, arguments: list[str], width: int, rest: str) -> ctypes.CDLL:
        with tempfile.TemporaryDirectory() as folder:
            variable_header(self.source.header, Path(folder))
            code, made = Path(folder, "rows.c"), Path(folder, "rows.so")
            text = _ROWS.format(
                header=self.source.header,
                prefix=self.source.prefix,
                width=width,
                arguments=", ".join(arguments),
                rest=rest,
            )
            code.write_text(text)
            command = [
                "gcc",
                "-std=c99",
                "-O2",
                "-fPIC",
                "-shared",
                f"-I{folder}",
                f"-I{INCLUDE}",
                str(code),
                "-o",
                str(made),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            return ctypes.CDLL(str(made))

    @property
    def numbers(self) -> dict[str, float]:
        """The current constants of the formula."""
        return constants(self.source.text)

    def predict(self, rows: Array, numbers: Mapping[str, float]) -> Array:
        """Microseconds of each row of ``columns``, with these constants."""
        for name, value in numbers.items():
            self._code.number(name.encode())[0] = value
        us = np.zeros(len(rows))
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (np.ascontiguousarray(rows, float), us)]
        self._code.predict(pointers[0], ctypes.c_uint64(len(rows)), pointers[1])
        return us


def _fields(record: Any) -> tuple[str, ...]:
    """Names of a record's fields; the record is a NamedTuple or a dataclass."""
    if dataclasses.is_dataclass(record):
        return tuple(one.name for one in dataclasses.fields(record))
    names: tuple[str, ...] = record._fields
    return names


def variable_header(header: str, folder: Path) -> None:
    """Write a formula's header below ``folder``, its constants as variables."""
    (source,) = (one for one in map(find, formulas()) if one.header == header)
    path = folder / header
    path.parent.mkdir(parents=True)
    path.write_text(translate(source, find, variable=True))


def write_numbers(path: Path, numbers: Mapping[str, float]) -> None:
    """Write constants to a source. ``kernelwright formulas dispatcher_cpp/include`` regenerates a formula's header."""
    text = path.read_text()
    for name, value in numbers.items():
        text = re.sub(rf"\b({name} = )[-+.\de]+", rf"\g<1>{value:g}", text)
    path.write_text(text)
