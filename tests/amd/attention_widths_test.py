"""Attention kernels for AMD GPUs: what a number of 32 bits in their arguments cannot hold is refused, and nothing else.

Problems are planned only. Those of ``SERVED`` have operands of many gigabytes whose every argument fits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from amd.hollow import dispatcher
from kernelwright.codegen.operations.attention.rules.hip import ALIBI_POSITIONS
from kernelwright.dispatch import AppendProblem, AttentionProblem, Dispatcher, NoKernelError

_KIND: dict[str, Any] = {"op": "attention", "dtype": "bf16", "hdim": 128}
SPECS: dict[str, tuple[dict[str, Any], ...]] = {
    "fwd": ({**_KIND, "family": "fwd", "mask": "generic", "lse": True},),
    "group": ({**_KIND, "family": "fwd", "mask": "generic", "lse": True, "group": True},),
    "alibi": ({**_KIND, "family": "fwd", "mask": "generic", "lse": True, "bias": "alibi"},),
    "dropout": ({**_KIND, "family": "fwd", "lse": True, "dropout": True},),
    "splits": (
        {**_KIND, "family": "fwd_splitkv", "paged_kv": True},
        {**_KIND, "family": "fwd_splitkv_combine", "lse": True},
    ),
    "split_alibi": (
        {**_KIND, "family": "fwd_splitkv", "bias": "alibi"},
        {**_KIND, "family": "fwd_splitkv_combine", "lse": True},
    ),
    "prefill": ({**_KIND, "family": "batch_prefill", "mask": "generic", "lse": True},),
    "prefill_bias": ({**_KIND, "family": "batch_prefill", "bias": "elementwise"},),
    "append": ({**_KIND, "family": "fwd_appendkv", "paged_kv": True, "rope": "half"},),
    "backward": tuple({**_KIND, "family": f"bwd_{name}"} for name in ("dot_do_o", "dq_dk_dv", "convert_dq")),
    "backward_alibi": (
        {**_KIND, "family": "bwd_dot_do_o"},
        {**_KIND, "family": "bwd_dq_dk_dv", "bias": "alibi"},
        {**_KIND, "family": "bwd_convert_dq"},
    ),
}
PLAIN: dict[str, Any] = {
    "direction": "forward",
    "batch": 1,
    "heads_q": 4,
    "heads_kv": 4,
    "seqlen_q": 128,
    "seqlen_k": 128,
    "hdim_q": 128,
    "dtype": "bf16",
}
BACKWARD = {**PLAIN, "direction": "backward"}
ALIBI = {**PLAIN, "bias": "alibi"}
LIST = {**PLAIN, "group": True, "total_q": 128, "lse": True, "page_table": "list", "page_size": 16, "pages": 4096}
BLOCKS = {**PLAIN, "seqlen_q": 1, "kv_lengths": True, "page_table": "block", "page_size": 128, "pages": 64}
DECODE = {**BLOCKS, "page_table_stride": 1, "num_splits": 2}
SINGLE = {**PLAIN, "batch": 2, "seqlen_q": 1, "page_table": "list", "page_size": 16, "pages": 64}
BIASED = {**SINGLE, "bias": "elementwise"}
FAR = (2**24, 128, 128)  # the next request's row is too far for a tile of such rows
NONE = (0, 0, 0)


def attention(name: str, base: dict[str, Any], **fields: Any) -> Any:
    return pytest.param(name, {**base, **fields}, id=f"{name}-{'-'.join(fields)}")


REFUSED = [
    (attention("fwd", PLAIN, q_strides=(0, 2**31, 128)), "a stride of Q is 2147483648"),
    (attention("fwd", PLAIN, seqlen_k=2**23), "byte offsets do not fit into 31 bits"),
    (attention("fwd", PLAIN, lse=True, heads_q=2**15, heads_kv=1, batch=2, seqlen_q=2**16,
               q_strides=NONE), "LSE"),
    (attention("fwd", PLAIN, seqlen_k=2**29, k_strides=NONE, v_strides=NONE), "positions"),
    (attention("dropout", PLAIN, dropout_p=0.5, random_bytes=True, seqlen_q=2**15 - 1, seqlen_k=2**16),
     "random bytes of a head"),
    (attention("dropout", PLAIN, dropout_p=0.5, random_bytes=True, seqlen_q=2**13, seqlen_k=2**14, heads_q=32,
               heads_kv=1, batch=2), "random bytes from one request"),
    (attention("alibi", ALIBI, seqlen_k=ALIBI_POSITIONS + 1), "ALiBi with 65537 positions.*65536"),
    (attention("alibi", ALIBI, seqlen_q=ALIBI_POSITIONS + 1), "ALiBi with 65537 positions.*65536"),
    (attention("alibi", ALIBI, batch=2**15, slopes_stride=2**16), "slopes of all requests"),
    (attention("backward_alibi", {**ALIBI, "direction": "backward"}, seqlen_k=ALIBI_POSITIONS + 1), "ALiBi with 65537"),
    (attention("splits", DECODE, batch=2**15, page_table_stride=2**16, pages=2**20), "page table"),
    (attention("splits", DECODE, num_splits=128, heads_q=2**10, heads_kv=2**10, batch=2**10), "partial results have"),
    (attention("prefill", LIST, batch=2**13, seqlen_k=2**18, pages=2**15, k_strides=(2048, 0, 128),
               v_strides=(2048, 0, 128)), "places of keys of all requests"),
    (attention("prefill", SINGLE, q_strides=FAR), "Q of single queries has 1 rows of a head, 16777216 elements apart"),
    (attention("prefill", SINGLE, o_strides=FAR), "O of single queries has 1 rows of a head, 16777216 elements apart"),
    (attention("prefill_bias", BIASED, bias_strides=FAR),
     "bias of single queries has 1 rows of a head, 16777216 elements apart"),
    (attention("backward", BACKWARD, heads_q=128, heads_kv=8, seqlen_k=2**23, k_strides=NONE, v_strides=NONE,
               dk_strides=(0, 128, 1024)), "byte offsets do not fit into 31 bits"),
    (attention("backward", BACKWARD, heads_q=128, heads_kv=8, batch=2, seqlen_k=131080), "stride of dK of every head"),
    (attention("backward", BACKWARD, batch=600, heads_q=128, heads_kv=64, seqlen_q=1, seqlen_k=1000), "can add up"),
    (attention("backward", BACKWARD, seqlen_q=2**22, q_strides=NONE, do_strides=NONE, dq_strides=(0, 128, 512)),
     "fit into 31 bits"),
]  # fmt: skip
SERVED = [
    attention("fwd", PLAIN, batch=2**15, heads_q=32, heads_kv=32, lse=True),
    attention("fwd", PLAIN, seqlen_k=2**20, heads_kv=4),
    attention("alibi", ALIBI, seqlen_k=ALIBI_POSITIONS, seqlen_q=64),
    attention("alibi", ALIBI, seqlen_k=64, seqlen_q=ALIBI_POSITIONS),
    attention("split_alibi", ALIBI, seqlen_q=1, seqlen_k=2**18, num_splits=4),
    attention("dropout", PLAIN, dropout_p=0.5, seqlen_q=2**16, seqlen_k=2**16),  # no byte is stored
    attention("backward", BACKWARD, heads_q=128, heads_kv=8, seqlen_k=131080),  # head by head in the workspace
    attention("backward", BACKWARD, heads_q=128, heads_kv=8, batch=8, seqlen_k=8192),
    attention("prefill", SINGLE),
    attention("prefill_bias", BIASED),
    attention("prefill_bias", BIASED, batch=1, bias_strides=FAR),
    attention("prefill", LIST, batch=64, seqlen_k=65536, page_size=16, pages=2**15),
]


@cache
def made(name: str) -> Dispatcher:
    return dispatcher(SPECS[name])


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("name", "fields", "why"),
    [pytest.param(*case.values, why, id=case.id) for case, why in REFUSED],
)
def test_what_does_not_fit_is_refused_with_its_reason(name: str, fields: dict[str, Any], why: str) -> None:
    attention = made(name)
    problem = AttentionProblem(**fields)
    with pytest.raises(NoKernelError, match=why):
        attention.plan(problem)


@pytest.mark.parametrize(("name", "fields"), SERVED)
def test_what_fits_is_planned(name: str, fields: dict[str, Any]) -> None:
    attention = made(name)
    attention.plan(AttentionProblem(**fields))


def test_gradients_of_every_head_have_their_room() -> None:
    attention = made("backward")
    rows, heads, hdim, element = 131080, 128, 128, 2
    problem = AttentionProblem(**{**BACKWARD, "heads_q": heads, "heads_kv": 8, "seqlen_k": rows})
    assert attention.plan(problem).workspace_bytes >= 2 * rows * heads * hdim * element > 2**32


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"page_table_stride": 2**17, "batch": 2**15}, "entries of the page table"),
        ({"page_table_stride": 2**31}, "page table"),
        ({"rotary_places": 2**25, "rotary_dim": 128}, "angles of all places"),
        ({"heads_q": 64, "seqlen_q": 2**15, "batch": 2**5, "q_strides": (0, 128, 128)}, "more than a launch can copy"),
    ],
)
def test_append_refuses_what_does_not_fit(fields: dict[str, Any], why: str) -> None:
    plain: dict[str, Any] = {
        **{"batch": 2, "heads_kv": 4, "seqlen_new": 4, "hdim_q": 128, "capacity": 4096, "dtype": "bf16"},
        **{"rope": "half", "rotary_dim": 64, "rotary_places": 4096, "heads_q": 4, "seqlen_q": 4},
        **{"page_table": "block", "pages": 64, "page_size": 128, "page_table_stride": 32},
    }
    append = made("append")
    assert append.plan(AppendProblem(**plain)).kernel.spec["family"] == "fwd_appendkv"
    with pytest.raises(NoKernelError, match=why):
        append.plan(AppendProblem(**{**plain, **fields}))
