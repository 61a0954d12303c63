"""What passed on two GPUs in one process, from the test reports of ``tests/gpu/on_device.sh two``.

``python3 benchmarks/gpu/two_gpus.py REPORT.xml … --out FILE.json``; exit status 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import results_file

ROOT = Path(__file__).resolve().parents[2]


def summary(report: Path) -> dict[str, Any]:
    """Numbers of tests by outcome, the time in seconds, and the number of passed cases by test function."""
    passed: dict[str, int] = {}
    other: dict[str, list[str]] = {"failed": [], "skipped": []}
    suites = list(ET.parse(report).getroot().iter("testsuite"))
    for case in (case for suite in suites for case in suite.iter("testcase")):
        name = case.get("name", "")
        if case.find("failure") is not None or case.find("error") is not None:
            other["failed"].append(name)
        elif case.find("skipped") is not None:
            other["skipped"].append(name)
        else:
            function = f"{case.get('classname', '').rpartition('.')[2]}::{name.partition('[')[0]}"
            passed[function] = passed.get(function, 0) + 1
    return {
        "report": report.stem,
        "passed": sum(passed.values()),
        "failed": other["failed"],
        "skipped": len(other["skipped"]),
        "seconds": round(sum(float(suite.get("time", "0")) for suite in suites), 1),
        "passed_by_test": passed,
    }


def main() -> int:
    """Write the file. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    import timing
    import torch

    library = Path(os.environ.get("KERNELWRIGHT_GPU_LIBRARY", ROOT / ".gpu" / "sm_90a" / "libgemm.so")).parent
    results = [summary(report) for report in options.reports]
    head = {
        "command": "sh tests/gpu/on_device.sh build two",
        "gpus": [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())],
        "environment": timing.environment(library),
        "seconds_of_two_threads": float(os.environ.get("KERNELWRIGHT_GPU_SECONDS", "60")),
    }
    options.out.write_text(results_file.text(head, results))
    for each in results:
        print(f"{each['report']}: {each['passed']} passed, {len(each['failed'])} failed, {each['skipped']} skipped")
    return 1 if any(each["failed"] or not each["passed"] for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
