from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings

from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.name import kernel_name
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.operations.attention.testing.strategies import specs

PLAIN: dict[str, Any] = {
    "op": "attention",
    "family": "fwd",
    "dtype": "bf16",
    "hdim_q": 128,
    "hdim_v": 128,
    "pipeline": "qr_async",
    "tile": {"m0": 128, "n0": 128, "k0": 32, "n1": 128, "k1": 32, "k0max": 128},
    "wave": {"m0": 4, "n0": 1, "k0": 1, "m1": 4, "n1": 1, "k1": 1},
}
# Every field that is no part of the beginning of the name, and what it leaves there.
PARTS = {
    "v_layout": ("col", "vcol"),
    "logits_soft_cap": (True, "cap"),
    "mask": ("generic", "mask"),
    "bias": ("alibi", "alibi"),
    "lse": (True, "lse"),
    "dropout": (True, "drop"),
    "qscale": ("block_scale", "qbs"),
    "rope": ("half", "ropeh"),
    "paged_kv": (True, "paged"),
    "static_quant": (True, "squant"),
    "skip_min_seqlen_q": (True, "skip"),
    "sink": (True, "sink"),
    "dbias": (True, "dbias"),
    "store_randval": (True, "rand"),
    "deterministic": (True, "det"),
    "kv_memory_layout": ("vectorized", "vec"),
    "kv_lookup_table": ("sglang", "sgl"),
    "page_size": (16, "pg16"),
    "trload": (True, "tr"),
    "block_per_cu": (2, "o2"),
    "num_wave_groups": (2, "wg2"),
    "max_splits_log2": (7, "ms7"),
    "max_seq_len_q": (32, "mq32"),
    "hdim_q_alignment": (8, "aq8"),
    "hdim_v_alignment": (1, "av1"),
    "constraint_tag": ("few_blocks", "few"),
}
BEGINNING = {"op", "family", "dtype", "group", "hdim_q", "hdim_v", "pipeline", "pad"}
EXTENTS = {"tile", "bwd_tile", "wave", "warp_tile"}


def named(**changes: Any) -> str:
    return kernel_name(AttentionSpec.model_validate({**PLAIN, **changes}))


def test_a_plain_kernel_is_named_as_ck_tile_names_it() -> None:
    assert named() == "fmha_fwd_bf16_batch_h128x128_qr_async_b128x128x32x128x32x128_r4x1x1x4x1x1_psskddv"
    nothing = {"s": False, "sk": False, "d": False, "dv": False}
    assert named(pad=nothing, group=True).endswith("_r4x1x1x4x1x1_npad") and "_group_" in named(group=True)


def test_every_other_field_leaves_its_part() -> None:
    assert BEGINNING | EXTENTS | set(PARTS) == set(AttentionSpec.model_fields)
    for field, (value, part) in PARTS.items():
        assert named(**{field: value}) == f"{named()}_{part}"


@pytest.mark.thorough(instead="test_one_changed_field_changes_name_and_identity")
@settings(max_examples=300, deadline=None)
@given(specs(), specs())
def test_names_are_file_names_and_differ(one: AttentionSpec, other: AttentionSpec) -> None:
    name = kernel_name(one)
    assert re.fullmatch(r"[a-z0-9_]{1,240}", name)
    assert (name == kernel_name(other)) == (one == other)


@settings(max_examples=100, deadline=None)
@given(specs(), specs())
def test_one_changed_field_changes_name_and_identity(one: AttentionSpec, other: AttentionSpec) -> None:
    for field in set(AttentionSpec.model_fields) - {"op"}:
        mixed = one.model_copy(update={field: getattr(other, field)})
        same = getattr(one, field) == getattr(other, field)
        assert (kernel_name(mixed) == kernel_name(one)) == same
        identities = {Kernel(arch="gfx942", spec=spec).identity for spec in (one, mixed)}
        assert len(identities) == (1 if same else 2)
