"""Names of attention kernels in configurations of the CK Tile engine."""

from __future__ import annotations

from kernelwright.tile_engine.operation import Words

_GRADIENTS = ("bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq")
_FAMILIES = (
    *("fwd", "fwd_splitkv", "fwd_splitkv_combine", "fwd_pagedkv", "fwd_appendkv", "batch_prefill"),
    *_GRADIENTS,
)
WORDS = Words(
    variants={
        "fmha": {},
        **{f"{prefix}{word}": {"family": [word]} for prefix in ("", "fmha_") for word in _FAMILIES},
        **{word: {"family": _GRADIENTS} for word in ("bwd", "fmha_bwd")},
        "splitkv": {"family": ("fwd_splitkv", "fwd_splitkv_combine")},
        "pagedkv": {"family": ["fwd_pagedkv"]},
        "appendkv": {"family": ["fwd_appendkv"]},
    },
    renamed={"data_type": "dtype", "datatype": "dtype", "mode": "group", "logits": "logits_soft_cap"},
    values={
        **{name: {"no": "none"} for name in ("mask", "bias", "qscale")},
        "group": {"batch": False, "group": True},
    },
    # Generic masks are causal if their windows say so.
    served_by={"mask": {"top_left": "generic", "bottom_right": "generic"}},
)
