from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.jit.libraries import LibraryCache


@pytest.mark.parametrize("stamps", ["", "{", "[]", "null", "3", "[" * 100_000])
def test_a_damaged_result_is_not_found(tmp_path: Path, stamps: str) -> None:
    folder = tmp_path / "libraries" / "key"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "toolchains.json").write_text(stamps)
    assert LibraryCache(tmp_path, shared=True).find("key", {"zig": "1"}) is None
