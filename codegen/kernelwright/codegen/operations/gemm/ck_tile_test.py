from __future__ import annotations

import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.ck_tile import CkTileBackend
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.ck_tile import context
from kernelwright.codegen.operations.gemm.spec import Epilogue, Extent, GemmSpec, Padding, Pipeline, Scheduler
from kernelwright.codegen.planning.compile_plan import compile_plan, kernel_actions
from kernelwright.codegen.toolchains.hip import HipToolchain
from kernelwright.codegen.toolchains.host import HostToolchain

BACKEND = CkTileBackend(HipToolchain.wheel(), HostToolchain.zig())
KERNEL = Kernel(
    arch="gfx942",
    spec=GemmSpec(
        op="gemm",
        dtype_a=DType.BF16,
        dtype_b=DType.BF16,
        dtype_c=DType.BF16,
        dtype_acc=DType.FP32,
        layout=Layout.CRR,
        tile=Extent(m=128, n=64, k=32),
        wave=Extent(m=2, n=2, k=1),
        warp_tile=Extent(m=32, n=32, k=16),
        pipeline=Pipeline.COMPV4,
        epilogue=Epilogue.DEFAULT,
        scheduler=Scheduler.INTRAWAVE,
        pad=Padding(m=True, n=False, k=True),
        k_block_per_cu=2,
    ),
)
BASE = f"gfx942/{KERNEL.name}"


def test_the_header_only_instantiates() -> None:
    plan = kernel_actions(KERNEL, load("gfx942"), BACKEND)
    header = next(file for file in plan.files if file.path == f"{BASE}.hpp")
    assert len(header.text.splitlines()) <= 60
    for line in (
        "using a = ck_tile::bf16_t;",
        "using acc = float;",
        "using layout_a = kernelwright::hip::col_major;",
        "using layout_b = kernelwright::hip::row_major;",
        "using tile = kernelwright::hip::extent<128, 64, 32>;",
        "using pipeline = kernelwright::hip::compv4;",
        "using epilogue = kernelwright::hip::direct;",
        "static constexpr auto scheduler = ck_tile::GemmPipelineScheduler::Intrawave;",
        "static constexpr bool pad_n = false;",
        "static constexpr int lds_bytes = 65536;",
        f"__launch_bounds__({KERNEL.symbol}_spec::kernel::block_size, 2)",
    ):
        assert line in header.text


def test_the_road_from_header_to_objects() -> None:
    plan = kernel_actions(KERNEL, load("gfx942"), BACKEND)
    made = {output: action for action in plan.actions for output in action.outputs}
    rendered = {file.path for file in plan.files}
    assert plan.report == f"{BASE}.s"
    assert plan.objects == (f"{BASE}.o", f"{BASE}.image.o")
    assert made[f"{BASE}.s"].inputs == (f"{BASE}.hpp",)
    assert made[f"{BASE}.gpu.o"].inputs == (f"{BASE}.s",)
    assert made[f"{BASE}.co"].inputs == (f"{BASE}.gpu.o",)
    assert made[f"{BASE}.image.o"].inputs == (f"{BASE}.image.S", f"{BASE}.co")
    assert {path for action in plan.actions for path in action.inputs} <= rendered | set(made)
    assert set(plan.objects) <= set(made)
    assert len({action.id for action in plan.actions}) == len(plan.actions)


def test_the_descriptor_repeats_the_spec() -> None:
    plan = kernel_actions(KERNEL, load("gfx942"), BACKEND)
    text = next(file.text for file in plan.files if file.path == f"{BASE}.c")
    for line in (
        f"KW_HIDDEN const kw_kernel {KERNEL.symbol} = {{",
        f'.identity = "{KERNEL.identity}"',
        ".dtype_c = KW_BF16,",
        ".layout_a = KW_COL_MAJOR,",
        ".layout_b = KW_ROW_MAJOR,",
        ".tile_n = 64,",
        ".pad_n = 0,",
    ):
        assert line in text


