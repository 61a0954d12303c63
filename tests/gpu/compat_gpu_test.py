"""libdispatcher_gemm_lib.so and gpu_helper on the device: host memory in, host memory out.

$KERNELWRIGHT_LIBRARY must be libdispatcher_gemm_lib.so, which serves as the native dispatcher too; else it is skipped.
"""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any

import numpy as np
import pytest
from places import DEVICE

from conftest import LIBRARY
from kernelwright.dispatch.tools import gpu_helper

ERROR = 2.0**-7  # of a bf16 result of normal numbers, relative to the largest


@pytest.fixture
def gemm_lib(gpu: None) -> Any:
    library = ctypes.CDLL(os.environ.get("KERNELWRIGHT_LIBRARY", ""))
    if not hasattr(library, "dispatcher_init_from"):
        pytest.skip("KERNELWRIGHT_LIBRARY is not libdispatcher_gemm_lib.so")
    library.dispatcher_last_error.restype = ctypes.c_char_p
    yield library
    library.dispatcher_cleanup()


@pytest.mark.parametrize("shape", [(512, 512, 512), (200, 136, 328), (1, 4096, 1024)])
def test_host_memory_is_copied_there_and_back(gemm_lib: Any, shape: tuple[int, int, int]) -> None:
    import torch

    m, n, k = shape
    assert gemm_lib.dispatcher_init_from(os.fsencode(LIBRARY), b"bf16_rcr") == 0, gemm_lib.dispatcher_last_error()
    assert gemm_lib.dispatcher_is_supported(*map(ctypes.c_int64, shape)) == 1, gemm_lib.dispatcher_last_error()
    a, b = torch.randn(m, k, dtype=torch.bfloat16), torch.randn(n, k, dtype=torch.bfloat16)
    c = torch.full((m, n), float("nan"), dtype=torch.bfloat16)
    time = ctypes.c_float()
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, c)]
    status = gemm_lib.dispatcher_run_gemm(*pointers, *map(ctypes.c_int64, shape), ctypes.byref(time))
    assert status == 0 and time.value > 0, gemm_lib.dispatcher_last_error()
    exact = a.double().numpy() @ b.double().numpy().T
    assert np.max(np.abs(c.double().numpy() - exact)) <= ERROR * np.max(np.abs(exact))


@pytest.mark.parametrize("datatype", ["fp16", "bf16", "fp8", "int8"])
def test_gpu_helper_validates(gpu: None, capsys: pytest.CaptureFixture[str], datatype: str) -> None:
    options = ["--device", DEVICE, "--library", str(LIBRARY.parent), "--datatype", datatype]
    assert gpu_helper.main(["512", "264", "1024", "--validate", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "success" and report["validation"]["accuracy"] == 100
    assert report["execution"]["time_ms"] > 0
