from __future__ import annotations

import pytest

from kernelwright.pants.engine.dist_paths import OutsideDist, checked_dist_path


@pytest.mark.parametrize("path", ["x.json", "a/b/c", "a b/ü.json", "..a/b..", "a" * 255])
def test_paths_below_dist_are_taken(path: str) -> None:
    assert checked_dist_path(path, "the option") == path


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is empty"),
        ("/x", "is absolute"),
        ("../victim", "leaves the folder"),
        ("../../x.json", "leaves the folder"),
        ("a/../b", "leaves the folder"),
        ("a\nb", "unprintable"),
        ("a\\..\\b", "backslash"),
        ("a//b", "shortest spelling"),
        ("./a", "shortest spelling"),
        ("a/", "shortest spelling"),
        ("a" * 256, "too long a name"),
        ("a/" * 600 + "b", "is too long"),
    ],
)
def test_others_are_refused_and_not_repeated_whole(path: str, why: str) -> None:
    with pytest.raises(OutsideDist, match=f"the option is .*{why}.*; allowed: a path below dist") as caught:
        checked_dist_path(path, "the option")
    assert len(str(caught.value)) < 300
