"""What each change to the process of Pants 2.17 saves (rules/kernelwright/pants/compat/pants_2_17), left out in turn.

    PYTHONPATH=tests python benchmarks/build/patches.py --pants PYTHON > benchmarks/results/pants_2_17_patches.json

CPU seconds of client and daemon, and the daemon's memory, in workspaces that take turns. ``--pants`` is a Python that
can import Pants 2.17: the hash of file requests is measured by itself in it, since its cost grows with the square of a
build's kernels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from build.scale import Site, spread
from machine import describe

_LEFT_OUT = {
    "nothing": None,
    "one question for the dependencies of a set": (
        "rules/kernelwright/pants/compat/pants_2_17/dependencies.py",
        "if field is Dependencies and self.expansion is not None:",
        "if False:",
    ),
}
_HASHES = """
import sys, time
from pants.engine.fs import CreateDigest, FileContent
if sys.argv[2] == "patched":
    CreateDigest.__hash__ = tuple.__hash__
start = time.process_time()
known = {CreateDigest([FileContent(str(n), b"")]): n for n in range(int(sys.argv[1]))}
print(time.process_time() - start)
"""


def hashes(python: str, requests: int) -> dict[str, Any]:
    """CPU seconds to distinguish this many file requests, with Pants' own hash and with the patch's."""
    figures: dict[str, Any] = {"requests": requests}
    for name in ("own", "patched"):
        done = subprocess.run([python, "-c", _HASHES, str(requests), name], capture_output=True, text=True, check=True)
        figures[f"{name}_cpu_s"] = round(float(done.stdout), 3)
    return figures


def share_store(site: Site, store: Path) -> None:
    """Let a workspace use what another one has unpacked."""
    kept = (option for option in site.build.options if not option.startswith("--local-store-dir="))
    site.build.options = (*kept, f"--local-store-dir={store}")


def measure(kernels: int, repeats: int, store: Path | None) -> dict[str, Any]:
    """Measure ``peek`` and ``list`` of all targets in a warm daemon, leaving out one patch at a time."""
    with tempfile.TemporaryDirectory() as folder:
        sites = {}
        try:
            for number, (name, change) in enumerate(_LEFT_OUT.items()):
                sites[name] = Site(Path(folder) / str(number), kernels, 100, "sets")
                share_store(sites[name], store or Path(folder, "store"))
                if change:
                    sites[name].build.workspace.replace(*change)
            calls = ("list", "peek")
            for site in sites.values():
                for call in calls:
                    site.pants(call, "s::")
            runs: dict[str, dict[str, list[Any]]] = {name: {call: [] for call in calls} for name in sites}
            for _ in range(repeats):
                for call in calls:
                    for name, site in sites.items():
                        runs[name][call].append(site.pants(call, "s::"))
            memory = {name: site.build.workspace.daemon_memory_mb() for name, site in sites.items()}
        finally:
            for site in sites.values():
                site.build.close()
    return {
        name: {**{call: spread(samples) for call, samples in of.items()}, "daemon_mb": memory[name]}
        for name, of in runs.items()
    }


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--store", type=Path, help="a folder whose contents a later run uses; default: none is kept")
    parser.add_argument("--pants", required=True, metavar="PYTHON", help="the Python of an installed Pants 2.17")
    arguments = parser.parse_args()
    measured = {
        "machine": describe(),
        "kernels": arguments.kernels,
        "file_requests": hashes(arguments.pants, arguments.kernels),
        "left_out": measure(arguments.kernels, arguments.repeats, arguments.store),
    }
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
