"""How long ``full`` takes to expand, validate and hash as a whole, and how large rule sets are: prints JSON.

Run with ``PYTHONPATH=arch:codegen python benchmarks/codegen/conv_rule_sets.py [--repeats N]``. Times are CPU seconds of
one new process, medians with least and most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

ARCHS = ("gfx90a", "gfx942", "gfx950")


def run(arch_name: str) -> dict[str, float]:
    """CPU seconds of one run in this process."""
    start = time.process_time()
    from kernelwright.arch import load
    from kernelwright.codegen.kernel import Kernel
    from kernelwright.codegen.operations.convolution.rule_sets import rule_set
    from kernelwright.codegen.selecting.sets import expand_set

    arch = load(arch_name)
    imported = time.process_time()
    expand_set("full", arch)
    expanded = time.process_time()
    members = [Kernel(arch=arch_name, spec=spec) for spec in rule_set("full", arch)]
    if len({member.identity for member in members}) != len(members):
        raise SystemExit("two members have one identity")
    hashed = time.process_time()
    return {"imports_s": imported - start, "expand_and_validate_s": expanded - imported, "hash_s": hashed - expanded}


def sizes(arch_name: str) -> dict[str, list[int]]:
    """Members and kernels of each rule set."""
    from kernelwright.arch import load
    from kernelwright.codegen.operations.convolution.rule_sets import RULE_SETS, rule_set
    from kernelwright.codegen.selecting.sets import expand_set

    arch = load(arch_name)
    return {
        name: [len(rule_set(name, arch)), len(expand_set(f"convolution:{name}", arch).kernels)] for name in RULE_SETS
    }


def main() -> None:
    """Run in fresh processes and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--once", metavar="ARCH", help="one run, in this process")
    options = parser.parse_args()
    if options.once:
        print(json.dumps(run(options.once)))
        return
    summary: dict[str, object] = {"machine": describe(), "repeats": options.repeats}
    for arch in ARCHS:
        command = [sys.executable, __file__, "--once", arch]
        runs = [json.loads(subprocess.check_output(command)) for _ in range(options.repeats)]
        times = {}
        for key in (*runs[0], "total_s"):
            values = sorted(sum(item.values()) if key == "total_s" else item[key] for item in runs)
            times[key] = {"median": round(statistics.median(values), 3), "min": values[0], "max": values[-1]}
        summary[arch] = {"members_and_kernels": sizes(arch), **times}
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
