"""Rules of kernels for NVIDIA GPUs: none beside those of every backend; the architecture's table lists them."""

from __future__ import annotations

from kernelwright.codegen.violations import Rule

RULES: tuple[Rule, ...] = ()
