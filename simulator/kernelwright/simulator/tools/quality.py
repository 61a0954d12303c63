"""``kernelwright quality``: what the main loops of AMD kernels do, by counting the instructions of libraries.

Exit status 0, or 2 for something that is no library of AMD kernels. Nothing is executed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelwright.files import arch_files
from kernelwright.files.counts.mix import Mix
from kernelwright.files.occupancy import limiter
from kernelwright.files.strict_json import read_json
from kernelwright.simulator.counting.static import KernelCounts, count_library
from kernelwright.simulator.errors import SimulatorError

OK, WRONG = 0, 2
_COLUMNS = {
    "bound": "bound",
    "matrix_cycles": "matrix",
    "vector_cycles": "vector",
    "lds_cycles": "LDS",
    **{"vector": "VALU", "scalar": "SALU", "lds": "LDS ops", "memory": "VMEM", "waits": "waits"},
    **{"barriers": "barriers", "outside": "outside", "registers": "regs", "lds_bytes": "LDS B", "spills": "spills"},
    **{"occupancy_percent": "occ. %", "limiter": "limited by", "name": "kernel"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; the exit status."""
    parser = argparse.ArgumentParser("kernelwright quality", description="Count what main loops of AMD kernels do.")
    parser.add_argument("library", nargs="+", help="a manifest.json, a library beside one, or a folder of libraries")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        described = [describe(manifest) for path in given.library for manifest in _manifests(Path(path))]
    except (SimulatorError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG
    print(json.dumps({"libraries": described}, indent=1) if given.json else text(described))
    return OK


def describe(manifest: Path) -> dict[str, Any]:
    """The library of a manifest: ``name``, ``arch``, ``folder``, and a row for each of its ``kernels``.

    A row has ``name``, ``identity``, ``bound`` (``matrix``, ``vector`` or ``lds``: what takes most clocks of a turn of
    the main loop; None without one or where a matrix instruction has no known clocks), ``clocks`` (of each, for one
    wave; see :func:`clocks`), ``loop`` and ``outside`` (fields of ``counting.mix.Mix``), ``registers``, ``lds_bytes``,
    ``spills``, ``occupancy_percent``, ``workgroups_per_cu``, ``limiter``. SimulatorError for other libraries.
    """
    described = read_json(manifest)
    if not isinstance(described, dict) or described.get("backend") != "ck_tile":
        raise SimulatorError(f"{manifest} is no manifest of AMD kernels; `kernelwright info` describes any library")
    arch = described["arch"]
    unit = arch_files.read(arch)[0]["compute_unit"]
    counted = count_library(manifest.with_name(described["library"]).read_bytes())
    rows = [_row(kernel, counted, unit, manifest) for kernel in described["kernels"]]
    return {"name": described["name"], "arch": arch, "folder": str(manifest.parent), "kernels": rows}


def clocks(loop: Mix, simds: int) -> dict[str, int] | None:
    """Clocks for which a turn of a loop occupies the matrix core and the vector unit of its SIMD, and the LDS, times
    the SIMDs that share it, so that the three compare; None if those of a matrix instruction are not known."""
    if loop.matrix_cycles is None:
        return None
    return {"matrix": loop.matrix_cycles, "vector": loop.vector_cycles, "lds": loop.lds_cycles * simds}


def text(libraries: Sequence[Mapping[str, Any]]) -> str:
    """A table for each library: a turn of the main loop of one wave, then the kernel."""
    blocks = []
    for library in libraries:
        table = [list(_COLUMNS.values()), *(_cells(row) for row in library["kernels"])]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [f"{library['name']} for {library['arch']}: {len(library['kernels'])} kernels ({library['folder']})"]
        for *cells, name in table:
            padded = (cell.rjust(width) for cell, width in zip(cells, widths[:-1], strict=True))
            lines.append("  ".join([*padded, name]))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _cells(row: Mapping[str, Any]) -> list[str]:
    loop, taken = row["loop"] or {}, row["clocks"] or {}
    shown = {**row, **{f"{name}_cycles": taken.get(name) for name in ("matrix", "vector", "lds")}}
    shown |= {name: loop.get(name) for name in ("vector", "scalar", "waits", "barriers")}
    shown |= {name: sum(loop[name].values()) if loop else None for name in ("lds", "memory")}
    shown["outside"] = row["outside"]["instructions"]
    return ["-" if shown[key] is None else str(shown[key]) for key in _COLUMNS]


def _row(
    kernel: Mapping[str, Any], counted: Sequence[KernelCounts], unit: Mapping[str, Any], manifest: Path
) -> dict[str, Any]:
    identity, resources = kernel["identity"], kernel["resources"]
    functions = [one for one in counted if identity[:16] in one.symbol]
    if not functions:
        raise SimulatorError(f"{manifest}: the library has no code of kernel {kernel['name']}")
    main = max(functions, key=lambda one: (one.loop is not None, (one.loop or one.outside).matrix, len(one.symbol)))
    taken = clocks(main.loop, unit["simds"]) if main.loop else None
    return {
        "name": kernel["name"],
        "identity": identity,
        "symbol": main.symbol,
        "bound": max(taken, key=lambda name: taken[name]) if taken else None,
        "clocks": taken,
        "loop": asdict(main.loop) if main.loop else None,
        "outside": asdict(main.outside),
        "registers": main.registers,
        "lds_bytes": main.lds_bytes,
        "spills": resources["vgpr_spills"] + resources["sgpr_spills"],
        "workgroups_per_cu": resources["workgroups_per_cu"],
        "occupancy_percent": resources["occupancy_percent"],
        "limiter": limiter(resources, unit),
    }


def _manifests(path: Path) -> list[Path]:
    found = sorted(path.rglob("manifest.json")) if path.is_dir() else [path]
    if not found:
        raise SimulatorError(f"{path} holds no manifest.json; name the folder of a library")
    return [one.with_name("manifest.json") if one.suffix == ".so" else one for one in found]
