"""The spec fields that a problem of attention requires of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.problems.attention.append_problem import AppendProblem
from kernelwright.problems.attention.problem import AttentionProblem

_CAUSAL = (-1, 0)
_ROWS = ("fwd_splitkv_combine", "bwd_dot_do_o", "bwd_convert_dq")  # families that read no scores
_PAGED = ("fwd_pagedkv", "batch_prefill")


def asked(problem: AttentionProblem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a kernel's spec must have to serve the problem, without those that ``spec`` serves anyway.

    Features that the problem lacks are left out, since many kernels that have them serve it, and so are those that some
    backends serve whatever the spec says.
    """
    family = spec.get("family")
    fields = {"op": "attention", **_hdims(problem, spec)}
    if problem.group and family != "batch_prefill":  # which serves both
        fields["group"] = True
    if problem.lse and family != "fwd_splitkv":  # which always stores it
        fields["lse"] = True
    if family in _ROWS:
        return fields
    result = "" if problem.dtype == problem.dtype_o else problem.dtype_o
    fields |= {"dtype": f"{problem.dtype}{result}", **_mask(problem, spec)}
    if problem.bias != "none" and spec.get("bias", "none") != "elementwise":  # which may serve the other, too
        fields["bias"] = problem.bias
    if problem.qscale != "none" and spec.get("qscale", "none") != "none":  # else the reason says whether it has them
        fields["qscale"] = problem.qscale
    flags = {
        "dropout": problem.dropout_p > 0,
        "logits_soft_cap": problem.soft_cap != 0 and family != "bwd_dq_dk_dv",
        "sink": problem.sink and family != "bwd_dq_dk_dv",
        "dbias": problem.dbias,
        "paged_kv": problem.page_table != "none" and family not in _PAGED,
    }
    return fields | {name: True for name, is_asked in flags.items() if is_asked}


def asked_of_append(problem: AppendProblem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """:func:`asked` of rows appended to a cache."""
    fields = {"op": "attention", "family": "fwd_appendkv", "dtype": problem.dtype, **_hdims(problem, spec)}
    if problem.rope != "none":
        fields["rope"] = problem.rope
    return fields | ({"paged_kv": True} if problem.page_table != "none" else {})


def _hdims(problem: AttentionProblem | AppendProblem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Head dimensions, unless the kernel has them or pads smaller ones."""
    fields: dict[str, Any] = {}
    for name, pad in (("hdim_q", "d"), ("hdim_v", "dv")):
        wanted, has = getattr(problem, name), spec.get(name, spec.get("hdim_q", 0))
        if wanted > has or (wanted < has and not spec.get("pad", {}).get(pad, True)):
            fields[name] = wanted
    return fields


def _mask(problem: AttentionProblem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The mask, unless the kernel has one: which others it serves depends on the backend."""
    if problem.mask == "none" or spec.get("mask", "none") != "none":
        return {}
    return {"mask": problem.mask if problem.window == _CAUSAL else "generic"}
