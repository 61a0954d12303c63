"""CPU kernels: our own C++ templates, instantiated by a generated header, compiled by the host toolchain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.arch import Arch, load
from kernelwright.codegen.backends import cpu_symbols as symbols
from kernelwright.codegen.plan import Action, KernelPlan
from kernelwright.codegen.spec import GemmSpec, Kernel
from kernelwright.codegen.toolchains.host import HostToolchain

_SOURCES = {
    "library": "__cpu_common/include/kernelwright/cpu/common/library.cpp",
    "launcher": "__cpu_gemm/include/kernelwright/cpu/gemm/launcher.cpp",
}
_TREES = ("abi", "gemm", "cpu_common", "cpu_gemm")
# Peak resident size of one compile (clang 22: 113 MB for 14x32 bf16), rounded up.
_COMPILE_MB = 160


class CpuBackend:
    """Kernels for x86-64 levels with a host toolchain for everything."""

    name = "cpu"

    def __init__(self, host: HostToolchain) -> None:
        self.host = host

    def context(self, kernel: Kernel) -> Mapping[str, object]:
        """C++ symbols for ``templates/cpu/gemm.hpp.jinja``; the spec must have passed the rules."""
        spec = kernel.spec
        layout_a, layout_b = symbols.LAYOUTS[spec.layout]
        features = _features(spec, load(kernel.arch))
        return {
            "operation": symbols.OPERATIONS[spec.dtype_a, spec.warp_tile.k],
            "epilogue": _epilogue(spec),
            "layout_a": layout_a,
            "layout_b": layout_b,
            "required_features": " | ".join(symbols.FEATURES[feature][0] for feature in features) or "kNoFeature",
            "features": " ".join(features),
            "max_split_k": symbols.MAX_SPLIT_K if spec.split_k else 1,
            "stream_k": symbols.STREAM_K[spec.stream_k],
        }

    def kernel_plan(self, kernel: Kernel, header: str) -> KernelPlan:
        """One compile: the header to ``<arch>/<name>.o``, its own report, for the level and the kernel's features."""
        output = header.removesuffix(".hpp") + ".o"
        arch = load(kernel.arch)
        extra = [symbols.FEATURES[feature][1] for feature in _features(kernel.spec, arch)]
        flags = ("-x", "c++", *self.host.cpu_flags(arch.target, extra))
        command = self.host.compile_cxx(header, output, flags=flags, trees=_TREES, memory_mb=_COMPILE_MB)
        action = command.action(f"compile {output}", f"Compile {kernel.name} for {kernel.arch}", [header], [output])
        return KernelPlan(files=(), actions=(action,), objects=(output,), report=output)

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """A relocatable object of many objects."""
        return self.host.group(objects, output)

    def library_actions(self, arch: str, table: str, objects: Sequence[str], library: str) -> tuple[Action, ...]:
        """Compile the table and the launchers for any x86-64 processor, and link all."""
        stem = library.removesuffix(".so")
        table_object = f"{stem}_table.o"
        baseline = self.host.cpu_flags("x86_64")
        level = f"-DKERNELWRIGHT_CPU_LEVEL={symbols.LEVELS[load(arch).target]}"
        compile_table = self.host.compile_c(table, table_object, flags=baseline, trees=("abi",))
        own = []
        for name, source in _SOURCES.items():
            output = f"{stem}_{name}.o"
            command = self.host.compile_cxx(source, output, flags=(*baseline, level), trees=_TREES)
            own.append(command.action(f"compile {output}", f"Compile the CPU {name} of {library}", [], [output]))
        everything = [*objects, table_object, *(output for action in own for output in action.outputs)]
        link = self.host.link_shared(everything, library, libraries=("pthread",))
        return (
            compile_table.action(f"compile {table_object}", f"Compile {table}", [table], [table_object]),
            *own,
            link.action(f"link {library}", f"Link {library}", everything, [library]),
        )


def _epilogue(spec: GemmSpec) -> str:
    element = symbols.ELEMENTS[spec.dtype_c]
    if not spec.fused:
        return f"epilogue<{element}>"
    activation = symbols.ACTIVATIONS[spec.activation]
    return f"epilogue<{element}, {spec.num_d}, {symbols.D_OPS[spec.d_op]}, {activation}>"


def _features(spec: GemmSpec, arch: Arch) -> tuple[str, ...]:
    return arch.features(spec.dtype_key, spec.warp_tile.k)
