"""Times that AMD published, in one form: what the constants of ``formulas/cdna.py`` are fitted to and evaluated by.

``python benchmarks/amd/published.py SOURCE … --out table.csv.gz`` reads wheels and folders of aiter (its
``configs/**/*tuned*gemm*.csv``: the fastest kernel of each problem, and its time), and single tables of the CK Tile
dispatcher (``p1_oracle_best_results.csv`` of rocm-libraries: likewise, with TFLOPS). Rows of kernels whose tile their
name does not state, without a time, or faster than the stated peak of their device, are left out and counted on
stderr. With ``--library FOLDER``, whose manifest has the specs of its kernels, tables of ``kernelwright tile-engine
bench`` are read likewise: a row for the fastest GEMM kernel of each problem that an AMD GPU was timed on.

A row of the table is a fact and its source: architecture, compute units, family, problem, tile, waves, microseconds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from kernelwright.arch import load

LANES = 64
DEVICES = {256: "gfx950", 304: "gfx942", 80: "gfx942"}
"""Architectures by compute units, if tables name none: MI355X, MI300X and MI308X."""
FAMILIES = ("a8w8_blockscale_bpreshuffle", "a8w8_blockscale", "a8w8_bpreshuffle", "a8w8_batched_rowwise",
            "a8w8_rowwise", "bf16_batched")  # fmt: skip
_TABLE = re.compile(r"(?:^|/)(?!.*untuned)[^/]*tuned[^/]*gemm[^/]*\.csv$")
_CK = re.compile(rf"({'|'.join(FAMILIES)})_(?:1x128x128_)?(\d+)x(\d+)x(\d+)x(\d+)((?:_\d+x\d+)+)_\d+x\d+x\d+_")
_CK_TILE = re.compile(r"(?<=_)(\d+)x(\d+)x(\d+)_(\d+)x(\d+)x(\d+)_\d+x\d+x\d+(?:_|$)")


@dataclass(frozen=True)
class Row:
    """The fastest kernel tried on a problem. ``scaled``: sums are multiplied by scales of blocks along K."""

    source: str
    arch: str
    units: int
    family: str
    size: int  # bytes of an element of A and B; C has two
    batch: int
    m: int
    n: int
    k: int
    split_k: int
    tile_m: int
    tile_n: int
    tile_k: int
    wave_m: int
    wave_n: int
    us: float

    @property
    def tile(self) -> tuple[int, int, int, int, int]:
        """Fields by which the formula distinguishes kernels of a family."""
        return self.tile_m, self.tile_n, self.tile_k, self.wave_m, self.wave_n

    @property
    def scaled(self) -> bool:
        """Whether sums are multiplied by scales of blocks along K."""
        return "blockscale" in self.family

    @property
    def shuffled(self) -> bool:
        """Whether B is loaded directly from memory to registers."""
        return "bpreshuffle" in self.family


@lru_cache
def peak(arch: str, size: int, units: int) -> float:
    """Operations per microsecond that the architecture file states for this many compute units."""
    loaded_arch = load(arch)
    return loaded_arch.flops_per_clock_per_cu["bf16" if size == 2 else "fp8"] * units * loaded_arch.clock_ghz * 1e3


def ck_waves(threads: int, tile_m: int, pairs: list[tuple[int, int]]) -> tuple[int, int]:
    """Wave layout of a CK kernel's tile, from the extents of the instruction and its repeats.

    If a name states no repeats, there is one row of waves for at most 32 rows, and two for more, as for the same tiles
    whose names state them.
    """
    waves = threads // LANES
    stated = len(pairs) > 1
    rows = max(1, tile_m // (pairs[0][0] * pairs[1][0])) if stated else 1 if tile_m <= 32 else 2
    return (rows, waves // rows) if rows <= waves else (waves, 1)


def aiter_row(raw: Mapping[str, str], source: str) -> Row | None:
    """A row of a tuned table of aiter; None for a kernel that is not from CK, and for one without a time."""
    us, units = float(raw["us"]), int(raw["cu_num"])
    arch = raw.get("gfx") or DEVICES.get(units, "")
    ck_match = _CK.match(raw["kernelName"])
    tiled = _CK_TILE.search(raw["kernelName"]) if "cktile" in raw["kernelName"] else None
    if us <= 0 or arch not in DEVICES.values() or not (ck_match or tiled):
        return None
    if tiled:
        family = raw["kernelName"][: raw["kernelName"].index("_cktile")] + "_cktile"
        tile_m, tile_n, tile_k, wave_m, wave_n, _ = (int(one) for one in tiled.groups())
    else:
        assert ck_match
        family = ck_match[1]
        threads, tile_m, tile_n, tile_k = (int(ck_match[index]) for index in range(2, 6))
        pairs = [(int(a), int(b)) for a, b in re.findall(r"_(\d+)x(\d+)", ck_match[6])]
        loads_first = "blockscale" in family or "shuffle" in family  # their names state the width of loads earlier
        pairs = pairs[1:] if loads_first else pairs
        wave_m, wave_n = ck_waves(threads, tile_m, pairs)
    problem = [int(raw[name]) for name in ("M", "N", "K")]
    size = 2 if family.startswith("bf16") else 1
    split = 2 ** int(raw["splitK"])  # as aiter's launchers read it
    batch = int(raw.get("B") or 1)
    if 2 * batch * problem[0] * problem[1] * problem[2] > us * peak(arch, size, units):
        return None
    return Row(
        source, arch, units, family, size, batch, *problem, split, tile_m, tile_n, tile_k, wave_m,
        wave_n, us,
    )  # fmt: skip


def oracle_row(raw: Mapping[str, str], source: str) -> Row | None:
    """A row of the CK Tile dispatcher's table of fastest kernels, measured on an MI355X."""
    match = _CK_TILE.search(raw["oracle_best_kernel"])
    tflops = float(raw["oracle_best_tflops"])
    if not match or tflops <= 0:
        return None
    m, n, k = (int(raw[name]) for name in "mnk")
    tile_m, tile_n, tile_k, wave_m, wave_n, _ = (int(one) for one in match.groups())
    us = round(2e-6 * m * n * k / tflops, 4)
    return Row(
        source, "gfx950", 256, "ck_tile_fp8", 1, 1, m, n, k, 1, tile_m, tile_n, tile_k, wave_m, wave_n, us,
    )  # fmt: skip


