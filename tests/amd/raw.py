"""A kernel's own functions of the C ABI, launched in the simulator: no dispatcher is between."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NoReturn

from correctness.guarded import Block
from kernelwright.dispatch import KernelLibrary
from kernelwright.dispatch.manifest import KernelEntry
from kernelwright.simulator.run import device

_Supports = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
_Bytes = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
_Three = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_Four = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class RawKernel:
    """One kernel of a library. AssertionError carries what the library says of a failure."""

    def __init__(self, library: KernelLibrary, entry: KernelEntry) -> None:
        self.arch, self._table = library.arch, library.descriptor.contents
        assert self._table.set_runtime(str(device.library_path()).encode()) == 0
        (self._kernel,) = (
            kernel
            for kernel in self._table.kernels[: self._table.kernel_count]
            if kernel.contents.identity.decode() == entry.identity
        )
        self.traits = self._kernel.contents.traits

    def refusal(self, problem: Any) -> str:
        """Why the kernel does not serve the problem; "" if it does."""
        reason = ctypes.create_string_buffer(512)
        status = _Supports(self._kernel.contents.supports)(self._kernel, ctypes.byref(problem), reason, len(reason))
        assert (status == 0) == (reason.value == b"")
        return reason.value.decode()

    def workspace(self, problem: Any) -> int:
        """Bytes."""
        found = ctypes.c_uint64(1)
        self._check(_Bytes(self._kernel.contents.workspace_size)(self._kernel, ctypes.byref(problem), found))
        return found.value

    def plan(self, problem: Any) -> Any:
        """What launches need."""
        storage = (ctypes.c_char * (self._kernel.contents.plan_bytes + 64))()
        at = ctypes.addressof(storage) + -ctypes.addressof(storage) % 64
        self._check(_Three(self._kernel.contents.plan)(self._kernel, ctypes.byref(problem), at))
        return storage, at

    def launch(self, plan: Any, args: Any, read: Sequence[Block], written: Sequence[Block]) -> None:
        """Run a plan; the kernel may touch these blocks only."""
        buffers = [
            device.Buffer(block.address, block.nbytes, writable=number < len(written), name=f"block {number}")
            for number, block in enumerate([*written, *read])
            if block.nbytes
        ]
        launch = _Three(self._kernel.contents.launch)
        self._check(device.run(self.arch, buffers, lambda: launch(self._kernel, plan[1], ctypes.byref(args))))

    def shuffled(self, problem: Any, b: Block) -> Block:
        """B as the kernel reads it."""
        bytes_ = ctypes.c_uint64(0)
        self._check(_Bytes(self._kernel.contents.shuffle_b_bytes)(self._kernel, ctypes.byref(problem), bytes_))
        made = Block((bytes_.value // b.dtype.itemsize,), (1,), b.dtype)
        shuffle = _Four(self._kernel.contents.shuffle_b)
        self._check(shuffle(self._kernel, ctypes.byref(problem), b.address, made.address))
        made.assert_untouched_around()
        return made

    def _check(self, status: int) -> None:
        if status:
            self._fail()

    def _fail(self) -> NoReturn:
        raise AssertionError((self._table.last_error() or b"").decode())
