"""NVIDIA kernels: CUTLASS, instantiated by a generated header, compiled by the CUDA toolchain."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from kernelwright.arch import Arch, ArchError
from kernelwright.codegen.actions import Action, KernelActions
from kernelwright.codegen.backends.base import launcher_sources, launcher_trees, one_compile, source_trees
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.toolchains.cuda import CUDA, CudaToolchain
from kernelwright.codegen.toolchains.host import Command, HostToolchain
from kernelwright.codegen.trees import launcher_files

_LAUNCHER = "cuda_src_common_launcher"
_SOURCES = launcher_files("cutlass", "common", "runtime")
_TREES = ("abi", "widths", "cuda_src_common")
_CUDART = ("cudart_static", "rt", "pthread", "dl", "m")


class CutlassBackend:
    """CUTLASS kernels with a CUDA toolchain for their objects and a host toolchain for tables and links."""

    name = "cutlass"

    def __init__(self, cuda: CudaToolchain, host: HostToolchain) -> None:
        self.cuda = cuda
        self.host = host

    def kernel_actions(self, kernel: Kernel, arch: Arch, header: str) -> KernelActions:
        """One compile: the header to ``<arch>/<name>.o``, device code inside. The object is also the report.

        See :mod:`kernelwright.codegen.resources.cutlass`.
        """
        output = header.removesuffix(".hpp") + ".o"
        trees = (*_TREES, *launcher_trees([kernel.spec.op], self.name))
        lean_mb = operation(kernel.spec.op).on_backend(self.name).compile_mb
        command = self.cuda.compile(header, output, arch.target, trees, lean_mb)
        return one_compile(command, kernel, header, output)

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """Combine objects into one relocatable object."""
        return self.host.group(objects, output)

    def join(self, kernels: Sequence[Kernel], arch: Arch, headers: Sequence[str]) -> None:
        """None: an object holds host code too."""

    def library_actions(
        self, arch: Arch, table: str, objects: Sequence[str], library: str, operations: Sequence[str]
    ) -> tuple[Action, ...]:
        """Compile the table and the shared run-time sources, and link everything with the static CUDA runtime."""
        stem = library.removesuffix(".so")
        trees = (*_TREES, *launcher_trees(operations, self.name))
        table_object = f"{stem}_table.o"
        compile_table = self.host.compile_c(table, table_object, trees=("abi",))
        compiles = [compile_table.action(f"compile {table_object}", f"Compile {table}", [table], [table_object])]
        for name, source in {**_SOURCES, **launcher_sources(operations, self.name)}.items():
            flags = ("-isystem", f"{CUDA}/include", *(_recognition(arch) if name in _SOURCES else ()))
            output, seen = f"{stem}_{name}.o", source_trees(source, *trees, _LAUNCHER)
            command = self.host.compile_cxx(source, output, flags, seen)
            command = dataclasses.replace(command, trees=(*command.trees, "cuda"))
            compiles.append(command.action(f"compile {output}", f"Compile the CUDA {name} of {library}", [], [output]))
        everything = [*objects, *(output for action in compiles for output in action.outputs)]
        link = self._link(everything, library)
        return (
            *compiles,
            link.action(f"link {library}", f"Link {library}", everything, [library]),
        )

    def _link(self, objects: Sequence[str], library: str) -> Command:
        command = self.host.link_shared(objects, library, _CUDART, compiler_rt=True)  # CUTLASS divides 128-bit integers
        # The static CUDA runtime has symbols of default visibility; the map keeps them inside.
        argv = (*command.argv, f"-L{CUDA}/lib", f"-Wl,--version-script=__{_LAUNCHER}/launchers/cuda/common/library.map")
        return dataclasses.replace(command, argv=argv, trees=(*command.trees, "cuda", _LAUNCHER))


def _recognition(arch: Arch) -> tuple[str, ...]:
    """Macros with which the launcher recognises a device, and the multiprocessors that it plans for without a device.

    ArchError if the architecture file has no section ``cuda``.
    """
    if arch.cuda is None:
        raise ArchError(f"arch {arch.name} is of the backend cutlass, but its file has no section 'cuda'; add it")
    major, minor = arch.cuda.compute_capability
    macros = {"TARGET": f'"{arch.target}"', "MAJOR": major, "MINOR": minor, "MULTIPROCESSORS": arch.compute_units}
    return tuple(f"-DKW_CUDA_{name}={value}" for name, value in macros.items())
