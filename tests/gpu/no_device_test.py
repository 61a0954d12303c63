"""What a built library answers without touching a GPU; runs wherever the library is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from raw_abi import INVALID_ARGUMENT, OK, RUNTIME_MISSING, UNSUPPORTED, Kernel, Library

_BYTES = {"fp32": 4, "int32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "bf8": 1, "int8": 1}


def test_reasons_name_field_and_value(kernel: Kernel) -> None:
    step = 16 // _BYTES[kernel.dtypes[0]]
    good = {"m": 128, "n": 128, "k": 128}
    assert kernel.supports(kernel.problem(**good)) == (OK, "")
    refused = {
        f"lda is {128 + step // 2}; TMA needs multiples of 16 bytes": {"lda": 128 + step // 2},
        f"ldb is 64, below {'kn'[kernel.layout[1] == 'r']}, the 128 elements of a": {"ldb": 64},
        "m is 2147483648; this kernel takes 0 to 2147483647": {"m": 2**31, "lda": 2**32},
        "n is 130; TMA stores rows of C in 16 bytes": {"n": 130, "ldb": 144, "ldc": 144},
        "k is -1; this kernel takes 0": {"k": -1},
        "k is 0 and beta is 0.5" if kernel.dtypes[3] != "int32" else "beta is 0.5; an int32": {"k": 0, "beta": 0.5},
    }
    for start, change in refused.items():
        status, reason = kernel.supports(kernel.problem(**{**good, "lda": 128, "ldb": 128, **change}))
        wrong = INVALID_ARGUMENT if "below" in start else UNSUPPORTED
        assert (status, reason[: len(start)]) == (wrong, start)


@pytest.mark.parametrize("field", ["dtype_a", "dtype_b", "dtype_c", "dtype_acc", "layout_a", "layout_b", "layout_c"])
def test_another_dtype_or_layout_is_refused(kernel: Kernel, field: str) -> None:
    problem = kernel.problem(128, 128, 128)
    setattr(problem, field, 1 - problem.layout_a if field == "layout_a" else 1 if getattr(problem, field) != 1 else 2)
    if field in ("layout_b", "layout_c"):
        setattr(problem, field, 1 - getattr(kernel.problem(1, 1, 1), field))
    status, reason = kernel.supports(problem)
    assert status == UNSUPPORTED
    assert reason.startswith(f"{field} is ")
    assert "this kernel serves" in reason


def test_more_slices_than_the_kernel_has_are_refused(kernel: Kernel) -> None:
    most = kernel.traits.max_split_k
    problem = kernel.problem(128, 128, 128)
    problem.split_k = most + 1
    taken = "1" if most == 1 else f"1 to {most}"
    assert kernel.supports(problem) == (UNSUPPORTED, f"split_k is {most + 1}, this kernel serves {taken}")


def test_short_reason_buffers_are_respected(kernel: Kernel) -> None:
    import ctypes

    problem, text = kernel.problem(-1, 1, 1), ctypes.create_string_buffer(b"x" * 16, 16)
    kernel.descriptor.supports(kernel.pointer, ctypes.addressof(problem), ctypes.addressof(text), 8)
    assert text.raw == b"m is -1\0" + b"x" * 8
    assert kernel.descriptor.supports(kernel.pointer, ctypes.addressof(problem), None, 0) == UNSUPPORTED


def test_plan_refuses_what_supports_refuses(kernel: Kernel) -> None:
    with pytest.raises(RuntimeError, match="k is -1"):
        kernel.plan(kernel.problem(128, 128, -1))


def test_absent_devices_are_named(library: Library) -> None:
    status, reason = library.check_device(99)
    assert status == RUNTIME_MISSING
    assert "99" in reason or "no usable CUDA driver or device" in reason


def test_threads_cannot_be_set(library: Library) -> None:
    assert library.table.set_num_threads(4) == UNSUPPORTED
    assert "GPU" in library.table.last_error().decode()


def test_the_runtime_cannot_be_chosen(library: Library) -> None:
    assert library.table.set_runtime(b"/some/file.so") == UNSUPPORTED
    assert "/some/file.so" in library.table.last_error().decode()


def test_loading_and_asking_is_safe_before_fork() -> None:
    """A child forked after load and supports can use the GPU; without one, it gets the usual refusal."""
    code = """
import os, sys
from pathlib import Path
from raw_abi import Library
library = Library(Path(sys.argv[1]))
kernel = next(kernel for kernel in library if kernel.descriptor.op == 1)
assert kernel.supports(kernel.problem(128, 128, 128))[0] == 0
kernel.plan(kernel.problem(128, 128, 128))
child = os.fork()
if child == 0:
    os._exit(library.check_device(0)[0])
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == library.check_device(0)[0], status
"""
    from conftest import LIBRARY

    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built: run tests/gpu/run")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    subprocess.run([sys.executable, "-c", code, str(LIBRARY)], check=True, env=environment, timeout=120)
