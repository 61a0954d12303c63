"""AMD kernels through CK Tile: the commands for a kernel and for a library."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action, KernelActions, RenderedFile
from kernelwright.codegen.backends.base import launcher_sources, launcher_trees, source_trees
from kernelwright.codegen.batching.amd_assembly import cut as cut_assembly
from kernelwright.codegen.batching.batch import Joined
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.resources.amd import MODULE as COUNTING
from kernelwright.codegen.templates import read_template, render_template
from kernelwright.codegen.toolchains.hip import HipToolchain
from kernelwright.codegen.toolchains.host import Command, HostToolchain
from kernelwright.codegen.toolchains.python import module_command
from kernelwright.codegen.trees import launcher_files
from kernelwright.files.counts.instruction_set import names

_LAUNCHER = "hip_common_launcher"
_SOURCES = launcher_files("ck_tile", "common", "code_object", "runtime")
_TREES = ("abi", "hip_common")
# Memory in MB that each further kernel adds to a compile of several.
_ANOTHER_MB = 40
_COUNT_MB = 160


class CkTileBackend:
    """CK Tile kernels: device assembly, its counts, code object, embedded image, descriptor; a launcher per library."""

    name = "ck_tile"

    def __init__(self, hip: HipToolchain, host: HostToolchain) -> None:
        self.hip = hip
        self.host = host

    def kernel_actions(self, kernel: Kernel, arch: Arch, header: str) -> KernelActions:
        """Header → assembly (the report) → object → code object → embedded image; counts and descriptor beside it."""
        base = header.removesuffix(".hpp")
        assembly, device, code, descriptor = f"{base}.s", f"{base}.gpu.o", f"{base}.co", f"{base}.c"
        template = read_template("kernelwright.codegen.backends", "templates/ck_tile/image.S.jinja")
        variables = {"name": kernel.name, "arch": kernel.arch, "symbol": kernel.symbol, "code_object": code}
        image = RenderedFile(f"{base}.image.S", render_template(template, variables))
        image_object, descriptor_object = f"{base}.image.o", f"{base}.o"
        host_trees = _once("abi", "widths", *launcher_trees([kernel.spec.op], self.name), "hip_common")
        steps: tuple[tuple[str, Command, tuple[str, ...], str], ...] = (
            ("compile", self._compile(kernel, arch, header, assembly, 1), (header,), assembly),
            ("assemble", self.hip.assemble(assembly, device, arch.target), (assembly,), device),
            ("link", self.hip.link(device, code), (device,), code),
            ("embed", self.hip.embed(image.path, image_object), (image.path, code), image_object),
            (
                "describe",
                self.host.compile_c(descriptor, descriptor_object, trees=host_trees),
                (descriptor,),
                descriptor_object,
            ),
        )
        counts = f"{base}.json"
        counting = _count(kernel, arch, assembly, counts)
        if counting:
            steps = (*steps, ("count", counting, (assembly,), counts))
        actions = tuple(
            command.action(f"{step}:{base}", f"{step.capitalize()} {kernel.name} for {kernel.arch}", inputs, (output,))
            for step, command, inputs, output in steps
        )
        return KernelActions(
            (image,), actions, (descriptor_object, image_object), assembly, counts if counting else None
        )

    def _compile(self, kernel: Kernel, arch: Arch, source: str, assembly: str, count: int) -> Command:
        """Compile ``count`` kernels like this one, instantiated by ``source``, to device assembly."""
        part = operation(kernel.spec.op).on_backend(self.name)
        trees = ("hip_common", *part.trees)
        hip = self.hip.with_stock_headers() if part.takes_stock_headers(kernel, arch) else self.hip
        memory_mb = hip.memory_mb(part.compile_mb) + (count - 1) * _ANOTHER_MB
        return hip.compile(source, assembly, arch.target, trees, memory_mb)

    def join(self, kernels: Sequence[Kernel], arch: Arch, headers: Sequence[str]) -> Joined | None:
        """A source that includes the headers, compiled to assembly, which is cut by the kernels' symbols.

        None for operations whose kernels would differ, and with ROCm's compiler, for which this was never compared.
        """
        part = operation(kernels[0].spec.op).on_backend(self.name)
        if self.hip.id == "rocm" or not part.joins or any(part.takes_stock_headers(kernel, arch) for kernel in kernels):
            return None
        digest = hashlib.sha256("\n".join(headers).encode()).hexdigest()[:16]
        base = f"{headers[0].rpartition('/')[0]}/batch_{digest}"
        file = RenderedFile(f"{base}.hpp", "".join(f'#include "{header.rpartition("/")[2]}"\n' for header in headers))
        command = self._compile(kernels[0], arch, file.path, f"{base}.s", len(kernels))
        about = f"Compile {len(kernels)} kernels for {kernels[0].arch}: {', '.join(kernel.name for kernel in kernels)}"
        paths = [f"{header.removesuffix('.hpp')}.s" for header in headers]

        def cut(assembly: bytes) -> dict[str, bytes]:
            parts = cut_assembly(assembly.decode("utf-8"), [kernel.symbol for kernel in kernels])
            return {path: parts[kernel.symbol].encode() for kernel, path in zip(kernels, paths, strict=True)}

        return Joined(file, command.action(f"compile:{base}", about, (file.path, *headers), (f"{base}.s",)), cut)

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """Combine objects into one relocatable object."""
        return self.host.group(objects, output)

    def library_actions(
        self, arch: Arch, table: str, objects: Sequence[str], library: str, operations: Sequence[str]
    ) -> tuple[Action, ...]:
        """Compile the table and the launcher (which knows its architecture), and link both."""
        base = library.removesuffix(".so")
        table_object = f"{base}_table.o"
        trees = _once(*_TREES, *launcher_trees(operations, self.name))
        actions = [
            self.host.compile_c(table, table_object, trees=("abi",)).action(
                f"table:{base}", f"Compile the kernel table {table}", (table,), (table_object,)
            )
        ]
        own = []
        for name, source in sorted({**_SOURCES, **launcher_sources(operations, self.name)}.items()):
            output, target = f"{base}_{name}.o", f'-DKW_HIP_TARGET="{arch.target}"'
            seen = source_trees(source, *(_TREES if name in _SOURCES else trees), _LAUNCHER)
            command = self.host.compile_cxx(source, output, (target,), seen)
            actions.append(command.action(f"{name}:{base}", f"Compile {name} of the HIP launcher", (), (output,)))
            own.append(output)
        parts = (table_object, *own, *objects)
        link = self.host.link_shared(parts, library, ("dl", "pthread"))
        return (*actions, link.action(f"link:{base}", f"Link {library}", parts, (library,)))


def _count(kernel: Kernel, arch: Arch, assembly: str, output: str) -> Command | None:
    """Count what the assembly does, into JSON; None if the instructions or the compute unit are not described."""
    if arch.amdgpu is None or arch.amdgpu.instructions not in names() or arch.compute_unit is None:
        return None
    helpers = operation(kernel.spec.op).expects(kernel, arch).helpers
    simds = str(arch.compute_unit.simds)
    return module_command(COUNTING, assembly, output, arch.amdgpu.instructions, simds, *helpers, memory_mb=_COUNT_MB)


def _once(*trees: str) -> tuple[str, ...]:
    """Merge trees, each once: kernels and launchers share some headers."""
    return tuple(dict.fromkeys(trees))
