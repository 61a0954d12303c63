"""Everything that is modelled: importing this module fills the table of semantics."""

from __future__ import annotations

from tilewright.simulator import (  # noqa: F401
    buffer,
    control,
    lds_ops,
    matrix,
    scalar_binary,
    scalar_compare,
    scalar_float,
    scalar_memory,
    scalar_unary,
    vector_compare,
    vector_convert,
    vector_dot,
    vector_dual,
    vector_exchange,
    vector_extremes,
    vector_float,
    vector_float8,
    vector_integer,
    vector_lanes,
    vector_logic,
    vector_mix,
    vector_packed,
    vector_permute,
    vector_rounding,
    vector_transcendental,
    vector_wide,
)
