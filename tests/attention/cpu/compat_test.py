"""The positional functions of the CK Tile dispatcher on the CPU kernels that ship."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from attention.compat.checked import Checked, on_host
from attention.compat.library import fmha_library
from attention.compat.positional import PositionalClient
from attention.cpu.conftest import CASES
from kernelwright.dispatch import ArchMismatchError, Dispatcher, KernelLibrary

DTYPES = {"fp32": (np.float32, 1e-5), "fp16": (np.float16, 5e-3), "bf16": (ml_dtypes.bfloat16, 4e-2)}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> PositionalClient:
    return PositionalClient(fmha_library(tmp_path_factory.mktemp("fmha_lib")))


@pytest.mark.parametrize(("arch", "dtype"), CASES)
def test_results_are_right(
    client: PositionalClient,
    libraries: dict[str, KernelLibrary],
    arch: str,
    dtype: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    try:
        Dispatcher(libraries[arch])
    except ArchMismatchError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("KERNELWRIGHT_FMHA_KERNELS", str(Path(libraries[arch].path).parent))
    assert client.library.fmha_dispatcher_initialize(arch.encode()) == 0, client.reason()
    try:
        kind, atol = DTYPES[dtype]
        checked = Checked(on_host(client), kind, atol=atol)
        for what in ("forward", "backward", "split", "paged"):
            getattr(checked, what)()
        checked.features(slopes=dtype == "fp32")  # the set has no others
        for more in ({}, {"paged_kv": 1, "page_block_size": 16, "rope_type": 1}):
            checked.append(**more)  # whose results no argument returns
    finally:
        client.library.fmha_dispatcher_cleanup()
