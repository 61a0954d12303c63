"""AMD kernels through CK Tile: the commands for a kernel and for a library."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.arch import load
from kernelwright.codegen.actions import Action, KernelActions, RenderedFile
from kernelwright.codegen.backends.base import launcher_sources, launcher_trees, source_trees
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.templates import read_template, render_template
from kernelwright.codegen.toolchains.hip import HipToolchain
from kernelwright.codegen.toolchains.host import HostToolchain

_LAUNCHER = "hip_common_launcher"
_FOLDER = f"__{_LAUNCHER}/include/kernelwright/hip/launchers/common"
_SOURCES = {name: f"{_FOLDER}/{name}.c" for name in ("code_object", "runtime")}
_TREES = ("abi", "hip_common")


class CkTileBackend:
    """CK Tile kernels: device assembly, code object, embedded image and descriptor; a launcher per library."""

    name = "ck_tile"

    def __init__(self, hip: HipToolchain, host: HostToolchain) -> None:
        self.hip = hip
        self.host = host

    def kernel_actions(self, kernel: Kernel, header: str) -> KernelActions:
        """Header → assembly (the report) → object → code object → embedded image, and the descriptor beside it."""
        base = header.removesuffix(".hpp")
        assembly, device, code, descriptor = f"{base}.s", f"{base}.gpu.o", f"{base}.co", f"{base}.c"
        template = read_template("kernelwright.codegen.backends", "templates/ck_tile/image.S.jinja")
        variables = {"name": kernel.name, "arch": kernel.arch, "symbol": kernel.symbol, "code_object": code}
        image = RenderedFile(f"{base}.image.S", render_template(template, variables))
        image_object, descriptor_object = f"{base}.image.o", f"{base}.o"
        part = operation(kernel.spec.op).on_backend(self.name)
        trees, compile_mb = ("hip_common", *part.trees), part.memory_scale * self.hip.compile_mb
        host_trees = ("abi", *launcher_trees([kernel.spec.op], self.name), "hip_common")
        target = load(kernel.arch).target
        steps = (
            ("compile", self.hip.compile(header, assembly, target, trees, compile_mb), (header,), assembly),
            ("assemble", self.hip.assemble(assembly, device, target), (assembly,), device),
            ("link", self.hip.link(device, code), (device,), code),
            ("embed", self.hip.embed(image.path, image_object), (image.path, code), image_object),
            (
                "describe",
                self.host.compile_c(descriptor, descriptor_object, trees=host_trees),
                (descriptor,),
                descriptor_object,
            ),
        )
        actions = tuple(
            command.action(f"{step}:{base}", f"{step.capitalize()} {kernel.name} for {kernel.arch}", inputs, (output,))
            for step, command, inputs, output in steps
        )
        return KernelActions((image,), actions, (descriptor_object, image_object), assembly)

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """A relocatable object of many objects."""
        return self.host.group(objects, output)

    def library_actions(
        self, arch: str, table: str, objects: Sequence[str], library: str, operations: Sequence[str]
    ) -> tuple[Action, ...]:
        """Compile the table and the launcher (which knows its architecture), and link."""
        base = library.removesuffix(".so")
        table_object = f"{base}_table.o"
        trees = (*_TREES, *launcher_trees(operations, self.name))
        actions = [
            self.host.compile_c(table, table_object, trees=("abi",)).action(
                f"table:{base}", f"Compile the kernel table {table}", (table,), (table_object,)
            )
        ]
        own = []
        for name, source in sorted({**_SOURCES, **launcher_sources(operations, self.name)}.items()):
            output, target = f"{base}_{name}.o", f'-DKW_HIP_TARGET="{load(arch).target}"'
            seen = source_trees(source, *(_TREES if name in _SOURCES else trees), _LAUNCHER)
            command = self.host.compile_c(source, output, (target,), seen)
            actions.append(command.action(f"{name}:{base}", f"Compile {name} of the HIP launcher", (), (output,)))
            own.append(output)
        parts = (table_object, *own, *objects)
        link = self.host.link_shared(parts, library, ("dl", "pthread"))
        return (*actions, link.action(f"link:{base}", f"Link {library}", parts, (library,)))
