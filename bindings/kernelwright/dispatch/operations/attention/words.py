"""Human-readable descriptions of attention kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = ("mask", "bias", "qscale", "rope")
_FLAGS = ("lse", "dropout", "logits_soft_cap", "paged_kv", "sink", "dbias", "deterministic")


def short(spec: Mapping[str, Any]) -> str:
    """Such as ``fwd bf16 h128 128x64 generic mask``: family, dtype, head dimension, queries by keys, features."""
    same = spec["hdim_q"] == spec.get("hdim_v", spec["hdim_q"])
    words = [spec["family"], spec["dtype"], f"h{spec['hdim_q']}" + ("" if same else f"x{spec['hdim_v']}")]
    tile = spec.get("tile")
    words += [f"{tile['m0']}x{tile['n0']}"] if tile and "m0" in tile and "n0" in tile else []
    words += ["group"] if spec.get("group") else []
    words += [f"{spec[name]} {name}" for name in _WORDS if spec.get(name, "none") != "none"]
    return " ".join([*words, *(name.replace("_", " ") for name in _FLAGS if spec.get(name))])
