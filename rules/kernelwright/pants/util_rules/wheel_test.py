from __future__ import annotations

from typing import Optional

import pytest

from kernelwright.pants.util_rules.wheel import BuiltWheel, moved
from kernelwright.pants.util_rules.wheel_pins import METADATA, pin
from pants.backend.python.util_rules.lockfile_metadata import PythonLockfileMetadata
from pants.core.util_rules.lockfile_metadata import BEGIN_LOCKFILE_HEADER, END_LOCKFILE_HEADER
from pants.engine.fs import EMPTY_DIGEST

MOVES = {"cpp/include": "pkg/native/include", "cpp": "pkg/cpp", "pins": "pkg/pins"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("cpp/include/a/b.h", "pkg/native/include/a/b.h"),
        ("cpp/b.h", "pkg/cpp/b.h"),
        ("pins/zig.txt", "pkg/pins/zig.txt"),
        ("pinsonly/zig.txt", None),
        ("src/a.py", None),
    ],
)
def test_the_longest_folder_says_where_a_file_goes(path: str, expected: Optional[str]) -> None:
    assert moved(path, MOVES) == expected


def test_a_pin_names_version_digest_and_file() -> None:
    name = "acme_kernels-1.2-py3-none-manylinux_2_17_x86_64.whl"
    line = pin(BuiltWheel(name, "ab" * 32, EMPTY_DIGEST))
    assert line == f"acme-kernels==1.2 --hash=sha256:{'ab' * 32}\n"


def test_pants_reads_the_metadata_of_pins() -> None:
    lines = (BEGIN_LOCKFILE_HEADER, METADATA, END_LOCKFILE_HEADER)
    text = "".join(f"# {line}\n" for line in lines).encode()
    metadata = PythonLockfileMetadata.from_lockfile(text, delimeter="#")
    assert [str(each) for each in metadata.valid_for_interpreter_constraints] == ["CPython>=3.11"]
