"""What the selectors reach on the held-out tables of a CPU sweep, as JSON; ``run.sh judge`` calls it.

The dispatcher's choices are judged for every table, and for GEMM those of a model that is trained on the tuning table.
Shares are of the fastest measured kernel's speed, on problems whose chosen kernel has a time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import machine
from results_file import text

from kernelwright.tile_engine.results.analysis import selection_efficiency, timed
from kernelwright.tile_engine.results.csv_file import read_rows

ARCH = "x86_64_v4"
TUNING, HELD_OUT = "tuning", "held-out"
_SIZE = ("--trees", "150", "--leaves", "15")  # of a few hundred rows


def judged(table: Path) -> dict[str, Any]:
    """Kernels, problems, rows by status, and what the dispatcher's choices reach."""
    rows = read_rows(table)
    chosen = selection_efficiency(timed(rows))
    return {
        "table": table.stem,
        "kernels": len({row["identity"] for row in rows}),
        "problems": len({row["problem_idx"] for row in rows}),
        "rows": dict(Counter(row["status"] for row in rows)),
        "dates": sorted({row["date"] for row in rows}),
        "dispatcher": chosen.as_json() if chosen else None,
    }


def learned(folder: Path, dtype: str) -> dict[str, Any]:
    """A model of the tuning table, on families that its folds had not seen and on the held-out table."""
    tuning, held_out = (folder / part / f"gemm-{part}-{dtype}.csv" for part in (TUNING, HELD_OUT))
    library, model = folder / "library" / f"gemm_{dtype}", folder / f"model_{dtype}.json"
    given = ("--arch", ARCH, "--dtype", dtype, "--output", str(model), *_SIZE)
    _tile_engine("train", "--table", str(tuning), "--library", str(library), *given)
    said = _tile_engine(
        "evaluate", "--table", str(held_out), "--library", str(library), "--model", str(model), "--json"
    )
    found: dict[str, Any] = json.loads(said)
    in_turn = json.loads(model.read_text())["provenance"]["held_out_families_in_turn"]
    return {"dtype": dtype, "bytes": model.stat().st_size, "families_held_out_in_turn": in_turn, **found}


def _tile_engine(*arguments: str) -> str:
    command = (sys.executable, "-m", "kernelwright.tile_engine.interface.cli", *arguments)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Judge, train, write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folder: Path = options.folder
    tables = [table for part in (HELD_OUT, TUNING) for table in sorted((folder / part).glob("*.csv"))]
    load = (folder / "load.txt").read_text().splitlines()
    head = {
        "machine": machine.describe(),
        "load_averages": load,
        "learned": [learned(folder, dtype) for dtype in ("fp32", "bf16")],
    }
    options.out.write_text(text(head, [judged(table) for table in tables], "tables"))
    print(f"{options.out} written")


if __name__ == "__main__":
    main()
