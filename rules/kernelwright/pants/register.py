"""The module in which Pants finds what the plugin adds."""

from __future__ import annotations

from kernelwright.pants.compat.versions import named

# Versions of Pants differ in what a plugin can import.
with named():
    from kernelwright.pants.contents import rules, target_types

__all__ = ["rules", "target_types"]
