from __future__ import annotations

import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.cpu import CpuBackend
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.fields import COMPILED_ACTIVATIONS
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm import cpu as symbols
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.constraints.cpu import RULES
from kernelwright.codegen.operations.gemm.constraints.cpu_test import GOOD
from kernelwright.codegen.operations.gemm.spec import (
    Activation,
    DOp,
    Epilogue,
    Extent,
    GemmSpec,
    Pipeline,
    Scheduler,
    StreamK,
)
from kernelwright.codegen.planning.render import header_path, render_kernel
from kernelwright.codegen.toolchains.host import HostToolchain

BACKEND = CpuBackend(HostToolchain.zig())
TILES = {"tile": Extent(m=512, n=512, k=1024), "warp_tile": Extent(m=32, n=32, k=32)}
DOT = Kernel(arch="x86_64_v4", spec=GemmSpec(**GOOD))
CONVERTING = Kernel(arch="x86_64_v4", spec=GemmSpec(**{**GOOD, "warp_tile": Extent(m=14, n=32, k=1)}))


def test_header_only_instantiates() -> None:
    text = render_kernel(DOT, load(DOT.arch), "cpu")[0].text
    assert "gemm<bf16_dot, epilogue<bf16>, KW_ROW_MAJOR, KW_COL_MAJOR," in text
    assert "/*tile*/ 168, 4096, 1024," in text and "/*warp tile*/ 14, 32, 2>::kernel(kAvx512Bf16," in text
    assert f"KW_CPU_GEMM_DESCRIPTOR({DOT.symbol}," in text and '"avx512_bf16")' in text
    assert text.count("\n") <= 60
    tiles = Kernel(arch="x86_64_v4", spec=GemmSpec(**{**GOOD, **TILES}))
    text = render_kernel(tiles, load(DOT.arch), "cpu")[0].text
    assert "gemm<bf16_tiles," in text and "/*warp tile*/ 32, 32, 32>::kernel(kAmxBf16 | kAmxTile," in text
    assert '"amx_bf16 amx_tile")' in text
    assert "kernel(kNoFeature," in render_kernel(CONVERTING, load(DOT.arch), "cpu")[0].text


def test_kernel_is_one_compile_with_its_features() -> None:
    plan = BACKEND.kernel_actions(DOT, load(DOT.arch), header_path(DOT))
    (action,) = plan.actions
    assert "-mcpu=x86_64_v4+avx512bf16" in action.argv
    converting = BACKEND.kernel_actions(CONVERTING, load(CONVERTING.arch), header_path(CONVERTING))
    assert "-mcpu=x86_64_v4" in converting.actions[0].argv
    assert action.inputs == (header_path(DOT),) and action.outputs == plan.objects
    assert action.trees == ("zig", "abi", "cpu_common", "gemm", "cpu_gemm")
    assert action.argv[action.argv.index("-c") - 1 - 2 : action.argv.index("-c") - 1] == ("-x", "c++")


def test_launchers_run_on_any_processor_and_know_the_level() -> None:
    table, common, launcher, link = BACKEND.library_actions(
        load("x86_64_v3"), "x86_64_v3/t.c", ["x86_64_v3/k.o"], "x86_64_v3/libt.so", ["gemm"]
    )
    assert "-mcpu=x86_64" in table.argv
    for own in (common, launcher):
        assert "-mcpu=x86_64" in own.argv and "-DKERNELWRIGHT_CPU_LEVEL=3" in own.argv and own.inputs == ()
    objects = [f"x86_64_v3/libt_{name}.o" for name in ("table", "common_library", "gemm_launch")]
    assert link.inputs == ("x86_64_v3/k.o", *objects)
    assert link.outputs == ("x86_64_v3/libt.so",)


def test_every_enum_member_is_mapped_or_refused() -> None:
    def refused(**changes: object) -> bool:
        spec = GemmSpec(**{**GOOD, **changes})
        return any(True for rule in RULES for _ in rule.check(spec, load("x86_64_v4")))

    for dtype in DType:
        assert (dtype in symbols.OUTPUTS[DType.FP32]) != refused(dtype_c=dtype)
        assert (dtype is DType.FP32) != refused(dtype_acc=dtype)
        assert (dtype in {key[0] for key in symbols.OPERATIONS}) or refused(dtype_a=dtype, dtype_b=dtype)
    for field, enum, mapped in (
        ("pipeline", Pipeline, symbols.PIPELINES),
        ("epilogue", Epilogue, symbols.EPILOGUES),
        ("scheduler", Scheduler, symbols.SCHEDULERS),
    ):
        for member in enum:
            assert (member in mapped) != refused(**{field: member})
    assert set(symbols.LAYOUTS) == set(Layout)
    assert set(symbols.D_OPS) == set(DOp) and set(symbols.ACTIVATIONS) == set(COMPILED_ACTIVATIONS)
    assert set(symbols.STREAM_K) == set(StreamK)


def test_variants_reach_the_descriptor() -> None:
    def text(**changes: object) -> str:
        kernel = Kernel(arch="x86_64_v4", spec=GemmSpec(**{**GOOD, **changes}))
        return render_kernel(kernel, load("x86_64_v4"), "cpu")[0].text

    fused = text(num_d=2, d_op=DOp.MULTIPLY, activation=Activation.SILU, batched=True)
    assert "gemm<bf16_dot, epilogue<bf16, 2, KW_D_MULTIPLY, silu>," in fused and "/*batched*/ 1," in fused
    assert "gemm<bf16_dot, any_epilogue<bf16>," in text(activation=Activation.ANY)
    assert "gemm<bf16_dot, any_epilogue<fp32>," in text(activation=Activation.ANY, dtype_c=DType.FP32)
    assert "/*persistent*/ 1, /*max_split_k*/ 1, KW_STREAM_K_NONE," in text(persistent=True)
    assert "/*persistent*/ 0, /*max_split_k*/ 64, KW_STREAM_K_NONE," in text(split_k=True)
    assert "/*max_split_k*/ 1, KW_STREAM_K_TREE," in text(stream_k=StreamK.TREE)
    assert "/*grouped*/ 1, /*preshuffle*/ 0}" in text(grouped=True)
    assert "/*preshuffle*/ 1}" in text(preshuffle=True, pipeline=Pipeline.PRESHUFFLEV2)


@pytest.mark.parametrize("arch", ["x86_64_v3", "x86_64_v4"])
def test_tables_cover_what_the_architecture_file_offers(arch: str) -> None:
    model = load(arch)
    tables = gemm_section(model).warp_tiles
    offered = {(DType(key.split("_")[0]), tile[2]) for key, tiles in tables.items() for tile in tiles}
    assert offered <= set(symbols.OPERATIONS)
