"""NVIDIA kernels: CUTLASS's collective builders, instantiated by a generated header, compiled by the CUDA toolchain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from kernelwright.codegen.backends import cutlass_symbols as symbols
from kernelwright.codegen.plan import Action, KernelPlan
from kernelwright.codegen.spec import GemmSpec, Kernel
from kernelwright.codegen.toolchains.cuda import CUDA, CudaToolchain
from kernelwright.codegen.toolchains.host import Command, HostToolchain

_COMMON = "__cuda_src_common/include/kernelwright/cuda/common"
_SOURCES = {"runtime": f"{_COMMON}/runtime.c", "problem": "__cuda_src_gemm/include/kernelwright/cuda/gemm/problem.c"}
_TREES = ("abi", "gemm", "cuda_src_common", "cuda_src_gemm")
MAX_SPLIT_K = 32
_CUDART = ("cudart_static", "rt", "pthread", "dl", "m")


class CutlassBackend:
    """CUTLASS kernels with a CUDA toolchain for their objects and a host toolchain for tables and links."""

    name = "cutlass"

    def __init__(self, cuda: CudaToolchain, host: HostToolchain) -> None:
        self.cuda = cuda
        self.host = host

    def context(self, kernel: Kernel) -> Mapping[str, object]:
        """C++ symbols for ``templates/cutlass/gemm.hpp.jinja``; the spec must have passed the rules."""
        spec = kernel.spec
        layout_a, layout_b = symbols.LAYOUTS[spec.layout]
        return {
            "element_a": symbols.ELEMENTS[spec.dtype_a],
            "element_b": symbols.ELEMENTS[spec.dtype_b],
            "element_c": symbols.OUTPUTS[spec.dtype_c],
            "element_acc": symbols.ACCUMULATORS[spec.dtype_acc],
            "layout_a": layout_a,
            "layout_b": layout_b,
            "mainloop_schedule": _mainloop_schedule(spec),
            "epilogue_schedule": _epilogue_schedule(spec),
            "swap": symbols.swapped(spec),
            "all_shapes": symbols.all_shapes(spec),
            "cut": symbols.cut(spec),
            "tile_scheduler": symbols.tile_scheduler(spec),
            "activation": symbols.ACTIVATIONS[spec.activation],
            "combination": symbols.COMBINATIONS[spec.d_op],
            "max_split_k": MAX_SPLIT_K if spec.split_k else 1,
            "abi_dtypes": [
                symbols.ABI_DTYPES[dtype] for dtype in (spec.dtype_a, spec.dtype_b, spec.dtype_c, spec.dtype_acc)
            ],
            "abi_layouts": [symbols.ABI_LAYOUTS[letter] for letter in spec.layout],
        }

    def kernel_plan(self, kernel: Kernel, header: str) -> KernelPlan:
        """One compile: the header to ``<arch>/<name>.o``, device code inside. The object is also the report.

        See :mod:`kernelwright.codegen.backends.cutlass_report`.
        """
        output = header.removesuffix(".hpp") + ".o"
        command = self.cuda.compile(header, output, kernel.arch, _TREES)
        action = command.action(f"compile {output}", f"Compile {kernel.name} for {kernel.arch}", [header], [output])
        return KernelPlan(files=(), actions=(action,), objects=(output,), report=output)

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """A relocatable object of many objects."""
        return self.host.group(objects, output)

    def library_actions(self, arch: str, table: str, objects: Sequence[str], library: str) -> tuple[Action, ...]:
        """Compile the table and the shared run-time sources, and link all with the static CUDA runtime."""
        stem = library.removesuffix(".so")
        sources = {f"{stem}_table.o": table}
        sources |= {f"{stem}_{name}.o": source for name, source in _SOURCES.items()}
        compiles = [self._compile_c(source, output) for output, source in sources.items()]
        link = self._link([*objects, *sources], library)
        return (
            *compiles,
            link.action(f"link {library}", f"Link {library}", [*objects, *sources], [library]),
        )

    def _compile_c(self, source: str, output: str) -> Action:
        flags = ("-isystem", f"{CUDA}/include")
        command = self.host.compile_c(source, output, flags=flags, trees=_TREES)
        command = dataclasses.replace(command, trees=(*command.trees, "cuda"))
        inputs = [] if source.startswith("__") else [source]
        return command.action(f"compile {output}", f"Compile {source.rsplit('/', 1)[-1]}", inputs, [output])

    def _link(self, objects: Sequence[str], library: str) -> Command:
        command = self.host.link_shared(objects, library, _CUDART, compiler_rt=True)  # CUTLASS divides 128 bits
        # The static CUDA runtime has symbols of default visibility; the map keeps them inside.
        argv = (*command.argv, f"-L{CUDA}/lib", f"-Wl,--version-script={_COMMON}/library.map")
        return dataclasses.replace(command, argv=argv, trees=(*command.trees, "cuda", "cuda_src_common"))


def _mainloop_schedule(spec: GemmSpec) -> str:
    schedule = symbols.MAINLOOP_SCHEDULES[spec.scheduler]
    if spec.grouped:
        schedule = symbols.GROUPED_SCHEDULES[spec.scheduler][0]
    fast = spec.dtype_a in symbols.FAST_ACCUMULATION_DTYPES and spec.layout in symbols.FAST_ACCUMULATION_LAYOUTS
    return schedule + symbols.FAST_ACCUMULATION if fast else schedule


def _epilogue_schedule(spec: GemmSpec) -> str:
    if spec.grouped:
        return symbols.GROUPED_SCHEDULES[spec.scheduler][1]
    return symbols.EPILOGUE_SCHEDULES[spec.scheduler]
