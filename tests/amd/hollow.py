"""Libraries for AMD GPUs whose kernels do nothing: their descriptors, launchers and plans are those of real ones.

A kernel's header is replaced by one with the same functions and constants, which compiles without CK Tile. So
planning can be tested with every family and operand, and no problem needs its memory.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from compiling import executor, own_folder
from kernelwright.codegen.actions import CompilePlan, RenderedFile
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for
from kernelwright.codegen.building.build import library_files
from kernelwright.codegen.dtypes import ELEMENT_BYTES
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention import ck_tile
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.operations.gemm.constraints.ck_tile_copies import load_vector, store_vector
from kernelwright.codegen.operations.gemm.spec import Epilogue, GemmSpec, Pipeline, gemm_spec
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.selection import Selection, load_archs, select
from kernelwright.dispatch import Dispatcher, KernelLibrary
from kernelwright.dispatch.testdata import mocks

ARCH = "gfx942"
BLOCK = 256
_INCLUDES = {
    "kw_hip_attention_facts": "attention/gradient_arguments.h",
    "kw_hip_conv_facts": "convolution/arguments.h",
    "kw_hip_gemm_facts": "gemm/arguments.h",
}
_FUNCTION = re.compile(r"^void (\w+)\((\w+)", re.MULTILINE)
_FACTS = re.compile(r"const (kw_hip_(\w+)_facts) (\w+) =")
# A comment: reports on kernels count matrix instructions.
_BODY = 'asm volatile("/*\\n v_mfma_f32_none\\n*/");'


def dispatcher(specs: Sequence[Mapping[str, Any]]) -> Dispatcher:
    """One that has hollow kernels of these specs, all of one operation, and plans for a simulated device."""
    mocks.native_library()
    (item,) = select("specs", list(specs), [ARCH], load_archs())
    return Dispatcher([_library(item)], f"sim:{ARCH}")


@cache
def of_set(name: str, arch: str) -> KernelLibrary:
    """The kernels of a set such as ``gemm:essential``, hollow."""
    mocks.native_library()
    (item,) = select("set", name, [arch], load_archs())
    return _library(item)


def _library(item: Selection) -> KernelLibrary:
    backend = backend_for(item.arch, DEFAULT_TOOLCHAINS)
    plan = compile_plan("hollow", item.arch, item.kernels, backend)
    ordered = sorted(item.kernels, key=lambda kernel: kernel.name)
    plan = replace(plan, kernels=_hollow(plan, ordered))
    builder = executor()
    files = builder.run(plan.all_files, plan.all_actions)
    folder = Path(tempfile.mkdtemp(dir=own_folder()))
    for name, data in library_files("hollow", item, plan, DEFAULT_TOOLCHAINS, files, builder.costs).items():
        (folder / name).write_bytes(data)
    return KernelLibrary.load(folder)


def _hollow(plan: CompilePlan, kernels: Sequence[Kernel]) -> tuple[Any, ...]:
    return tuple(
        replace(one, files=(_header(kernel, one.files[0]), *one.files[1:]))
        for kernel, one in zip(kernels, plan.kernels, strict=True)
    )


def _header(kernel: Kernel, real: RenderedFile) -> RenderedFile:
    match = _FACTS.search(real.text)
    functions = _FUNCTION.findall(real.text)
    assert match is not None and functions, f"{real.path} is no kernel's header"
    kind, operation, facts = match.groups()
    numbers = [f"KW_HIP_{operation.upper()}_FACTS_MAGIC", f"sizeof({functions[0][1]})", *_numbers(kernel, operation)]
    lines = [f'#include "kernelwright/hip/{_INCLUDES[kind]}"', "#include <hip/hip_runtime.h>"]
    lines += [
        f'extern "C" __global__ __launch_bounds__({BLOCK}) void {name}({kind}) {{ {_BODY} }}'
        for name, kind in functions
    ]
    lines.append(
        f'extern "C" __device__ __attribute__((used)) const {kind} {facts} = {{{", ".join(map(str, numbers))}}};'
    )
    return RenderedFile(real.path, "\n".join(lines) + "\n")


def _numbers(kernel: Kernel, operation: str) -> list[int]:
    """Work-items of a workgroup, and what follows them in the operation's struct of facts."""
    if operation == "conv":
        return [BLOCK, 1]
    if operation == "gemm":
        return [BLOCK, *gemm_vectors(gemm_spec(kernel), load_archs()[kernel.arch].wave_size)]
    spec = kernel.spec
    assert isinstance(spec, AttentionSpec)
    traits = ck_tile.traits(spec, load_archs()[kernel.arch])
    by_keys = spec.family.value in ("bwd_dq_dk_dv", "fwd_appendkv")
    return [BLOCK, traits.tile_n0 if by_keys else traits.tile_m0]


def gemm_vectors(spec: GemmSpec, wave_size: int) -> list[int]:
    """What a GEMM's facts hold behind the work-items of its workgroup."""
    lanes = spec.wave.m * spec.wave.n * wave_size
    a_row, b_row = (spec.tile.k if along_k else extent for along_k, extent in _contiguous(spec))
    a = load_vector(ELEMENT_BYTES[spec.dtype_a], a_row, spec.tile.m * spec.tile.k // lanes)
    b = load_vector(ELEMENT_BYTES[spec.dtype_b], b_row, spec.tile.n * spec.tile.k // lanes)
    if spec.pipeline is Pipeline.NARROW:
        a = b = 1
    d = store_vector(spec) if spec.epilogue is Epilogue.CSHUFFLE else 1
    shuffled = spec.pipeline is Pipeline.PRESHUFFLEV2
    return [a, b, d, 2 if spec.pipeline is Pipeline.COMPV6 else 1, 16 if spec.pipeline is Pipeline.COMP_ASYNC else 4,
            8 if shuffled else 0, 0]  # fmt: skip


def _contiguous(spec: GemmSpec) -> tuple[tuple[bool, int], tuple[bool, int]]:
    a, b = spec.layout.value[:2]
    return (a == "r", spec.tile.m), (b == "c", spec.tile.n)
