from __future__ import annotations

import hashlib
import logging
import subprocess
from pathlib import Path

import pytest

from kernelwright.pants.damaged_store import (
    ADVICE,
    CHECKSUMS,
    COMPARE_CHECKSUMS,
    DamagedStore,
    advise,
    check_contents,
    check_inputs,
    checksums,
)

RUNNER = "pants.bin.local_pants_runner"


@pytest.mark.parametrize(
    ("said", "advised"),
    [
        ('Error storing fingerprints ["00"]: MDB_PAGE_NOTFOUND: Requested page not found', True),
        ("UnicodeDecodeError: 'utf-8' codec can't decode byte 0xb6 in position 11844: invalid start byte", True),
        ("BUILD:1: no target named 'x'", False),
    ],
)
def test_errors_of_the_database_say_what_to_do(caplog: pytest.LogCaptureFixture, said: str, advised: bool) -> None:
    advise()
    advise()
    logging.getLogger(RUNNER).error(ValueError(said))
    assert said in caplog.text
    assert caplog.text.count(ADVICE) == advised


def test_our_own_words_are_enough(caplog: pytest.LogCaptureFixture) -> None:
    advise()
    logging.getLogger(RUNNER).error(DamagedStore("BUILD: UnicodeDecodeError"))
    assert caplog.text.count(ADVICE) == 1


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def test_contents_are_compared_with_their_fingerprints() -> None:
    fingerprints = {"a": digest(b"1"), "b": digest(b"2"), "not read": digest(b"3")}
    check_contents({"a": b"1", "b": b"2"}, fingerprints)
    with pytest.raises(DamagedStore, match="the local store is damaged: b\n"):
        check_contents({"a": b"1", "b": b"0"}, fingerprints)


@pytest.mark.parametrize(("content", "damaged"), [("right", False), ("wrong", True)])
def test_a_process_compares_its_inputs(tmp_path: Path, content: str, damaged: bool) -> None:
    (tmp_path / "in put").write_text(content)
    (tmp_path / CHECKSUMS).write_text(checksums({"in put": digest(b"right")}))
    argv = ["/bin/sh", "-c", COMPARE_CHECKSUMS + 'echo "started with $PATH"']
    done = subprocess.run(argv, cwd=tmp_path, env={"PATH": "/none"}, capture_output=True, text=True)
    assert done.stdout == ("" if damaged else "started with /none\n")
    if damaged:
        with pytest.raises(DamagedStore, match="Compile x: in put: FAILED"):
            check_inputs(done.returncode, done.stderr.encode(), "Compile x")
    else:
        check_inputs(done.returncode, done.stderr.encode(), "Compile x")


def test_other_failures_are_no_damage() -> None:
    check_inputs(1, b"error: no such variable", "Compile x")
