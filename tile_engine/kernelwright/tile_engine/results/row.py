"""One row of the table: a kernel on a problem, whatever the outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.tile_engine.measuring.measure import Report
from kernelwright.tile_engine.operation import Measurable, Record

Row = dict[str, Any]
# After the columns of the operation. The first three are those of the CK Tile engine.
MEASURED = (
    *("latency_ms", "tflops", "non_zero"),
    *("selected", "rank", "latency_min_ms", "latency_max_ms", "bandwidth_gb_s", "roofline", "instructions"),
    *(
        "choices",
        "stages",
        "error",
        "status",
        "reason",
        "identity",
        "auxiliary",
        "arch",
        "device",
        "clocks",
        "date",
        "tags",
        "model",
        "layer",
        "units",
    ),
)


@dataclass(frozen=True)
class Table:
    """Values shared by the rows of one run.

    :ivar device: the dispatcher's name of the device, such as ``cpu``.
    :ivar date: ISO date of the run.
    :ivar tags: the user's ``key=value`` pairs, separated by semicolons.
    :ivar units: compute units that launches may use; 0 for those of the architecture. For a CPU, the process's cores.
    """

    operation: Measurable
    arch: Arch
    device: str
    date: str
    tags: str = ""
    units: int = 0

    @property
    def columns(self) -> Sequence[str]:
        """Names of all values of a row, in order."""
        return ("kernel", "problem_idx", *self.operation.columns, *MEASURED)

    def row(
        self, name: str, index: int, record: Record, report: Report, selected: bool, auxiliary: bool = False,
        rank: int | None = None,
    ) -> Row:  # fmt: skip
        """The row of a report; values that were not measured are empty.

        ``selected``: whether the dispatcher chooses the kernel; ``rank`` is its rank by the dispatcher. ``auxiliary``:
        see :meth:`Measurable.auxiliary`.
        """
        row: Row = dict.fromkeys(self.columns, "")
        row |= {"kernel": name, "problem_idx": index, **record}
        row |= {"identity": report["kernel"], "arch": self.arch.name, "device": self.device, "date": self.date}
        row |= {"status": report["status"], "reason": " ".join(report["reason"].split()), "tags": self.tags}
        row["model"], row["layer"] = self.operation.origin(record)
        row["units"] = self.units or self.arch.compute_units or ""
        row |= {key: "1" for key, holds in (("selected", selected), ("auxiliary", auxiliary)) if holds}
        row |= {key: report[key] for key in ("error", "non_zero", "choices", "clocks") if report.get(key) is not None}
        row |= {"rank": rank or "", "stages": ";".join(report.get("stages", ()))}
        if report.get("instructions"):
            row["instructions"] = ";".join(f"{kind}={count}" for kind, count in report["instructions"].items())
        if report.get("latency_ms"):
            row |= self._rates(record, report["latency_ms"])
        return row

    def _rates(self, record: Record, milliseconds: Sequence[float]) -> Mapping[str, Any]:
        median, least, most = milliseconds
        flops, moved = self.operation.flops(record), self.operation.bytes_moved(record)
        seconds = median / 1e3
        rates = {
            "latency_ms": f"{median:.6g}",
            "latency_min_ms": f"{least:.6g}",
            "latency_max_ms": f"{most:.6g}",
            "tflops": f"{flops / seconds / 1e12:.5g}",
            "bandwidth_gb_s": f"{moved / seconds / 1e9:.5g}",
        }
        if (floor := self._floor_s(record, flops, moved)) is not None:
            rates["roofline"] = f"{floor / seconds:.4f}"
        return rates

    def _floor_s(self, record: Record, flops: int, moved: int) -> float | None:
        """Lower bound in seconds for any kernel on this arch; None without a rate for the element type."""
        peak = peak_rates(self.arch, record.get("dtype", ""), self.units)
        return max(flops / peak[0], moved / peak[1]) if peak else None


def peak_rates(arch: Arch, dtype: str, units: int = 0) -> tuple[float, float] | None:
    """Peak operations on ``dtype`` and bytes of memory per second; None if the arch states no such rate.

    A CPU's file states no number of ``units``: the number of usable cores depends on the machine.
    """
    per_clock = arch.flops_per_clock_per_cu.get(dtype)
    units = units or arch.compute_units
    if not per_clock or not units:
        return None
    return per_clock * units * arch.clock_ghz * 1e9, arch.memory_gbytes_per_s * 1e9
