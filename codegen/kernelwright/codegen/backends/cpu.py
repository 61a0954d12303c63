"""CPU kernels: our own C++ templates, instantiated by a generated header, compiled by the host toolchain."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.arch import Arch, ArchError
from kernelwright.arch.model import CpuFacts
from kernelwright.codegen.actions import Action, KernelActions
from kernelwright.codegen.backends.base import launcher_sources, launcher_trees, one_compile, source_trees
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.toolchains.host import HostToolchain
from kernelwright.codegen.trees import launcher_files

_LAUNCHER = "cpu_common_launcher"
_SOURCES = launcher_files("cpu", "common", "library")
_TREES = ("abi", "cpu_common")
# Peak resident size of one compile (clang 22: 113 MB for 14x32 bf16), rounded up.
_COMPILE_MB = 160


class CpuBackend:
    """Kernels for x86-64 levels with a host toolchain for everything."""

    name = "cpu"

    def __init__(self, host: HostToolchain) -> None:
        self.host = host

    def kernel_actions(self, kernel: Kernel, arch: Arch, header: str) -> KernelActions:
        """One compile: the header to ``<arch>/<name>.o``, also the report, for the level and the kernel's features."""
        output = header.removesuffix(".hpp") + ".o"
        own = operation(kernel.spec.op)
        extra = [cpu_facts(arch).features[feature] for feature in own.features(kernel.spec, arch)]
        flags = ("-x", "c++", *self.host.cpu_flags(arch.target, extra))
        trees = (*_TREES, *launcher_trees([kernel.spec.op], self.name))
        command = self.host.compile_cxx(header, output, flags=flags, trees=trees, memory_mb=_COMPILE_MB)
        return one_compile(command, kernel, header, output)

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """Combine objects into one relocatable object."""
        return self.host.group(objects, output)

    def join(self, kernels: Sequence[Kernel], arch: Arch, headers: Sequence[str]) -> None:
        """None: one compile takes about a second."""

    def library_actions(
        self, arch: Arch, table: str, objects: Sequence[str], library: str, operations: Sequence[str]
    ) -> tuple[Action, ...]:
        """Compile the table and the launchers for any x86-64 processor, and link everything."""
        stem = library.removesuffix(".so")
        table_object = f"{stem}_table.o"
        baseline = self.host.cpu_flags("x86_64")
        level = f"-DKERNELWRIGHT_CPU_LEVEL={cpu_facts(arch).level}"
        trees = (*_TREES, *launcher_trees(operations, self.name))
        compile_table = self.host.compile_c(table, table_object, flags=baseline, trees=("abi",))
        own = []
        for name, source in {**_SOURCES, **launcher_sources(operations, self.name)}.items():
            output, seen = f"{stem}_{name}.o", _TREES if name in _SOURCES else trees
            seen = source_trees(source, *seen, _LAUNCHER)
            command = self.host.compile_cxx(source, output, flags=(*baseline, level), trees=seen)
            own.append(command.action(f"compile {output}", f"Compile the CPU {name} of {library}", [], [output]))
        everything = [*objects, table_object, *(output for action in own for output in action.outputs)]
        link = self.host.link_shared(everything, library, libraries=("pthread",))
        return (
            compile_table.action(f"compile {table_object}", f"Compile {table}", [table], [table_object]),
            *own,
            link.action(f"link {library}", f"Link {library}", everything, [library]),
        )


def cpu_facts(arch: Arch) -> CpuFacts:
    """Return the architecture file's section ``cpu``; ArchError if it has none."""
    if arch.cpu is None:
        raise ArchError(f"arch {arch.name} is of the backend cpu, but its file has no section 'cpu'; add it")
    return arch.cpu
