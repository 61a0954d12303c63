from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.cutlass import CutlassBackend
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.cutlass import context as context_of
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.planning.render import render_kernel
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.toolchains.cuda import CudaToolchain
from kernelwright.codegen.toolchains.host import HostToolchain

ARCH = load("sm_90a")
BACKEND = CutlassBackend(CudaToolchain.clang(), HostToolchain.zig())


def kernel(**changes: Any) -> Kernel:
    raw: dict[str, Any] = {
        "op": "gemm",
        "dtype": "bf16",
        "layout": "rcr",
        "tile": [128, 256, 64],
        "wave": [2, 1, 1],
        "warp_tile": [64, 256, 16],
        "scheduler": "cooperative",
        "cluster": [2, 1, 1],
    }
    return parse_kernel({**raw, **changes}, ARCH)


def fp8(**changes: Any) -> Kernel:
    return kernel(**{"op": "gemm", "dtype": "fp8", "tile": [128, 256, 128], "warp_tile": [64, 256, 32], **changes})


def test_header_only_instantiates() -> None:
    text = render_kernel(kernel(), ARCH, "cutlass")[0].text
    assert len(text.splitlines()) <= 80
    assert max(map(len, text.splitlines())) < 1000
    for line in (
        "using element_a = cutlass::bfloat16_t;",
        "using element_acc = float;",
        "using layout_a = cutlass::layout::RowMajor;",
        "using layout_b = cutlass::layout::ColumnMajor;",
        "using tile = cute::Shape<cute::Int<128>, cute::Int<256>, cute::Int<64>>;",
        "using cluster = cute::Shape<cute::Int<2>, cute::Int<1>, cute::Int<1>>;",
        "using mainloop_schedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;",
        "/*dtype=*/KW_BF16, KW_BF16, KW_BF16, KW_FP32,",
        "/*layout=*/KW_ROW_MAJOR, KW_COL_MAJOR, KW_ROW_MAJOR,",
        "/*persistent=*/1,",
    ):
        assert line in text


def test_header_carries_the_identity() -> None:
    made = kernel()
    text = render_kernel(made, ARCH, "cutlass")[0].text
    assert f'"{made.identity}"' in text
    match = re.search(r'/\*spec_json=\*/("(?:[^"\\]|\\.)*")', text)
    assert match and json.loads(match[1]) == made.canonical_json


@pytest.mark.parametrize("layout", ["rcr", "rrr", "crr", "ccr"])
def test_layouts_are_cutlasss(layout: str) -> None:
    context = context_of(kernel(layout=layout), ARCH)
    words = {"r": "cutlass::layout::RowMajor", "c": "cutlass::layout::ColumnMajor"}
    assert (context["layout_a"], context["layout_b"]) == (words[layout[0]], words[layout[1]])


def test_fp8_accumulates_fast_and_int8_exactly() -> None:
    schedule = "cutlass::gemm::KernelTmaWarpSpecializedCooperative"
    assert context_of(fp8(dtype_c="bf16"), ARCH)["mainloop_schedule"] == f"{schedule}FP8FastAccum"
    assert context_of(fp8(layout="ccr"), ARCH)["mainloop_schedule"] == schedule  # CUTLASS has no fast one
    context = context_of(fp8(dtype="int8"), ARCH)
    assert context["mainloop_schedule"] == schedule
    assert (context["element_acc"], context["element_c"]) == ("int32_t", "int32_t")


def test_library_links_kernels_run_time_and_static_cuda() -> None:
    plan = compile_plan("gemm", ARCH, [kernel(), fp8()], BACKEND)
    compiles = [action for kernel_actions in plan.kernels for action in kernel_actions.actions]
    assert len(compiles) == 2
    link = plan.actions[-1]
    assert link.outputs == ("sm_90a/libgemm.so",)
    produced = {output for action in (*compiles, *plan.actions) for output in action.outputs}
    assert set(link.inputs) <= produced
    own = {f"sm_90a/libgemm_{name}.o" for name in ("common_runtime", "gemm_launch", "table")}
    assert own <= set(link.inputs)
    assert "-lcudart_static" in link.argv and "cuda" in link.trees
    folder = "__cuda_src_common_launcher/launchers/cuda/common"
    assert f"-Wl,--version-script={folder}/library.map" in link.argv


def test_object_is_the_report() -> None:
    made = kernel()
    plan = BACKEND.kernel_actions(made, load("sm_90a"), f"sm_90a/{made.name}.hpp")
    assert plan.report == plan.objects[0] == f"sm_90a/{made.name}.o"
