"""A kernel's own functions of the C ABI, launched in the simulator: no dispatcher is between."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NoReturn

from gemm.correctness.guarded import Block
from kernelwright.dispatch import KernelEntry, KernelLibrary
from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.device import simulated_archs
from kernelwright.dispatch.testdata.extension import GemmExtension
from kernelwright.problems.gemm import structs
from kernelwright.simulator.run import device


class RawKernel:
    """One kernel of a library. AssertionError carries what the library says of a failure."""

    def __init__(self, library: KernelLibrary, entry: KernelEntry) -> None:
        self.arch, self._table = library.arch, library.descriptor.contents
        assert self._table.set_runtime(str(device.library_path()).encode()) == 0
        (self._kernel,) = (
            kernel.contents
            for kernel in self._table.kernels[: self._table.kernel_count]
            if kernel.contents.identity.decode() == entry.identity
        )
        self._at = ctypes.addressof(self._kernel)
        self.traits = structs.GemmTraits.from_address(self._kernel.traits)

    def refusal(self, problem: Any) -> str:
        """Why the kernel does not serve the problem; "" if it does."""
        reason = ctypes.create_string_buffer(512)
        status = self._kernel.supports(self._at, ctypes.addressof(problem), ctypes.addressof(reason), len(reason))
        assert (status == 0) == (reason.value == b"")
        return reason.value.decode()

    def workspace(self, problem: Any) -> int:
        """Bytes."""
        size = ctypes.c_uint64(1)
        self._check(self._kernel.workspace_size(self._at, ctypes.addressof(problem), ctypes.addressof(size)))
        return size.value

    def plan(self, problem: Any) -> Any:
        """The storage of a plan, and the aligned address in it."""
        storage = (ctypes.c_char * (self._kernel.plan_bytes + 64))()
        at = ctypes.addressof(storage) + -ctypes.addressof(storage) % 64
        self._check(self._kernel.plan(self._at, ctypes.addressof(problem), at))
        return storage, at

    def launch(
        self, plan: Any, args: Any, read: Sequence[Block], written: Sequence[Block], workspace: Block | None = None
    ) -> None:
        """Run a plan; the kernel may access only these blocks and its workspace."""
        where = native.Launch(ctypes.sizeof(native.Launch), simulated_archs().index(self.arch))
        if workspace is not None:
            where.workspace, where.workspace_bytes = workspace.address, workspace.nbytes
            written = [*written, workspace]
        buffers = [
            device.Buffer(block.address, block.nbytes, writable=number < len(written), name=f"block {number}")
            for number, block in enumerate([*written, *read])
            if block.nbytes
        ]
        at = self._at, plan[1], ctypes.addressof(where), ctypes.addressof(args)
        self._check(device.run(self.arch, buffers, lambda: self._kernel.launch(*at)))

    def shuffled(self, problem: Any, b: Block) -> Block:
        """B in the order that the kernel reads."""
        extension = GemmExtension.from_address(self._kernel.extension)
        size = ctypes.c_uint64(0)
        self._check(extension.shuffle_b_bytes(self._at, ctypes.addressof(problem), ctypes.addressof(size)))
        made = Block((size.value // b.dtype.itemsize,), (1,), b.dtype)
        self._check(extension.shuffle_b(self._at, ctypes.addressof(problem), b.address, made.address))
        made.assert_untouched_around()
        return made

    def _check(self, status: int) -> None:
        if status:
            self._fail()

    def _fail(self) -> NoReturn:
        raise AssertionError((self._table.last_error() or b"").decode())
