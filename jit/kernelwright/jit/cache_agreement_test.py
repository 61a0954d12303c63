"""``kernelwright doctor`` shows the cache that builds at run time use; it may not import what decides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.building.cache_folder import default_cache
from kernelwright.dispatch.tools import doctor


@pytest.mark.parametrize("named", ["", "elsewhere"])
@pytest.mark.parametrize("user", ["", "user"])
def test_doctor_shows_the_cache_of_the_jit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, user: str
) -> None:
    for variable, folder in (("KERNELWRIGHT_CACHE", named), ("XDG_CACHE_HOME", user)):
        monkeypatch.setenv(variable, folder and str(tmp_path / folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert doctor.jit_cache() == default_cache()
