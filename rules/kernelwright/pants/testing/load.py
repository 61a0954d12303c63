"""Loads the whole plugin with the Pants that ``KERNELWRIGHT_TEST_PANTS`` names, and prints what it adds, as JSON.

``python load.py <folder of Pants, or an empty string> <folder of the plugin>``
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any, Iterator


def main(pants: str, plugin: str) -> None:
    """Print the version of Pants, the plugin's modules and targets, and the calls of each of its rules."""
    sys.path[:0] = [folder for folder in (pants, plugin) if folder]
    package = Path(str(importlib.import_module("pants.version").__file__)).parent
    stand_in = importlib.util.find_spec("pants.engine.internals.native_engine") is None
    if stand_in:
        importlib.import_module("kernelwright.pants.testing.native_engine").install(package)
    register = importlib.import_module("kernelwright.pants.register")
    described = {
        "pants": str(importlib.import_module("pants.version").VERSION),
        "stand_in": stand_in,
        "modules": sorted(modules()),
        "targets": sorted(target.alias for target in register.target_types()),
        "rules": {rule.canonical_name: calls(rule) for rule in register.rules() if own(rule)},
    }
    print(json.dumps(described))


def modules() -> Iterator[str]:
    """Import and yield every module of the plugin, except tests and the other generation of Pants."""
    top = importlib.import_module("kernelwright.pants")
    chosen = importlib.import_module("kernelwright.pants.compat").calls.__name__.rpartition(".")[0]
    for module in pkgutil.walk_packages(top.__path__, "kernelwright.pants."):
        other = ".compat.pants_" in module.name and not module.name.startswith(chosen)
        if not (other or ".testing" in module.name or module.name.endswith("_test")):
            yield importlib.import_module(module.name).__name__


def own(rule: Any) -> bool:
    """Whether a rule belongs to the plugin and was not made by Pants for its options."""
    return str(getattr(rule, "canonical_name", "")).startswith("kernelwright.")


def calls(rule: Any) -> dict[str, Any]:
    """Return what Pants found in the source of a rule."""
    awaitables = rule.awaitables if hasattr(rule, "awaitables") else rule.input_gets
    return {"awaits": "await " in inspect.getsource(rule.func), "calls": [str(call) for call in awaitables]}


if __name__ == "__main__":
    main(*sys.argv[1:])
