"""Measure a library's kernels on problems, in batches of child processes, writing a table row by row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelwright.dispatch import KernelEntry
from kernelwright.tile_engine.measuring.choosing import Choice
from kernelwright.tile_engine.measuring.isolation import Child
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.results.row import Row, Table

Done = Collection[tuple[int, str]]
"""Pairs of problem and kernel identity that an earlier run has measured."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run: pairs of kernel and problem, done and in total."""

    done: int
    total: int
    row: Row


def measure(
    table: Table,
    child: Child,
    kernels: Sequence[KernelEntry],
    records: Sequence[Record],
    done: Done,
    batch_size: int,
    choices: Mapping[int, Choice],
    watch: Callable[[Progress], None],
) -> Iterator[Row]:
    """Yield the rows that ``done`` lacks, by problem; ``choices`` by problem number; ``watch`` sees the progress."""
    names = {kernel.identity: kernel.name for kernel in kernels}
    auxiliary = {kernel.identity for kernel in kernels if table.operation.auxiliary(kernel.spec)}
    todo = [(index, [kernel for kernel in names if (index, kernel) not in done]) for index in range(len(records))]
    total = sum(len(missing) for _, missing in todo)
    count = 0
    for index, missing in todo:
        choice = choices.get(index, Choice())
        for start in range(0, len(missing), batch_size):
            for report in child.reports(records[index], missing[start : start + batch_size]):
                identity = report["kernel"]
                marks = identity in choice.selected, identity in auxiliary, choice.ranks.get(identity)
                row = table.row(names[identity], index, records[index], report, *marks)
                count += 1
                watch(Progress(count, total, row))
                yield row
