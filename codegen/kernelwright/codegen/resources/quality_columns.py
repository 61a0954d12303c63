"""The columns of ``kernelwright quality``, and the counters of rocprof that correspond to them on hardware."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column. ``better``: whether a ``lower`` or ``higher`` value is better; None where neither is."""

    key: str
    heading: str
    about: str
    counters: tuple[str, ...] = ()
    better: str | None = "lower"


COLUMNS = (
    Column("bound", "bound", "the unit that a turn of the main loop keeps busy longest", better=None),
    Column(
        "matrix_clocks",
        "matrix",
        "clocks of a SIMD's matrix core, of a wave and turn",
        ("SQ_VALU_MFMA_BUSY_CYCLES",),
        better=None,
    ),
    Column("vector_clocks", "vector", "clocks of a SIMD's vector unit, of a wave and turn", ("SQ_ACTIVE_INST_VALU",)),
    Column(
        "lds_clocks",
        "LDS",
        "clocks of the LDS with bank conflicts, times the SIMDs that share it",
        ("SQ_LDS_IDX_ACTIVE", "SQ_LDS_BANK_CONFLICT"),
    ),
    Column(
        "memory_clocks",
        "memory",
        "bytes of loads and stores over what the L2 delivers, times the SIMDs that share it",
        ("TCP_TOTAL_CACHE_ACCESSES_sum",),
    ),
    Column("valu_per_matrix_cycle", "VALU/matrix", "vector clocks over matrix clocks"),
    Column("lds_per_matrix_cycle", "LDS/matrix", "LDS clocks over matrix clocks"),
    Column(
        "conflicts",
        "conflicts",
        "clocks that LDS bank conflicts add, of a wave and turn; – if only a launch knows the addresses",
        ("SQ_LDS_BANK_CONFLICT",),
    ),
    Column("vector", "VALU", "vector instructions of a turn; the counter has matrix ones too", ("SQ_INSTS_VALU",)),
    Column("scalar", "SALU", "scalar instructions of a turn", ("SQ_INSTS_SALU",)),
    Column("lds", "LDS ops", "LDS accesses of a turn; a pair of addresses is two", ("SQ_INSTS_LDS",)),
    Column("memory", "VMEM", "vector memory instructions of a turn", ("SQ_INSTS_VMEM",)),
    Column("load_bytes", "load B", "bytes of a lane of the narrowest load of a turn", better="higher"),
    Column("waits", "waits", "wait instructions of a turn"),
    Column("barriers", "barriers", "barriers of a turn"),
    Column("outside", "outside", "instructions outside of the main loop, each once"),
    Column("registers", "regs", "vector registers of a lane (thread)", ("Arch_VGPR", "Accum_VGPR")),
    Column("lds_bytes", "LDS B", "bytes of LDS (shared memory) of a workgroup", ("LDS_Block_Size",)),
    Column("spills", "spills", "spilled registers"),
    Column("scratch_bytes", "scratch B", "bytes that a lane keeps for itself", ("Scratch_Size",)),
    Column("occupancy_percent", "occ. %", "waves that fit, of those that a compute unit holds", better="higher"),
    Column("limiter", "limited by", "what keeps a compute unit from holding more workgroups", better=None),
    Column("matrix_instructions", "matrix ops", "matrix instructions (multiply-adds on CPU) in the code", better=None),
    Column(
        "lines_per_compulsory",
        "lines",
        "lines of 128 bytes that a simulated launch moves, over those that it touches",
        ("TCP_TCC_READ_REQ_sum", "TCP_TCC_WRITE_REQ_sum"),
    ),
    Column("measured_us", "us", "microseconds of a launch, measured; of several problems the shortest"),
    Column(
        "bound_share_percent",
        "of bound %",
        "measured rate over what the bounding unit allows at the stated clock; of several problems the best",
        better="higher",
    ),
)


def cell(value: object) -> str:
    """Format a value as tables show it."""
    if value is None:
        return "–"
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
