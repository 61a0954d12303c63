"""Tables written by others: CSV of bounded size, gzipped or not, as many cells in each row as in the first line."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Sequence

MAX_BYTES = 256 << 20
"""The largest table in bytes, uncompressed."""


def read_text(path: str | os.PathLike[str], most_bytes: int = MAX_BYTES) -> str:
    """Read a UTF-8 text; OSError if it cannot be read, ValueError if it is not UTF-8 or exceeds ``most_bytes``."""
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            data: bytes = file.read(most_bytes + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no CSV file: {error}") from None
    if len(data) > most_bytes:
        raise ValueError(f"{path} is no CSV file: it has more than {most_bytes} bytes; allowed: at most that many")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no CSV file: byte {error.start} is not UTF-8") from None


def columns_of(text: str, path: object) -> Sequence[str]:
    """Return the names in the first line. ValueError if the text is not CSV."""
    try:
        return next(csv.reader(io.StringIO(text)), [])
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV file: {error}") from None


def rows_of(text: str, path: object, needed: Sequence[str] = ()) -> list[dict[str, str]]:
    """The rows below the first line. ValueError if a ``needed`` column is missing, or a row has another length."""
    columns = columns_of(text, path)
    if missing := [name for name in needed if name not in columns]:
        raise ValueError(f"{path} has no column {missing[0]!r}; name a table of `kernelwright tile-engine bench`")
    reader = csv.DictReader(io.StringIO(text))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV file: line {reader.line_num}: {error}") from None
    for number, row in enumerate(rows):
        if len(set(columns)) != len(columns) or None in row or None in row.values():
            raise ValueError(f"{path}: row {number} has not one cell for each column; measure it again")
    return rows
