"""One product on a device while nothing is current, in a process of its own: unused_device.py LIBRARY OWN OTHER.

Prints whether the other device has a primary context before and after, what is current afterwards, and whether the
product is right, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from pathlib import Path

from raw_abi import OK, Kernel, Library

CUDA = ctypes.CDLL("libcuda.so.1")
SIZE = 128


def check(error: int) -> None:
    if error:
        raise RuntimeError(f"CUDA driver error {error}")


def is_active(device: int) -> bool:
    flags, active = ctypes.c_uint(), ctypes.c_int()
    check(CUDA.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)))
    return bool(active.value)


def current() -> int | None:
    context = ctypes.c_void_p()
    check(CUDA.cuCtxGetCurrent(ctypes.byref(context)))
    return context.value


def on_device(data: bytes) -> ctypes.c_uint64:
    """A copy in the memory of the current context."""
    address = ctypes.c_uint64()
    check(CUDA.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(len(data))))
    check(CUDA.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(len(data))))
    return address


def serves(kernel: Kernel) -> bool:
    """Whether it multiplies two bf16 matrices without anything else."""
    if kernel.descriptor.op != 1 or kernel.traits.num_d or kernel.dtypes[:3] != ("bf16",) * 3:
        return False
    problem, nbytes = kernel.problem(SIZE, SIZE, SIZE), ctypes.c_uint64()
    if kernel.supports(problem)[0] != OK:
        return False
    kernel.descriptor.workspace_size(kernel.pointer, ctypes.addressof(problem), ctypes.addressof(nbytes))
    return nbytes.value == 0


def main() -> None:
    path, own, other = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    size, context, popped = SIZE, ctypes.c_void_p(), ctypes.c_void_p()
    check(CUDA.cuInit(0))
    check(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), own))
    check(CUDA.cuCtxPushCurrent_v2(context))
    ones = b"\x80\x3f" * (size * size)  # of bf16
    a, b, out = on_device(ones), on_device(ones), on_device(b"\xff" * (2 * size * size))
    check(CUDA.cuCtxPopCurrent_v2(ctypes.byref(popped)))
    kernel = next(filter(serves, Library(path)))
    plan = kernel.plan(kernel.problem(size, size, size))
    result: dict[str, object] = {"before": is_active(other), "launches": []}

    def launch() -> None:
        status = kernel.launch(plan, a.value, b.value, 0, out.value, 0, own)
        result["launches"] += [[status, current()]]

    launch()
    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    result["after"] = is_active(other)
    check(CUDA.cuCtxPushCurrent_v2(context))
    check(CUDA.cuCtxSynchronize())
    host_copy = ctypes.create_string_buffer(2 * size * size)
    check(CUDA.cuMemcpyDtoH_v2(host_copy, out, ctypes.c_size_t(len(host_copy))))
    result["right"] = host_copy.raw == b"\x00\x43" * (size * size)  # 128
    print(json.dumps(result))


if __name__ == "__main__":
    main()
