"""The tile engine measures and verifies CPU kernels of every family; what it says of a wrong kernel is tested there."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright.dispatch import ArchMismatchError, Device, Dispatcher, KernelLibrary
from kernelwright.tile_engine.measuring.measure import Measurement
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.registry import measurable

ATTENTION = measurable("attention")
HEADS = {"nhead_q": 4, "nhead_k": 2, "hdim_q": 64, "dtype": "fp32"}
CAUSAL = {"mask": "bottom_right", "seqlen_q": 70, "seqlen_k": 100}
RECORDS: list[tuple[dict[str, Any], set[str]]] = [
    ({**CAUSAL, "lse": 1}, {"fwd", "fwd_splitkv"}),
    ({**CAUSAL, "batch": 3, "ragged": 1}, {"fwd"}),
    ({"batch": 3, "seqlen_q": 1, "seqlen_k": 300, "ragged": 1, "page_size": 16}, {"fwd_pagedkv", "fwd_splitkv"}),
    ({"seqlen_q": 1, "seqlen_k": 2000, "num_splits": 4}, {"fwd_splitkv", "fwd_splitkv_combine"}),
    ({"direction": "backward", "batch": 2, "ragged": 1, **CAUSAL}, {"bwd_dot_do_o", "bwd_dq_dk_dv"}),
    ({"direction": "append", "seqlen_q": 3, "seqlen_k": 64, "rotary_dim": 32, "page_size": 16}, {"fwd_appendkv"}),
]


@pytest.mark.parametrize("arch", ["x86_64_v3", "x86_64_v4"])
@pytest.mark.parametrize(("fields", "families"), RECORDS)
def test_every_family_is_right_on_its_problems(
    libraries: dict[str, KernelLibrary], arch: str, fields: dict[str, Any], families: set[str]
) -> None:
    library = libraries[arch]
    try:
        Dispatcher(library)
    except ArchMismatchError as error:
        pytest.skip(str(error))
    measurement = Measurement(library, Device("cpu"), ATTENTION, Settings(warmup=1, duration_s=0.001, rounds=1))
    kernels = {kernel.identity: kernel for kernel in library.kernels}
    reports = list(measurement.run(ATTENTION.read({**HEADS, **fields}), list(kernels), lambda kernel: None))
    assert len(reports) == len(kernels)
    assert {report["status"] for report in reports} == {"ok", "refused"}
    right = [report for report in reports if report["status"] == "ok"]
    assert families <= {kernels[report["kernel"]].spec["family"] for report in right}
    assert all(0 < report["error"] <= 1 or report["error"] == 0 for report in right)
    assert all(report["latency_ms"][0] > 0 and report["non_zero"] > 0 for report in right)