def test_a_kernel_comes_with_one_that_adds_up_slices_and_serves_an_empty_k() -> None:
    split = Kernel(arch="gfx942", spec=GemmSpec.model_validate({**KERNEL.spec.model_dump(), "split_k": True}))
    texts = {file.path: file.text for file in kernel_actions(split, load("gfx942"), BACKEND).files}
    base = f"gfx942/{split.name}"
    assert base.endswith("_splitk")
    assert "static constexpr bool split_k = true;" in texts[f"{base}.hpp"]
    assert f"void {split.symbol}_sum(kw_hip_gemm_arguments arguments)" in texts[f"{base}.hpp"]
    assert len(texts[f"{base}.hpp"].splitlines()) <= 60
    assert f'.function = "{split.symbol}_sum"' in texts[f"{base}.c"]
    assert ".max_split_k = KW_HIP_MAX_SPLIT_K," in texts[f"{base}.c"]
    plain = next(
        file.text for file in kernel_actions(KERNEL, load("gfx942"), BACKEND).files if file.path.endswith(".c")
    )
    assert f'.function = "{KERNEL.symbol}_sum"' in plain and ".max_split_k = 1," in plain
    grouped = Kernel(arch="gfx942", spec=GemmSpec.model_validate({**KERNEL.spec.model_dump(), "grouped": True}))
    assert all("_sum" not in file.text for file in kernel_actions(grouped, load("gfx942"), BACKEND).files)


VARIANTS = [
    (
        {"stream_k": "tree"},
        "using stream_k = kernelwright::hip::tree;",
        "KW_STREAM_K_TREE",
        "_sum(kw_hip_gemm_arguments",
    ),
    ({"num_d": 2, "d_op": "multiply"}, "static constexpr int num_d = 2;", ".num_d = 2,", "kernelwright::hip::multiply"),
    (
        {"activation": "silu"},
        "using activation = kernelwright::hip::silu;",
        "KW_ACTIVATION_SILU",
        "static constexpr int",
    ),
    ({"batched": True}, "static constexpr bool batched = true;", ".batched = 1,", "_gemm(kw_hip_gemm_arguments"),
    ({"grouped": True}, "::kernel::run_groups();", "KW_OP_GROUPED_GEMM", "_gemm(kw_hip_grouped_arguments)"),
    ({"persistent": True}, "static constexpr bool persistent = true;", ".persistent = 1,", "launch_bounds"),
    ({"preshuffle": True, "pipeline": "preshufflev2"}, "hip::preshufflev2;", "KW_HIP_B_FORMAT(64, 32, 16, 2)", "gemm"),
]


@pytest.mark.parametrize(("changes", "in_header", "in_descriptor", "also_in_header"), VARIANTS)
def test_a_variant_is_in_header_and_descriptor(
    changes: dict[str, object], in_header: str, in_descriptor: str, also_in_header: str
) -> None:
    kernel = Kernel(arch="gfx942", spec=GemmSpec.model_validate({**KERNEL.spec.model_dump(), **changes}))
    texts = {file.path.rpartition(".")[2]: file.text for file in kernel_actions(kernel, load("gfx942"), BACKEND).files}
    assert in_header in texts["hpp"] and also_in_header in texts["hpp"]
    assert in_descriptor in texts["c"] and in_descriptor not in PLAIN
    assert len(texts["hpp"].splitlines()) <= 64


PLAIN = next(file.text for file in kernel_actions(KERNEL, load("gfx942"), BACKEND).files if file.path.endswith(".c"))


def test_the_launcher_knows_its_architecture() -> None:
    plan = compile_plan("gemm", load("gfx942"), [KERNEL], BACKEND)
    (runtime,) = [action for action in plan.actions if any("runtime.c" in part for part in action.argv)]
    assert '-DKW_HIP_TARGET="gfx942"' in runtime.argv
    (link,) = [action for action in plan.actions if plan.library in action.outputs]
    assert set(plan.kernels[0].objects) < set(link.inputs)


def test_a_member_without_a_symbol_is_an_error() -> None:
    refused = KERNEL.model_copy(update={"spec": KERNEL.spec.model_copy(update={"pipeline": Pipeline.TMA})})
    with pytest.raises(KeyError, match="tma"):
        context(refused, load("gfx942"))
