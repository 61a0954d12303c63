"""The page of coverage says what sets of AMD serve, planned with hollow libraries: launchers and traits are real."""

from __future__ import annotations

import os

import pytest

from amd import hollow
from coverage_of_models import shipped

# A hollow kernel compiles in a processor second, and an architecture has 60 of attention.
ARCHS = ("gfx942", "gfx1201", *(("gfx90a", "gfx950", "gfx1100") if os.environ.get("KERNELWRIGHT_EVERY") else ()))
KINDS = [
    (operation, arch)
    for arch in ARCHS
    for operation in ("gemm", "convolution", "attention")
    if any(shares[arch] for (name, _), shares in shipped.stated().items() if name == operation)
]


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(("operation", "arch"), KINDS)
def test_the_page_states_what_a_set_serves(operation: str, arch: str) -> None:
    by_use = shipped.shares_of(hollow.of_set(f"{operation}:coverage", arch), operation)
    assert by_use is not None
    stated = {use: shares[arch] for (name, use), shares in shipped.stated().items() if name == operation}
    assert {use: shipped.cell(share) for use, share in by_use.items()} == stated
