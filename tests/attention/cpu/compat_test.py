"""The positional functions of the CK Tile dispatcher on the CPU kernels that ship."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from attention.compat.checked import Checked, on_host
from attention.compat.client import Client, args
from attention.compat.positional import PositionalClient
from attention.cpu.conftest import CASES
from attention.masks import BOTTOM_RIGHT
from attention.reference import Features, forward
from kernelwright.dispatch import ArchMismatchError, Dispatcher, KernelLibrary
from kernelwright.dispatch.testdata import mocks

DTYPES = {"fp32": (np.float32, 1e-5), "fp16": (np.float16, 5e-3), "bf16": (ml_dtypes.bfloat16, 4e-2)}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> PositionalClient:
    return PositionalClient(
        mocks.compat_library("libdispatcher_fmha_lib.so", "attention", tmp_path_factory.mktemp("fmha_lib"))
    )


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


def test_operands_of_8_bits(
    client: PositionalClient, libraries: dict[str, KernelLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The struct has factors; positional functions compute without."""
    try:
        Dispatcher(libraries["x86_64_v4"])
    except ArchMismatchError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("KERNELWRIGHT_FMHA_KERNELS", str(Path(libraries["x86_64_v4"].path).parent))
    assert client.library.fmha_dispatcher_initialize(b"x86_64_v4") == 0, client.reason()
    rng, factors = np.random.default_rng(0), [np.array([value], np.float32) for value in (0.04, 0.03, 0.02)]
    shapes = (2, 4, 5, 64), (2, 2, 33, 64), (2, 2, 33, 64)
    q, k, v = (
        (rng.standard_normal(shape) / factor).astype(ml_dtypes.float8_e4m3fn)
        for shape, factor in zip(shapes, factors, strict=True)
    )
    sizes = {"batch": 2, "nhead_q": 4, "nhead_k": 2, "seqlen_q": 5, "seqlen_k": 33, "hdim_q": 64, "hdim_v": 64}
    run = Client(Path(client.library._name))
    try:
        for scaled in (True, False):
            o = np.full((2, 4, 5, 64), np.nan, ml_dtypes.bfloat16)
            scale = 0.125 if scaled else 0.125 * 0.04 * 0.03
            if scaled:
                named = dict(zip(("descale_q", "descale_k", "descale_v"), factors, strict=True))
                made = args(**sizes, q=q, k=k, v=v, o=o, i_perm=1, mask_type=2, data_type=b"fp8bf16", **named)
                assert run.run(made, None) == 0, run.last_error()
                made.descale_k = None
                assert run.run(made, None) == -1 and b"descale_k is null" in run.last_error()
            else:
                told = {**sizes, "scale": scale, "mask_type": 2, "window_right": 0, "data_type": b"fp8bf16"}
                on_host(client)("run_fwd", **told, q=q, k=k, v=v, o=o)
            for b in range(2):
                stored = zip((q, k, v), factors, strict=True)
                values = [one[b].astype(np.float64) * (factor if scaled else 1) for one, factor in stored]
                wanted = forward(*values, Features(scale, window=BOTTOM_RIGHT)).o
                np.testing.assert_allclose(o[b].astype(np.float64), wanted, rtol=2e-2, atol=1e-2 * np.abs(wanted).max())
    finally:
        client.library.fmha_dispatcher_cleanup()
