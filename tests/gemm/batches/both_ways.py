"""What kernels compile to together, cut apart, and what each compiles to alone.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from compiling import cache_folder, executor
from kernelwright.arch import load
from kernelwright.codegen.actions import Action
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for
from kernelwright.codegen.building.execute import Watcher
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.batches import batches
from kernelwright.codegen.planning.compile_plan import kernel_actions

STEPS = ("s", "gpu.o", "co")
"""Assembly, object and code object, by the suffix of their paths."""


class Whole(Watcher):
    """Fails a test where kernels could not be compiled together, or cut apart."""

    def parted(self, actions: Sequence[Action], why: str) -> None:
        """What would otherwise be compiled singly."""
        raise AssertionError(f"{[action.id for action in actions]}: {why}")


def compile_kernels(kernels: Sequence[Kernel], together: bool) -> dict[str, list[bytes]]:
    """The steps of each kernel of one architecture by its name; up to 8 kernels of one operation are one batch."""
    arch = load(kernels[0].arch)
    backend = backend_for(arch, DEFAULT_TOOLCHAINS)
    ordered = sorted(kernels, key=lambda kernel: kernel.name)
    roads = [kernel_actions(kernel, arch, backend) for kernel in ordered]
    actions = [action for road in roads for action in road.actions[: len(STEPS)]]
    files = [file for road in roads for file in road.files]
    joined = batches(ordered, arch, roads, backend, actions, 1) if together else ()
    cache = cache_folder()
    if together:  # a part is stored under the key of its kernel's own command: each composition has its own cache
        digest = sha256(" ".join(kernel.identity for kernel in ordered).encode()).hexdigest()
        cache = cache / f"together-{digest[:16]}"
    made = executor(cache, watcher=Whole()).run(files, actions, batches=joined)
    stems = {kernel.name: f"{kernel.arch}/{kernel.name}" for kernel in ordered}
    return {name: [made[f"{stem}.{step}"].read_bytes() for step in STEPS] for name, stem in stems.items()}


def different(kernels: Sequence[Kernel]) -> list[str]:
    """Names of the kernels of which a step is not the same both ways."""
    together, singly = (compile_kernels(kernels, way) for way in (True, False))
    return [name for name in singly if singly[name] != together[name]]
