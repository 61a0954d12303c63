"""The page says what the libraries serve: every cell, so that none falls unseen and none is claimed."""

from __future__ import annotations

from importlib.resources import as_file, files

import pytest

from coverage_of_models import shipped

LIBRARIES = [(name, arch) for name, archs in shipped.LIBRARIES.items() for arch in archs]


# Those of processors by default.
@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize(("operation", "arch"), sorted(LIBRARIES, key=lambda each: each[1] not in shipped.CPU))
def test_the_page_states_what_a_library_serves(operation: str, arch: str) -> None:
    with as_file(files(operation).joinpath("")) as folder:
        by_use = shipped.served(folder, operation, arch)
    if by_use is None:
        pytest.skip(f"this processor does not run {arch}")
    stated = {use: shares[arch] for (name, use), shares in shipped.stated().items() if name == operation}
    assert {use: shipped.cell(share) for use, share in by_use.items()} == stated
