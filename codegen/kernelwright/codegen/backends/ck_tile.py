"""AMD kernels through CK Tile: symbols for the templates, commands for a kernel and for a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kernelwright.arch import load
from kernelwright.codegen.plan import Action, KernelPlan, RenderedFile
from kernelwright.codegen.render import render_template
from kernelwright.codegen.spec import (
    ELEMENT_BYTES,
    DType,
    Epilogue,
    Kernel,
    Layout,
    Pipeline,
    Scheduler,
    StreamK,
)
from kernelwright.codegen.toolchains.hip import HipToolchain
from kernelwright.codegen.toolchains.host import HostToolchain

# None: CK Tile (or this backend) has no such thing; rules/ck_tile.py says why.
DTYPES: Mapping[DType, str | None] = {
    DType.FP32: "float",
    DType.FP16: "ck_tile::fp16_t",
    DType.BF16: "ck_tile::bf16_t",
    DType.FP8: "ck_tile::fp8_t",
    DType.BF8: "ck_tile::bf8_t",
    DType.INT8: "ck_tile::int8_t",
    DType.INT32: "ck_tile::int32_t",
}
LAYOUTS: Mapping[Layout, tuple[str, str] | None] = {
    Layout.RCR: ("row_major", "col_major"),
    Layout.RRR: ("row_major", "row_major"),
    Layout.CRR: ("col_major", "row_major"),
    Layout.CCR: ("col_major", "col_major"),
}
PIPELINES: Mapping[Pipeline, str | None] = {
    Pipeline.MEM: "kernelwright::hip::mem",
    Pipeline.COMPV3: "kernelwright::hip::compv3",
    Pipeline.COMPV4: "kernelwright::hip::compv4",
    Pipeline.COMPV6: "kernelwright::hip::compv6",
    Pipeline.COMP_ASYNC: "kernelwright::hip::comp_async",
    Pipeline.PRESHUFFLEV2: "kernelwright::hip::preshufflev2",
    Pipeline.TMA: None,
    Pipeline.PACKED: None,
}
EPILOGUES: Mapping[Epilogue, str | None] = {
    Epilogue.CSHUFFLE: "kernelwright::hip::cshuffle",
    Epilogue.DEFAULT: "kernelwright::hip::direct",
    Epilogue.TMA: None,
}
SCHEDULERS: Mapping[Scheduler, str | None] = {
    Scheduler.INTRAWAVE: "ck_tile::GemmPipelineScheduler::Intrawave",
    Scheduler.INTERWAVE: "ck_tile::GemmPipelineScheduler::Interwave",
    Scheduler.DEFAULT: "ck_tile::GemmPipelineScheduler::Default",
    Scheduler.COOPERATIVE: None,
    Scheduler.PINGPONG: None,
}
# The types of d_op and activation have the names that the specs use.
STREAM_K: Mapping[StreamK, str | None] = {
    StreamK.NONE: "void",
    StreamK.LINEAR: "kernelwright::hip::linear",
    StreamK.TREE: "kernelwright::hip::tree",
}

_Member = TypeVar("_Member")
_Symbol = TypeVar("_Symbol")
_SOURCES = {"common": ("code_object", "runtime"), "gemm": ("conditions", "gemm", "grouped", "shuffle")}
_DEVICE_TREES = ("hip_common", "hip_gemm")
_HOST_TREES = ("abi", "gemm", *_DEVICE_TREES)
# 30 kernels of all pipelines and architectures peaked at 492 to 691 MB.
_COMPILE_MB = 768
_ABI_LAYOUT = {"row_major": "KW_ROW_MAJOR", "col_major": "KW_COL_MAJOR"}


class CkTileBackend:
    """CK Tile kernels: device assembly, code object, embedded image and descriptor; a launcher per library."""

    name = "ck_tile"

    def __init__(self, hip: HipToolchain, host: HostToolchain) -> None:
        self.hip = hip
        self.host = host

    def context(self, kernel: Kernel) -> Mapping[str, object]:
        """C++ symbols of ``templates/ck_tile/gemm.hpp.jinja``; KeyError for a member that the backend refuses."""
        spec = kernel.spec
        layout_a, layout_b = _symbol(LAYOUTS, spec.layout)
        return {
            "dtype_a": _symbol(DTYPES, spec.dtype_a),
            "dtype_b": _symbol(DTYPES, spec.dtype_b),
            "dtype_d": _symbol(DTYPES, spec.dtype_c),
            "dtype_acc": _symbol(DTYPES, spec.dtype_acc),
            "layout_a": f"kernelwright::hip::{layout_a}",
            "layout_b": f"kernelwright::hip::{layout_b}",
            "pipeline": _symbol(PIPELINES, spec.pipeline),
            "epilogue": _symbol(EPILOGUES, spec.epilogue),
            "scheduler": _symbol(SCHEDULERS, spec.scheduler),
            "stream_k": _symbol(STREAM_K, spec.stream_k),
            "sums": not spec.grouped,
            "function": f"{kernel.symbol}_gemm",
            "sum": f"{kernel.symbol}_sum",
            "facts": f"{kernel.symbol}_facts",
        }

    def kernel_plan(self, kernel: Kernel, header: str) -> KernelPlan:
        """Header → assembly (the report) → object → code object → embedded image, and the descriptor beside it."""
        base = header.removesuffix(".hpp")
        assembly, device, code = f"{base}.s", f"{base}.gpu.o", f"{base}.co"
        image = RenderedFile(f"{base}.image.S", self._render("image.S", kernel, code_object=code))
        descriptor = RenderedFile(f"{base}.c", self._render("gemm.c", kernel, **_abi(kernel)))
        image_object, descriptor_object = f"{base}.image.o", f"{base}.o"
        target = load(kernel.arch).target
        steps = (
            ("compile", self.hip.compile(header, assembly, target, _DEVICE_TREES, _COMPILE_MB), (header,), assembly),
            ("assemble", self.hip.assemble(assembly, device, target), (assembly,), device),
            ("link", self.hip.link(device, code), (device,), code),
            ("embed", self.hip.embed(image.path, image_object), (image.path, code), image_object),
            (
                "describe",
                self.host.compile_c(descriptor.path, descriptor_object, trees=_HOST_TREES),
                (descriptor.path,),
                descriptor_object,
            ),
        )
        actions = tuple(
            command.action(f"{step}:{base}", f"{step.capitalize()} {kernel.name} for {kernel.arch}", inputs, (output,))
            for step, command, inputs, output in steps
        )
        return KernelPlan((image, descriptor), actions, (descriptor_object, image_object), assembly)

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """A relocatable object of many objects."""
        return self.host.group(objects, output)

    def library_actions(self, arch: str, table: str, objects: Sequence[str], library: str) -> tuple[Action, ...]:
        """Compile the table and the launcher (which knows its architecture), and link."""
        base = library.removesuffix(".so")
        table_object = f"{base}_table.o"
        actions = [
            self.host.compile_c(table, table_object, trees=("abi",)).action(
                f"table:{base}", f"Compile the kernel table {table}", (table,), (table_object,)
            )
        ]
        own = []
        for room, source in ((room, source) for room, names in _SOURCES.items() for source in names):
            output = f"{base}_{source}.o"
            command = self.host.compile_c(
                f"__hip_{room}/include/kernelwright/hip/{room}/{source}.c",
                output,
                (f'-DKW_HIP_TARGET="{load(arch).target}"',),
                _HOST_TREES if room == "gemm" else ("abi", "hip_common"),
            )
            actions.append(command.action(f"{source}:{base}", f"Compile {source} of the HIP launcher", (), (output,)))
            own.append(output)
        parts = (table_object, *own, *objects)
        link = self.host.link_shared(parts, library, ("dl", "pthread"))
        return (*actions, link.action(f"link:{base}", f"Link {library}", parts, (library,)))

    def _render(self, template: str, kernel: Kernel, **more: object) -> str:
        fixed = {
            "name": kernel.name,
            "arch": kernel.arch,
            "identity": kernel.identity,
            "symbol": kernel.symbol,
            "spec_json_literal": _c_string(kernel.canonical_json),
            "spec": kernel.spec,
        }
        return render_template(f"ck_tile/{template}.jinja", {**self.context(kernel), **fixed, **more})


def _symbol(table: Mapping[_Member, _Symbol | None], member: _Member) -> _Symbol:
    symbol = table.get(member)
    if symbol is None:
        raise KeyError(f"CK Tile has no symbol for {member!r}; validate the spec first")
    return symbol


def _abi(kernel: Kernel) -> dict[str, object]:
    spec, arch = kernel.spec, load(kernel.arch)
    layouts = _symbol(LAYOUTS, spec.layout)
    dtypes = {"a": spec.dtype_a, "b": spec.dtype_b, "c": spec.dtype_c, "acc": spec.dtype_acc}
    return {
        **{f"abi_dtype_{operand}": f"KW_{dtype.upper()}" for operand, dtype in dtypes.items()},
        "abi_layout_a": _ABI_LAYOUT[layouts[0]],
        "abi_layout_b": _ABI_LAYOUT[layouts[1]],
        "family": "grouped" if spec.grouped else "gemm",
        "workgroups": arch.compute_units * spec.k_block_per_cu,
        "wave_size": arch.wave_size,
        "b_bytes": ELEMENT_BYTES[spec.dtype_b],
    }


def _c_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
