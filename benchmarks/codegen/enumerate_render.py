"""How long it takes to enumerate, hash and render 10,000 specs: prints JSON with median and spread of CPU seconds.

Run with ``PYTHONPATH=arch:codegen python benchmarks/codegen/enumerate_render.py [--repeats N] [--arch ARCH]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

COUNT = 10_000

_CDNA: dict[str, Any] = {
    "op": "gemm",
    "tile_config": {
        "tile_m": {"min": 64, "max": 256, "step": 64, "exclude": [192]},
        "tile_n": {"min": 64, "max": 256, "step": 64, "exclude": [192]},
        "tile_k": {"values": [32, 64]},
        "wave": {"values": [[2, 2, 1], [4, 1, 1], [1, 4, 1]]},
        "warp_tile": {"values": [[32, 32, 8], [32, 32, 16], [16, 16, 16], [16, 16, 32]]},
    },
    "trait_config": {
        "dtype": {"values": ["fp16", "bf16"]},
        "layout": {"values": ["rcr", "rrr", "crr", "ccr"]},
        "pipeline": {"values": ["compv3", "compv4", "mem"]},
        "epilogue": {"values": ["cshuffle", "default"]},
        "pad_m": {"values": [True, False]},
        "pad_n": {"values": [True, False]},
        "pad_k": {"values": [True, False]},
        "k_block_per_cu": {"values": [1, 2]},
    },
}
_CPU: dict[str, Any] = {
    "op": "gemm",
    "tile_config": {
        "tile_m": {"min": 48, "max": 480, "step": 48},
        "tile_n": {"min": 96, "max": 1920, "step": 96},
        "tile_k": {"values": [128, 192, 256, 384]},
        "warp_tile": {"values": [[4, 16, 1], [6, 16, 1], [4, 8, 1]]},
    },
    "trait_config": {
        "dtype": {"values": ["fp32", "fp16", "bf16"]},
        "layout": {"values": ["rcr", "rrr", "crr", "ccr"]},
    },
}


def run(arch_name: str) -> dict[str, float]:
    """CPU seconds of one run in this process: imports, enumeration with hashes, rendering."""
    start = time.process_time()
    from kernelwright.arch import load
    from kernelwright.codegen.kernel import Kernel
    from kernelwright.codegen.planning.render import render_kernel
    from kernelwright.codegen.selecting.expand import iterate_config

    imported = time.process_time()
    arch = load(arch_name)
    kernels: list[Kernel] = []
    for kernel in iterate_config(_CPU if arch.backend == "cpu" else _CDNA, arch):
        if len(kernels) == COUNT:
            break
        kernels.append(kernel)
    identities = {kernel.identity for kernel in kernels}
    if len(identities) != COUNT:
        raise SystemExit(f"only {len(identities)} kernels; the configuration is too small")
    enumerated = time.process_time()
    size = sum(len(file.text) for kernel in kernels for file in render_kernel(kernel, arch, arch.backend))
    rendered = time.process_time()
    return {
        "imports_s": imported - start,
        "enumerate_and_hash_s": enumerated - imported,
        "render_s": rendered - enumerated,
        "total_s": rendered - start,
        "rendered_bytes": size,
    }


def main() -> None:
    """Run in fresh processes and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--once", action="store_true", help="one run, in this process")
    options = parser.parse_args()
    if options.once:
        print(json.dumps(run(options.arch)))
        return
    command = [sys.executable, __file__, "--once", "--arch", options.arch]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(options.repeats)]
    summary: dict[str, object] = {"machine": describe(), "arch": options.arch, "kernels": COUNT}
    summary["repeats"] = options.repeats
    for key in runs[0]:
        values = sorted(item[key] for item in runs)
        summary[key] = {"median": round(statistics.median(values), 3), "min": values[0], "max": values[-1]}
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
