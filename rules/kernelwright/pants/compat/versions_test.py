from __future__ import annotations

import pytest

from kernelwright.pants.compat.versions import LOADED_ON, UnsupportedPants, check


@pytest.mark.parametrize("version", [*LOADED_ON, "2.17.0", "2.27.0.dev1", "2.33.9", "2.31.1rc1"])
def test_supported_versions_load(version: str) -> None:
    check(version)


@pytest.mark.parametrize("version", ["2.16.1", "2.18.0", "2.26.2", "2.34.0.dev0", "3.0.0"])
def test_another_generation_is_refused_in_one_sentence(version: str) -> None:
    with pytest.raises(UnsupportedPants) as refused:
        check(version)
    said = str(refused.value)
    assert said.startswith(f"kernelwright-pants does not run on Pants {version}; set [GLOBAL].pants_version to 2.17.1")
    assert ". " not in said and "\n" not in said
