"""Problems read from rows of the tile engine's attention table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.codegen.operations.attention.time_model.problem import (
    TimedProblem,
    read_append,
    read_fields,
)
from kernelwright.problems.attention.append_problem import AppendProblem

_COUNTS = ("batch", "seqlen_q", "seqlen_k", "nhead_q", "nhead_k", "hdim_q", "hdim_v")
_FLAGS = ("sink", "ragged", "lse", "deterministic")


def posed_of_row(row: Mapping[str, str]) -> TimedProblem | AppendProblem:
    """Return the problem of dense tensors, with heads inside rows, as the tile engine poses it.

    Ragged requests are as long as stated, down to about half of that.
    """
    n = {name: int(row[name]) for name in (*_COUNTS, *_FLAGS, "page_size", "rotary_dim", "num_splits")}
    shared = {"batch": n["batch"], "hdim_q": n["hdim_q"], "hdim_v": n["hdim_v"], "dtype": row["dtype"], **_pages(n)}
    if row["direction"] == "append":
        rotary = {"rope": "half", "rotary_dim": n["rotary_dim"], "rotary_places": n["seqlen_k"]}
        turned = {**rotary, "heads_q": n["nhead_q"], "seqlen_q": n["seqlen_q"]} if n["rotary_dim"] else {}
        new = {"heads_kv": n["nhead_k"], "seqlen_new": n["seqlen_q"], "capacity": n["seqlen_k"]}
        return read_append({**shared, **new, **turned})
    forward, grouped = row["direction"] == "forward", n["ragged"] and n["seqlen_q"] > 1
    raw: dict[str, Any] = {
        **shared,
        "direction": row["direction"],
        **{"heads_q": n["nhead_q"], "heads_kv": n["nhead_k"], "seqlen_q": n["seqlen_q"], "seqlen_k": n["seqlen_k"]},
        **{"mask": row["mask"], "soft_cap": float(row["soft_cap"]), "bias": row["bias"], "sink": bool(n["sink"])},
        **{"lse": bool(n["lse"]) and forward, "deterministic": bool(n["deterministic"])},
        "num_splits": n["num_splits"] if forward else 1,
        "kv_lengths": n["page_size"] > 0 or (bool(n["ragged"]) and not grouped),
    }
    if row["mask"] != "none":
        raw["window"] = [int(row["window_left"]), int(row["window_right"])]
    if row["bias"] == "elementwise":
        raw["bias_strides"] = [0, n["seqlen_q"] * n["seqlen_k"], n["seqlen_k"]]
    if grouped:
        raw |= {"group": True, "total_q": _ragged(n, "seqlen_q")}
        raw["total_k"] = 0 if n["page_size"] else _ragged(n, "seqlen_k")
    return read_fields(raw)


def _ragged(n: Mapping[str, int], name: str) -> int:
    """Return the rows of all requests: request ``i`` has ``longest - longest * i // (2 * batch)``."""
    longest, batch = n[name], n["batch"]
    return longest * batch - _sum_of_quotients(batch, 2 * batch, longest)


def _sum_of_quotients(count: int, divisor: int, factor: int) -> int:
    """Return the sum of ``factor * i // divisor`` over i below ``count``, in as many steps as Euclid's algorithm takes.

    Lattice points below a line are counted by columns, then by rows, in turn.
    """
    total, start = 0, 0  # sum of (factor * i + start) // divisor
    while count > 0 and divisor > 0:
        whole, factor = divmod(factor, divisor)
        more, start = divmod(start, divisor)
        total += whole * count * (count - 1) // 2 + more * count
        highest = factor * count + start
        count, start, factor, divisor = highest // divisor, highest % divisor, divisor, factor
    return total


def _pages(n: Mapping[str, int]) -> dict[str, Any]:
    size = n["page_size"]
    if not size:
        return {}
    row = -(-n["seqlen_k"] // size)
    return {"page_table": "block", "pages": n["batch"] * row, "page_size": size, "page_table_stride": row}
