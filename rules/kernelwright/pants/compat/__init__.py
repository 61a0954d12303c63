"""Differences between the generations of Pants that the plugin runs on: one package for each, with the same names.

Rules call each other, and Pants' own rules, by name: ``await make(Request(...), **implicitly())``.
"""

from __future__ import annotations

import sys

from kernelwright.pants.compat.versions import check_running

check_running()

# Type checkers know only versions of Python; no two generations share a Python version.
if sys.version_info >= (3, 11):
    from kernelwright.pants.compat.pants_2_27 import calls, dependencies, patches
    from kernelwright.pants.compat.pants_2_27.fields import LibraryOutputPathField
    from kernelwright.pants.compat.pants_2_27.rules import concurrently, goal_rule, implicitly, rule
else:
    from kernelwright.pants.compat.pants_2_17 import calls, dependencies, patches
    from kernelwright.pants.compat.pants_2_17.fields import LibraryOutputPathField
    from kernelwright.pants.compat.pants_2_17.rules import concurrently, goal_rule, implicitly, rule

__all__ = [
    "LibraryOutputPathField",
    "calls",
    "concurrently",
    "dependencies",
    "goal_rule",
    "implicitly",
    "patches",
    "rule",
]
