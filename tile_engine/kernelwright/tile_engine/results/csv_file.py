"""A CSV file of rows that grows during measurement and that a later run continues."""

from __future__ import annotations

import csv
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from kernelwright.files.csv_table import columns_of, read_text, rows_of
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.results.analysis import Timed, best
from kernelwright.tile_engine.results.row import Row

_NEEDED = ("kernel", "problem_idx", "latency_ms", "selected", "status", "identity", "arch")
_WHOLE = ("problem_idx", "rank")
_NUMBERS = ("rank", "latency_ms", "tflops", "latency_min_ms", "latency_max_ms", "bandwidth_gb_s")


class CsvFile:
    """Appends rows, each on disk before the next is measured."""

    def __init__(self, path: Path, columns: Sequence[str], append: bool) -> None:
        """Open the file. ValueError if it has rows and not ``append``, has other columns, or a run is writing it."""
        self._columns = columns
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", newline="", encoding="utf-8")
        try:
            self._begin(path, columns, append)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, path: Path, columns: Sequence[str], append: bool) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run writes {path}; wait for its end, or write to another file") from None
        there = path.stat().st_size > 0
        if there and not append:
            raise ValueError(f"{path} exists; add --append or --resume to continue it, or remove it")
        if there:
            header = read_columns(path)
            if list(header) != list(columns):
                raise ValueError(f"{path} has other columns ({', '.join(header)}); write to another file")
            _drop_torn_line(path)
        self._writer = csv.DictWriter(self._file, columns, lineterminator="\n")
        if not there:
            self._writer.writeheader()

    def __enter__(self) -> CsvFile:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file."""
        self._file.close()

    def write(self, row: Row) -> None:
        """Append a row. Raises KeyError for one without a column."""
        self._writer.writerow({column: row[column] for column in self._columns})
        self._file.flush()
        os.fsync(self._file.fileno())


def write_best(path: Path, times: Sequence[Timed], columns: Sequence[str]) -> None:
    """The fastest kernel of each problem, and the selected one with its share of that speed, as CSV."""
    chosen = {one.problem: one for one in times if one.selected}
    names = ("kernel", "identity", "choices", "latency_ms", "tflops", "bandwidth_gb_s")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("problem_idx", *columns, *names, "selected", "selected_ms", "selected_share"))
        for problem, fastest in best(times).items():
            one = chosen.get(problem)
            share = f"{fastest.milliseconds / one.milliseconds:.4f}" if one else ""
            selected = (one.kernel, one.cells["latency_ms"], share) if one else ("", "", "")
            writer.writerow((problem, *(fastest.cells[name] for name in (*columns, *names)), *selected))


def read_columns(path: Path) -> Sequence[str]:
    """Column names from the first line of a file, which may be gzip-compressed."""
    return columns_of(read_text(path), path)


def read_rows(path: Path) -> list[dict[str, str]]:
    """All complete rows of a file, which may be gzip-compressed; a truncated last line is skipped.

    Raises ValueError for a file that is not a table of this engine: a column is missing, or a cell that must be a
    number is not.
    """
    text = read_text(path)
    rows = rows_of(text[: text.rfind("\n") + 1], path, _NEEDED)
    for number, row in enumerate(rows):
        for name in ("problem_idx", *_NUMBERS):
            if (row.get(name) and not _is_number(row[name], whole=name in _WHOLE)) or not row["problem_idx"]:
                raise ValueError(f"{path}: row {number}: {name} is {row[name]!r:.80}; measure it again")
    return rows


def _is_number(cell: str, whole: bool) -> bool:
    try:
        value = int(cell) if whole else float(cell)
    except ValueError:
        return False
    return 0 <= value < 2**63


def read_tables(paths: Sequence[Path]) -> list[dict[str, str]]:
    """The rows of several files, with problems renumbered."""
    all_rows: list[dict[str, str]] = []
    first = 0
    for path in paths:
        rows = read_rows(path)
        all_rows += [{**row, "problem_idx": str(int(row["problem_idx"]) + first)} for row in rows]
        first += 1 + max((int(row["problem_idx"]) for row in rows), default=0)
    return all_rows


def measured_before(path: Path, records: Sequence[Record], device: str) -> set[tuple[int, str]]:
    """Pairs of problem number and kernel identity that a file has rows for, on a device.

    Raises ValueError if a problem of the file has another number among ``records``.
    """
    pairs = set()
    for row in read_rows(path):
        index = int(row["problem_idx"])
        problem = records[index] if index < len(records) else {}
        if any(str(value) != row[name] for name, value in problem.items()) or not problem:
            raise ValueError(f"{path} holds other problems (number {index} differs); write to another file")
        if row.get("device", "") == device:
            pairs.add((index, row["identity"]))
    return pairs


def _drop_torn_line(path: Path) -> None:
    """Remove a line that a killed run left incomplete."""
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        path.write_bytes(data[: data.rfind(b"\n") + 1])
