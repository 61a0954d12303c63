"""Figures of the tests' builds, in the file that ``KERNELWRIGHT_REMOTE_RECORD`` names: what ran where, bytes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.workspace import ROOT
from remote import servers
from remote.machine import Build

sys.path.insert(0, str(ROOT / "benchmarks"))

from machine import describe  # type: ignore[import-not-found]  # a folder of scripts, not a package

_COUNTERS = {
    "processes": "remote_cache_requests",
    "from_cache": "remote_cache_requests_cached",
    "run_here": "local_execution_requests",
    "run_on_workers": "remote_execution_success",
    "written": "remote_cache_write_successes",
}


def build(made: Build) -> dict[str, Any]:
    """Processes by origin, those that ran here by kind, and seconds: all, and the sum of those that ran here."""
    figures: dict[str, Any] = {name: made.stats[counter] for name, counter in _COUNTERS.items()}
    figures["kinds_run_here"] = dict(sorted(Counter(what.split()[0] for what in made.ran).items()))
    figures["wall_s"] = round(made.wall_s, 1)
    figures["processes_here_s"] = round(made.stats["local_process_total_time_run_ms"] / 1000, 1)
    return figures


def libraries(outputs: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Per architecture: kernels, bytes and digest of the library, digest of the manifest."""
    by_arch: dict[str, dict[str, Any]] = {}
    for path, data in outputs.items():
        arch, _, name = path.partition("/")
        entry = by_arch.setdefault(arch, {})
        if name == "manifest.json":
            entry.update(kernels=len(json.loads(data)["kernels"]), manifest_sha256=hashlib.sha256(data).hexdigest())
        elif name.endswith(".so"):
            entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    return by_arch


def write(case: str, figures: Mapping[str, Any]) -> None:
    """Add or replace a case of the file; does nothing unless the variable names one."""
    name = os.environ.get("KERNELWRIGHT_REMOTE_RECORD")
    if not name:
        return
    file = Path(name)
    known = json.loads(file.read_text()) if file.exists() else {}
    known[case] = {"machine": describe(**servers.versions()), **figures}
    file.write_text(json.dumps(known, indent=1) + "\n")