def table_rows(text: str, source: str) -> Iterator[Row | None]:
    """Rows of one table, None for each omitted one. Raises ValueError for a table of neither form."""
    reader = csv.DictReader(io.StringIO(text))
    columns = set(reader.fieldnames or ())
    if {"cu_num", "M", "N", "K", "us", "kernelName", "splitK"} <= columns:
        yield from (aiter_row(raw, source) for raw in reader)
    elif {"m", "n", "k", "oracle_best_tflops", "oracle_best_kernel"} <= columns:
        yield from (oracle_row(raw, source) for raw in reader)
    else:
        raise ValueError(
            f"{source} is no table of aiter (cu_num, M, N, K, splitK, us, kernelName) nor of CK Tile's dispatcher"
            f" (m, n, k, oracle_best_tflops, oracle_best_kernel): its columns are {', '.join(sorted(columns))}"
        )


def engine_rows(text: str, source: str, specs: Mapping[str, Mapping[str, Any]]) -> Iterator[Row | None]:
    """The fastest kernel of each problem in a tile engine table; None for problems that no kernel served.

    ``specs`` are kernel specs by identity. Raises ValueError for another table, and for a kernel missing from them.
    """
    reader = csv.DictReader(io.StringIO(text))
    if not {"m", "n", "k", "batch", "latency_ms", "identity", "status", "device"} <= set(reader.fieldnames or ()):
        raise ValueError(f"{source} is no GEMM table of `kernelwright tile-engine bench`")
    least: dict[str, Mapping[str, str] | None] = {}
    for raw in reader:
        before = least.setdefault(raw["problem_idx"], None)
        timed = raw["status"] == "ok" and raw["latency_ms"] and raw["device"].startswith("hip")
        if timed and (before is None or float(raw["latency_ms"]) < float(before["latency_ms"])):
            least[raw["problem_idx"]] = raw
    for fastest in least.values():
        if fastest is None:
            yield None
        elif fastest["identity"] not in specs:
            raise ValueError(f"{source} has times of {fastest['kernel']}, which --library does not hold")
        else:
            yield _engine_row(fastest, source, specs[fastest["identity"]])


