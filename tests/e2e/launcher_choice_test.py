"""The launcher that the environment names, and the workspace that it gets."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from e2e import launcher
from e2e.launcher import ROOT


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "kernelwright_pants-1.2.3-py3-none-any.whl").touch()
    return folder


def test_without_a_name_it_is_the_one_of_this_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(launcher.VARIABLE, raising=False)
    assert launcher.command(tmp_path) == "./pants"


def test_a_named_launcher_gets_the_plugin_from_its_wheels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheels: Path
) -> None:
    monkeypatch.setenv(launcher.VARIABLE, str(launcher.PANTS_2_17))
    monkeypatch.setattr(launcher, "shelf", lambda: wheels)
    (tmp_path / "pants.toml").write_text((ROOT / "pants.toml").read_text())
    assert launcher.command(tmp_path) == str(launcher.PANTS_2_17)
    ours = tomllib.loads((ROOT / "pants.toml").read_text())
    theirs = tomllib.loads((tmp_path / "pants.toml").read_text())
    assert theirs["GLOBAL"].pop("plugins") == ["kernelwright-pants==1.2.3"]
    assert theirs.pop("python-repos") == {"find_links": [wheels.as_uri()]}
    assert ours["GLOBAL"].pop("pythonpath") == ["%(buildroot)s/rules"]
    assert theirs == ours


@pytest.mark.parametrize("name", ["/nowhere/pants", "/tmp", str(ROOT / "pants.toml")])
def test_what_is_no_program_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(launcher.VARIABLE, name)
    with pytest.raises(ValueError, match=r"KERNELWRIGHT_TEST_LAUNCHER is .*, which is no program; name a launcher"):
        launcher.named()
