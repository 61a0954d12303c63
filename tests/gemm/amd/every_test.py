"""Slow: every kernel of an architecture in one tile, built and run as the shipped ones are; minutes to hours.

``KERNELWRIGHT_EVERY=gfx942 ./pants test tests/gemm/amd:every`` builds and runs all; ``KERNELWRIGHT_EVERY=gfx942:mem``
those with "mem" in their name. ``KERNELWRIGHT_EVERY=gfx942+variants`` takes the variants, ``gfx942+templates`` each
template once in a small tile, ``gfx942+members`` the smallest member of a preselected set of each purpose; also with a
part of a name. Without the variable nothing is built.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compiling import executor
from gemm.amd import record
from gemm.amd.every import every, variants
from gemm.amd.templates import members, templates
from kernelwright.codegen.kernel import Kernel

WHAT, _, PART = os.environ.get("KERNELWRIGHT_EVERY", "").partition(":")
ARCH, _, GROUP = WHAT.partition("+")


def chosen() -> list[Kernel]:
    groups = {
        "": every,
        "variants": variants,
        "templates": lambda arch: (template.kernel for template in templates(arch)),
        "members": lambda arch: (template.kernel for template in members(arch)),
    }
    return [kernel for kernel in groups[GROUP](ARCH) if PART in kernel.name] if ARCH else []


@pytest.mark.parametrize("kernel", chosen(), ids=lambda kernel: kernel.name)
def test_every_result_is_right(kernel: Kernel, tmp_path: Path) -> None:
    assert record.run(*record.build(kernel, executor(), tmp_path)) > 0
