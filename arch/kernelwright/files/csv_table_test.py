from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kernelwright.files.csv_table import columns_of, read_text, rows_of


def test_tables_are_read_packed_or_not(tmp_path: Path) -> None:
    text = 'a,b\n1,"x,\ny"\n'
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("t.csv", "t.csv.gz"):
        assert rows_of(read_text(tmp_path / name), name, ["b"]) == [{"a": "1", "b": "x,\ny"}]
    assert columns_of("", "t") == []


@pytest.mark.parametrize(
    "data",
    [b"\xff", b"\x1f\x8b", gzip.compress(b"a" * 100)[:-12], b"\x1f\x8b\x08\0\0\0\0\0\0\0\xff\xff", b"plain text"],
)
def test_damaged_files_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(data)
    with pytest.raises(ValueError, match=r"t\.csv\.gz is no CSV file: "):
        read_text(tmp_path / "t.csv.gz")


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(bytes(100_000)))
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        read_text(tmp_path / "t.csv.gz", 1000)


@pytest.mark.parametrize("text", ["a,b\n1\n", "a,b\n1,2,3\n", "a,a\n1,2\n", "b\n1\n", f"a\n{'x' * 200_000}\n", 'a\n"1'])
def test_rows_that_do_not_fit_are_refused(text: str) -> None:
    if text == 'a\n"1':  # what csv itself mends
        assert rows_of(text, "t") == [{"a": "1"}]
        return
    with pytest.raises(ValueError, match=r"^t(:| is| has)"):
        rows_of(text, "t", ["a"])
