"""Description of the machine that a figure was measured on, for every results file."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


def describe(**versions: str) -> dict[str, Any]:
    """Processor, cores, memory, kernel, Python, date, commit, and whatever ``versions`` the benchmark adds."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = next((line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")), "")
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=_ROOT, capture_output=True, text=True)
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_kb / 2**20, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "commit": commit.stdout.strip() or "unknown",
        "load_average": os.getloadavg()[0],
        **versions,
    }