def _engine_row(raw: Mapping[str, str], source: str, spec: Mapping[str, Any]) -> Row:
    arch = load(raw["arch"])
    family = f"kernelwright_{spec['dtype_a']}_{spec['layout']}{'_bpreshuffle' if spec.get('preshuffle') else ''}"
    size = 1 if spec["dtype_a"] in ("fp8", "bf8", "int8") else 2
    split = dict(pair.split("=", 1) for pair in raw["choices"].split(";") if pair).get("split_k", "1")
    tile, wave = ([spec[name][axis] for axis in "mnk"] for name in ("tile", "wave"))
    problem = [int(raw[name]) for name in ("batch", "m", "n", "k")]
    us = round(float(raw["latency_ms"]) * 1e3, 4)
    units = int(raw.get("units") or arch.compute_units)
    return Row(source, arch.name, units, family, size, *problem, int(split), *tile, *wave[:2], us)


def specs_of(library: Path) -> dict[str, Mapping[str, Any]]:
    """Specs of a library's kernels by identity; the folder contains ``manifest.json``."""
    manifest = json.loads((library / "manifest.json").read_text())
    return {kernel["identity"]: kernel["spec"] for kernel in manifest["kernels"]}


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """Names and texts of the tables at a path: a wheel, a folder or a file."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in sorted(filter(_TABLE.search, wheel.namelist())):
                yield Path(name).name, wheel.read(name).decode()
    elif path.is_dir():
        for one in sorted(path.rglob("*.csv")):
            if _TABLE.search(one.as_posix()):
                yield one.name, one.read_text()
    else:
        yield path.name, path.read_text()


def import_tables(
    paths: Iterable[Path], label: str = "", specs: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[list[Row], int]:
    """All rows, without duplicates, and the number of omitted ones; ``specs`` are for tile engine tables."""
    unique: dict[Row, None] = {}
    left_out = 0
    for path in paths:
        for name, text in texts(path):
            source = f"{label}{name}"
            for row in table_rows(text, source) if specs is None else engine_rows(text, source, specs):
                left_out += row is None
                unique |= {row: None} if row else {}
    return list(unique), left_out


def write(rows: Iterable[Row], path: Path) -> None:
    """A gzipped CSV, the same bytes for the same rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Row))
    writer.writerows(astuple(row) for row in rows)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def read(path: Path) -> list[Row]:
    """The rows of a table that :func:`write` wrote."""
    with gzip.open(path, "rt") as file:
        words = {"source", "arch", "family"}
        return [
            Row(**{name: value if name in words else float(value) if name == "us" else int(value)
                   for name, value in raw.items()})  # type: ignore[arg-type]
            for raw in csv.DictReader(file)
        ]  # fmt: skip


def main() -> None:
    """Import, count, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="+", help="wheels, folders, tables")
    parser.add_argument("--label", default="", help="what sources are called, before the names of their tables")
    parser.add_argument("--library", type=Path, help="of tables of the tile engine: folder of its manifest.json")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    specs = specs_of(options.library) if options.library else None
    rows, left_out = import_tables(options.sources, options.label, specs)
    write(rows, options.out)
    print(f"{len(rows)} rows; left out {left_out}: other kernels, no time, or none that can be", file=sys.stderr)


if __name__ == "__main__":
    main()
