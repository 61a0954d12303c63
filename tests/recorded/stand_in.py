"""Libraries of kernels that compute nothing and say what real ones would: their traits, and their architecture's."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from kernelwright.arch import load
from kernelwright.codegen.c_names import members
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.devices import times_of
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention import ck_tile, cutlass
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.operations.convolution.rules.traits import traits_of
from kernelwright.codegen.operations.convolution.spec import OPS, GroupedConvSpec
from kernelwright.dispatch import KernelLibrary
from kernelwright.dispatch.testdata import mocks

_TYPES = (DType.FP32, DType.FP16, DType.BF16, DType.FP8, DType.BF8, DType.INT8, DType.INT32)  # by kw_dtype, from 1
_BACKENDS = {"cpu": "KW_BACKEND_CPU", "ck_tile": "KW_BACKEND_HIP", "cutlass": "KW_BACKEND_CUDA"}

_HEAD = """
#include "kernelwright/attention.h"
#include "kernelwright/convolution.h"
static kw_status supports(const kw_kernel* k, const kw_problem* p, char* reason, size_t bytes) {
  (void)k, (void)p, (void)reason, (void)bytes;
  return KW_OK;
}
static kw_status workspace(const kw_kernel* k, const kw_problem* p, uint64_t* bytes) {
  (void)k, (void)p;
  *bytes = 0;
  return KW_OK;
}
static kw_status plan(const kw_kernel* k, const kw_problem* p, void* at) { return (void)k, (void)p, (void)at, KW_OK; }
static kw_status launch(const kw_kernel* k, const void* at, const kw_launch* l, const void* args) {
  return (void)k, (void)at, (void)l, (void)args, KW_LAUNCH_FAILED;
}
"""

_TAIL = """
static kw_status check(int32_t device, char* reason, size_t bytes) {
  return (void)device, (void)reason, (void)bytes, KW_OK;
}
static const char* last_error(void) { return ""; }
static kw_status set_num_threads(uint32_t threads) { return (void)threads, KW_OK; }
static kw_status set_runtime(const char* path) { return (void)path, KW_UNSUPPORTED; }
const kw_library* kw_library_get(void) {
  static const kw_library library = {sizeof(kw_library), KW_ABI_VERSION, "stand_in", &arch, kernels,
                                     sizeof kernels / sizeof *kernels, check, last_error, set_num_threads, set_runtime};
  return &library;
}
"""


def stand_in(kernels: Sequence[Kernel], folder: Path) -> KernelLibrary:
    """A loaded library of kernels of one architecture and operation; attention on GPUs only."""
    arch = load(kernels[0].arch)
    parts = [_HEAD, *(_kernel(index, one, arch.backend) for index, one in enumerate(kernels))]
    parts.append("static const kw_kernel* const kernels[] = {%s};" % ", ".join(f"&k{i}" for i in range(len(kernels))))  # noqa: UP031
    rates = ", ".join(str(arch.flops_per_clock_per_cu.get(name, 0)) for name in _TYPES)
    parts.append(
        f"static const kw_arch arch = {{.struct_size = sizeof(kw_arch), .backend = {_BACKENDS[arch.backend]},"
        f' .name = "{arch.name}", .compute_units = {arch.compute_units}, .clock_ghz = {arch.clock_ghz},'
        f" .memory_gbytes_per_s = {arch.memory_gbytes_per_s}, .times = {times_of(arch)},"
        f" .lds_bytes = {arch.lds_bytes},"
        f" .flops_per_clock_per_cu = {{0, {rates}}}}};"
    )
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "stand_in.c"
    source.write_text("\n".join([*parts, _TAIL]))
    flags = ["-std=c11", "-O2", "-fvisibility=hidden", str(source)]
    library = mocks.compile_shared([*mocks.compilers()[0], *flags], folder / "libstand_in.so")
    mocks.write_manifest(library, arch.name, arch.backend, {one.identity: one.name for one in kernels})
    return KernelLibrary.load(folder)


def _kernel(index: int, kernel: Kernel, backend: str) -> str:
    spec = kernel.spec
    assert isinstance(spec, AttentionSpec | GroupedConvSpec)
    if isinstance(spec, GroupedConvSpec):
        kind, op, listed = "conv", OPS[spec.direction].c_name, members(traits_of(spec, backend))
    else:
        made = cutlass.traits(spec) if backend == "cutlass" else ck_tile.traits(spec, load(kernel.arch))
        kind, op, listed = "attention", f"KW_ATTENTION_OP_OF({spec.family.c_name})", members(made)
    traits = ", ".join(f".{name} = {value}" for name, value in listed.items())
    return textwrap.dedent(f"""
        static const kw_{kind}_traits t{index} = {{.struct_size = sizeof(kw_{kind}_traits), {traits}}};
        static const kw_kernel k{index} = {{.struct_size = sizeof(kw_kernel), .abi_version = KW_ABI_VERSION,
          .op = {op}, .plan_bytes = 8, .name = "{kernel.name}", .arch = "{kernel.arch}",
          .identity = "{kernel.identity}", .spec_json = "{{}}", .features = "", .traits = &t{index},
          .supports = supports, .workspace_size = workspace, .plan = plan, .launch = launch}};""")
