"""Counts of a main loop converted to rocprof's counters, in the units of these.

Definitions and units: ROCm documentation, "MI300 and MI200 Series performance counters and metrics". The counters are
sums over all waves, SIMDs and compute units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CLOCKS = 4  # clocks of a quad-cycle, in which some counters count


def counted(loop: Mapping[str, Any] | None) -> dict[str, float | None]:
    """Return the values of one wave and iteration by counter; None where an address is known only to a launch.

    ``SQ_INSTS_VALU`` includes matrix instructions; ``SQ_INSTS_LDS`` counts a pair of addresses once where counts have
    two accesses; ``SQ_LDS_IDX_ACTIVE`` includes the clocks of conflicts.
    """
    if loop is None:
        return {}
    conflicts = loop["conflict_cycles"]
    return {
        "SQ_INSTS_VALU": loop["vector"] + loop["matrix"],
        "SQ_INSTS_MFMA": loop["matrix"],
        "SQ_INSTS_SALU": loop["scalar"],
        "SQ_INSTS_LDS": sum(loop["lds"].values()),
        "SQ_INSTS_VMEM": sum(loop["memory"].values()),
        "SQ_VALU_MFMA_BUSY_CYCLES": loop["matrix_cycles"],
        "SQ_ACTIVE_INST_VALU": loop["vector_cycles"] / _CLOCKS,
        "SQ_LDS_BANK_CONFLICT": conflicts,
        "SQ_LDS_IDX_ACTIVE": None if conflicts is None else loop["lds_cycles"] + conflicts,
    }


def turns(loop: Mapping[str, Any] | None, counters: Mapping[str, float]) -> float | None:
    """Return the iterations of all waves of a launch: its matrix instructions over those of an iteration.

    Matrix instructions before and after the loop count as iterations. Without ``SQ_INSTS_MFMA``, the clocks of matrix
    cores over those of an iteration; None without either.
    """
    for counter, key in (("SQ_INSTS_MFMA", "matrix"), ("SQ_VALU_MFMA_BUSY_CYCLES", "matrix_cycles")):
        if loop and loop[key] and counters.get(counter):
            return counters[counter] / float(loop[key])
    return None
