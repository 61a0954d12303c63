from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelwright.codegen.building.cache_folder import default_cache, is_shared, make_private, why_untrusted
from kernelwright.codegen.violations import SpecError

STRANGER = 4242


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    root = tmp_path / "home/cache"
    make_private(root)
    return root


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root can; for others this process plays another user."""
    if os.geteuid() == 0:
        os.chown(path, STRANGER, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


def test_folders_are_made_for_this_user_alone(cache: Path) -> None:
    made = [cache.parent, cache, *cache.iterdir()]
    assert len(made) > 8 and {path.stat().st_mode & 0o777 for path in made} == {0o700}
    assert why_untrusted(cache) is None and why_untrusted(cache / "libraries/nothing") is None


@pytest.mark.parametrize("where", ["", "..", "libraries", "libraries/key"])
def test_what_others_can_write_is_named(cache: Path, where: str) -> None:
    folder = (cache / "libraries/key").resolve()
    folder.mkdir()
    (cache / where).chmod(0o777)
    assert why_untrusted(folder) or why_untrusted(cache)
    reason = why_untrusted(folder) or ""
    assert reason == f"{(cache / where).resolve()} can be written by all users"
    (cache / where).chmod(0o755)
    assert why_untrusted(folder) is None


def test_a_group_is_others(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd

    cache.chmod(0o770)
    own, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(cache.stat().st_gid)
    for name, members, private in ((own.pw_name, [], True), (own.pw_name, ["eve"], False), ("users", [], False)):
        fake = grp.struct_group((name, "x", group.gr_gid, members))
        monkeypatch.setattr(grp, "getgrgid", lambda number, fake=fake: fake)
        reason = why_untrusted(cache)
        assert (reason is None) == private and (private or reason == f"{cache} can be written by its group {name}")


def test_the_folder_of_another_user_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(cache, monkeypatch)
    assert f"belongs to user {STRANGER}" in (why_untrusted(cache) or "") or os.geteuid() == STRANGER
    assert why_untrusted(cache)


def test_links_are_followed_step_by_step(cache: Path, tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    (open_folder / "second").symlink_to(cache)
    first = tmp_path / "first"
    first.symlink_to("open/second")
    assert why_untrusted(first) is None
    open_folder.chmod(0o777)
    assert why_untrusted(first) == f"{open_folder} can be written by all users"
    (tmp_path / "circle").symlink_to("circle")
    assert "too many links" in (why_untrusted(tmp_path / "circle") or "")


def test_others_cannot_replace_what_is_in_a_sticky_folder(cache: Path) -> None:
    cache.parent.chmod(0o1777)
    assert why_untrusted(cache) is None


def test_files_in_a_private_folder_are_not_open(cache: Path) -> None:
    (cache / "gate").touch()
    (cache / "gate").chmod(0o666)
    assert why_untrusted(cache) is None


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_CACHE", "/kept")
    assert default_cache() == Path("/kept")
    monkeypatch.delenv("KERNELWRIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache() == Path("/xdg/kernelwright")


def test_sharing_is_on_or_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELWRIGHT_SHARED_CACHE", raising=False)
    assert not is_shared()
    monkeypatch.setenv("KERNELWRIGHT_SHARED_CACHE", "on")
    assert is_shared()
    monkeypatch.setenv("KERNELWRIGHT_SHARED_CACHE", "1")
    with pytest.raises(SpecError, match="KERNELWRIGHT_SHARED_CACHE is '1'; allowed: on, off"):
        is_shared()
