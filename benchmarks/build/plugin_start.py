"""CPU seconds that the plugin adds to a start of Pants: importing it, and solving the graph of all rules.

Run with the Python of the launcher: ``$(./pants --launcher-python) benchmarks/build/plugin_start.py``. Each measurement
is a new process, with the plugin and without it in turns.
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "rules"
BACKENDS = ("pants.core.register", "pants.backend.python.register", "pants.backend.experimental.adhoc.register")


def measure(plugin: str) -> dict[str, float]:
    """CPU seconds of this process for importing the plugin (0 without it), and for solving the rule graph."""
    runner = importlib.import_module("pants.testutil.rule_runner").RuleRunner
    registers = [importlib.import_module(name) for name in BACKENDS]
    begin = time.process_time()
    if plugin:
        sys.path.insert(0, plugin)
        registers.append(importlib.import_module("kernelwright.pants.register"))
    rules = [rule for register in registers for rule in register.rules()]
    targets = [target for register in registers for target in register.target_types()]
    loaded = time.process_time()
    runner(rules=rules, target_types=targets)
    return {"modules": loaded - begin if plugin else 0.0, "graph": time.process_time() - loaded}


def main(pairs: int = 5) -> None:
    """Print the times of each pair, and the median that the plugin adds."""
    added = []
    for _ in range(pairs):
        without, with_plugin = (
            json.loads(subprocess.check_output([sys.executable, __file__, "--one", plugin]))
            for plugin in ("", str(PLUGIN))
        )
        added.append({part: with_plugin[part] - without[part] for part in without})
        print(f"without {without['graph']:.2f} s, with {with_plugin['graph']:.2f} s", flush=True)
    for part in ("modules", "graph"):
        print(f"the plugin adds for {part}: {statistics.median(one[part] for one in added):.2f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main(*map(int, sys.argv[1:]))
