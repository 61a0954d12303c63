"""First calls import nothing, so processes may fork in their midst: a child that waits for an import waits for ever."""

from __future__ import annotations

import os

import pytest

from kernelwright.dispatch.testdata import fork_first_calls, imports_of_calls, mocks
from kernelwright.dispatch.testdata.fresh import output

CHILDREN = 60
RUNS = 20 if os.environ.get("KERNELWRIGHT_EVERY") else 3  # of about 3 s; before the fix each had children that hung


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    mocks.native_library()
    folder = tmp_path_factory.mktemp("libraries")
    variants = mocks.write_library(folder / "variants", "MOCK_VARIANTS", name="variants", seed="1")
    return [str(path) for path in (mocks.write_library(folder / "plain"), variants, mocks.attention_library())]


def test_calls_import_nothing(libraries: list[str]) -> None:
    assert output(imports_of_calls, *libraries) == "[]"


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize("run", range(RUNS))
def test_children_of_first_calls(libraries: list[str], run: int) -> None:
    assert output(fork_first_calls, libraries[0], str(CHILDREN)) == "[]"
