"""Specs of the kernels that compete, each once, as a list that ``kernelwright build --spec`` reads.

``wide.py --set gemm:essential --config gemm_fp32.json --keep "…" --out specs.json`` takes the kernels of a set for
which an expression over ``c`` holds, as ``--filter`` reads one, and all those of the configurations.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from kernelwright.codegen.selecting.selection import load_archs, select


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="x86_64_v4")
    parser.add_argument("--set", required=True)
    parser.add_argument("--keep", help="of the set")
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    known = load_archs()
    selections = select("set", options.set, [options.arch], known, options.keep)
    selections += [one for path in options.config for one in select("config", path, [options.arch], known)]
    specs: dict[str, Any] = {}
    for selection in selections:
        specs |= {kernel.identity: kernel.spec.model_dump(mode="json") for kernel in selection.kernels}
    options.out.write_text(json.dumps(list(specs.values())) + "\n")
    print(f"{len(specs)} kernels: {options.out}")


if __name__ == "__main__":
    main()
