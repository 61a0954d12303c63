from __future__ import annotations

import logging

import pytest

from kernelwright.pants.damaged_store import ADVICE, DamagedStore, advise

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
