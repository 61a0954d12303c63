"""libdispatcher_fmha_lib.so through the client of the CK Tile dispatcher, on naive kernels of a CPU and of a GPU."""

from __future__ import annotations

import ctypes
import fnmatch
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attention.compat.checked import BATCH, HEADS_K, KEYS, QUERIES, Checked, on_host
from attention.compat.client import FUNCTIONS
from attention.compat.positional import ARGUMENTS, PLAIN, PositionalClient
from kernelwright.dispatch.testdata import mocks

Array = np.ndarray[Any, np.dtype[Any]]
ROOT = Path(__file__).resolve().parents[3]
FAKE_GPU = ROOT / "tests/gemm/compat/fake_gpu.c"
GOOD: dict[str, Any] = {
    "batch": 2, "nhead_q": 4, "nhead_k": 2, "seqlen_q": 5, "seqlen_k": 32, "hdim_q": 16, "hdim_v": 16, "scale": 0.5,
}  # fmt: skip
EVERY = ("forward", "features", "backward", "split", "paged")


@pytest.fixture
def client(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PositionalClient]:
    monkeypatch.setenv("KERNELWRIGHT_FMHA_KERNELS", str(mocks.attention_library()))
    client = PositionalClient(built)
    assert client.library.fmha_dispatcher_initialize(b"x86_64_v3") == 0, client.reason()
    yield client
    client.library.fmha_dispatcher_cleanup()


@pytest.mark.parametrize("what", EVERY)
def test_results_are_right(client: PositionalClient, what: str) -> None:
    getattr(Checked(on_host(client), hdim=(16, 24)), what)()


@pytest.mark.parametrize(("paged", "size"), [(0, 0), (1, 16), (1, 0)])
@pytest.mark.parametrize("rope", [0, 2])
def test_an_append_is_done_though_nobody_sees_it(client: PositionalClient, paged: int, size: int, rope: int) -> None:
    checked = Checked(on_host(client))
    checked.append(paged_kv=paged, page_block_size=size, rope_type=rope)
    caches = seen(mocks.attention_library())
    rows = QUERIES + KEYS
    if paged:
        page = size or 64
        width = -(-rows // page)
        kept = caches[:, : BATCH * width * HEADS_K * page * 16].reshape(2, -1, HEADS_K, page, 16)
        firsts = [request * width for request in range(len(kept[0]) // width)]
        pairs = [kept[:, one : one + width].transpose(0, 2, 1, 3, 4).reshape(2, HEADS_K, -1, 16) for one in firsts]
    else:
        pairs = [caches[:, : BATCH * HEADS_K * rows * 16].reshape(2, BATCH, HEADS_K, rows, 16)[:, 0]]
    # Places before the new rows are zeros; cosines and sines are too.
    for request, (k, v) in enumerate(pairs):
        assert not k[:, :QUERIES].any() and not v[:, :QUERIES].any()
        np.testing.assert_array_equal(v[:, QUERIES:rows], checked.v[request])
        np.testing.assert_array_equal(k[:, QUERIES:rows], 0 * checked.k[request] if rope else checked.k[request])


def seen(folder: Path) -> Array:
    """The caches of the last append of a mock library, 4,096 numbers each."""
    values = ((ctypes.c_float * 4096) * 2).in_dll(ctypes.CDLL(str(folder / "libattention.so")), "mock_appended")
    return np.array(values, np.float32)


def test_the_client_loads_the_file_by_its_names(built: Path, tmp_path: Path) -> None:
    """It binds everything at once, looks for one name, and for others that match a pattern."""
    assert built.name == "libdispatcher_fmha_lib.so" and fnmatch.fnmatch(built.name, "libdispatcher_fmha_*.so")
    shutil.copytree(mocks.attention_library(), tmp_path / "dispatcher_fmha_kernels")
    for name in (built.name, "libdispatcher_fmha_fwd_fp32.so"):
        client = PositionalClient(Path(shutil.copy(built, tmp_path / name)))
        assert client.library.fmha_dispatcher_kernel_count() == 0
        assert client.status("run_fwd", **GOOD) == -1
        assert "call fmha_dispatcher_initialize() first" in client.reason()
        assert client.library.fmha_dispatcher_initialize(b"gfx950") == -1
        assert client.library.fmha_dispatcher_initialize(None) == 0, client.reason()
        assert client.library.fmha_dispatcher_kernel_count() == len(mocks.ATTENTION)
        Checked(on_host(client)).split()
        client.library.fmha_dispatcher_cleanup()


ANY = tuple(ARGUMENTS)
FORWARD = tuple(name for name, (_, numbers) in ARGUMENTS.items() if "has_logits" in numbers)
PAGED = ("run_pagedkv", "run_batch_prefill")


@pytest.mark.parametrize(
    ("functions", "changes", "status", "words"),
    [
        (ANY, {"data_type": b"bf8"}, -1, "data_type = bf8; allowed: fp32, fp16, bf16"),
        (ANY, {"data_type": None}, -2, "fp16"),  # the default, which no kernel here serves
        (tuple(name for name in ANY if name != "run_appendkv"), {"nhead_q": 3}, -1, "a multiple of heads_kv = 2"),
        (ANY, {"nhead_k": 0}, -1, "nhead_k = 0; allowed: 1 to"),
        (ANY, {"batch": -1}, -1, "batch = -1; allowed: 0 to"),
        (ANY, {"hdim_v": -5}, -1, "hdim_v = -5; allowed: 1 to"),
        (FORWARD, {"is_v_rowmajor": 0}, -1, "is_v_rowmajor = 0; allowed: 1"),
        (FORWARD, {"has_logits": 1}, -1, "has_logits = 1; allowed: 0, since there is no argument for the cap"),
        (FORWARD, {"bias_type": 3}, -1, "bias_type = 3; allowed: 0 to 2"),
        (FORWARD, {"mask_type": 7}, -1, "mask_type = 7; allowed: 0 to 2"),
        (("run_fwd", "run_splitkv"), {"window_left": 4}, -1, "window_left or window_right is not -1"),
        (FORWARD, {"o": None}, -1, "o is null"),
        (("run_bwd",), {"has_dbias": 1}, -1, "has_dbias = 1, bias_type = 0; allowed: with bias_type = 1"),
        (("run_splitkv",), {"perm": 0}, -1, "perm = 0; allowed without group mode: 1"),
        (PAGED, {"page_block_size": 5}, -1, "seqlen_k = 32; allowed: multiples of page_block_size = 5"),
        (PAGED, {"page_block_size": 0}, -1, "multiples of page_block_size = 64"),
        (("run_batch_prefill",), {"kv_layout": 0}, -2, "page_layout is vectorized, which this kernel does not serve"),
        (("run_batch_prefill",), {"kv_layout": 2}, -1, "kv_layout = 2; allowed: 0 to 1"),
        (("run_batch_prefill",), {"kv_lookup": -1}, -1, "kv_lookup = -1; allowed: 0 to 1"),
        (("run_appendkv",), {"rope_type": 3}, -1, "rope_type = 3; allowed: 0 to 2"),
        (("run_fwd", "run_bwd"), {"is_group_mode": 1, "batch": 2**30}, -1, "batch = 1073741824, seqlen_q = 5"),
        (("run_fwd",), {"bias_type": 1, "batch": 2**30, "nhead_q": 2**30, "nhead_k": 2**30}, -1, "no memory"),
        (("run_fwd",), {"hdim_q": 2000}, -2, "hdim_q is 2000"),
    ],
)
def test_what_no_kernel_can_do_is_refused(
    client: PositionalClient, functions: tuple[str, ...], changes: dict[str, Any], status: int, words: str
) -> None:
    data = np.zeros(1 << 16, np.float32)
    for function in functions:
        pointers, numbers = ARGUMENTS[function]
        names = {*pointers.split(), *numbers.split()}
        given = {name: value for name, value in GOOD.items() if name in names}
        given |= {name: np.zeros_like(data) for name in pointers.split()}
        if function == "run_appendkv":
            given["seqlen_knew"] = 3
        known = {name: value for name, value in changes.items() if name in names}
        assert client.status(function, **given) == 0, client.reason()
        if known:
            assert client.status(function, **{**given, **known}) == status, (function, client.reason())
            assert words in client.reason(), (function, client.reason())


def test_the_header_and_the_migration_page_name_every_function() -> None:
    header = (ROOT / "dispatcher_cpp/include/kernelwright/dispatcher/fmha_lib.h").read_text("utf-8")
    declared = set(re.findall(r"DISPATCHER_EXPORT .*?fmha_dispatcher_(\w+)\(", header))
    assert declared == {*ARGUMENTS, *PLAIN, *FUNCTIONS}
    page = (ROOT / "docs/migrating.md").read_text("utf-8")
    mentioned = set(re.findall(r"(?:`fmha_dispatcher_|`…_)(\w+)", page))
    assert declared <= mentioned


def test_a_scale_of_zero_is_zero(client: PositionalClient) -> None:
    q, k, v = (np.random.default_rng(i).standard_normal((1, 1, 4, 8)).astype(np.float32) for i in range(3))
    o, sizes = np.empty_like(q), dict.fromkeys(GOOD, 1) | {"seqlen_q": 4, "seqlen_k": 4, "hdim_q": 8, "hdim_v": 8}
    client.run("run_fwd", **{**sizes, "scale": 0.0}, q=q, k=k, v=v, o=o)
    np.testing.assert_allclose(o, np.broadcast_to(v.mean(2, keepdims=True), o.shape), atol=1e-6)


@pytest.fixture(scope="module")
def fake_gpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("fake") / "libamdhip64.so"
    return mocks.compile_shared([*mocks.compilers()[0], "-std=c99", "-O1", str(FAKE_GPU)], output)


class OnDevice:
    """Calls on memory of a device, as the runner of that client makes them: its arrays go there and come back."""

    def __init__(self, client: PositionalClient, hip: Any) -> None:
        self.client, self.hip = client, hip
        hip.hipFree.argtypes = [ctypes.c_void_p]
        hip.hipMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def __call__(self, function: str, **given: Any) -> None:
        arrays = {name: one for name, one in given.items() if isinstance(one, np.ndarray)}
        there = {name: ctypes.c_void_p() for name in arrays}
        for name, address in there.items():
            assert self.hip.hipMalloc(ctypes.byref(address), ctypes.c_size_t(arrays[name].nbytes)) == 0
            assert self.hip.hipMemcpy(address, arrays[name].ctypes.data, arrays[name].nbytes, 1) == 0
        self.client.run(function, **{**given, **{name: address.value for name, address in there.items()}})
        for name, address in there.items():
            assert self.hip.hipMemcpy(arrays[name].ctypes.data, address, arrays[name].nbytes, 2) == 0
            assert self.hip.hipFree(address) == 0


@pytest.mark.parametrize("device", [0, 1])
def test_a_gpu_takes_host_and_device_memory(
    built: Path, fake_gpu: Path, monkeypatch: pytest.MonkeyPatch, device: int
) -> None:
    folder = mocks.attention_library("gfx942", "ck_tile")
    monkeypatch.setenv("KERNELWRIGHT_FMHA_KERNELS", str(folder))
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", str(fake_gpu))
    hip, client = ctypes.CDLL(str(fake_gpu)), PositionalClient(built)
    try:
        assert hip.hipSetDevice(device) == 0
        assert client.library.fmha_dispatcher_initialize(b"gfx942") == 0, client.reason()
        others = hip.fake_used(1 - device)
        for call in (on_host(client), OnDevice(client, hip)):
            before = hip.fake_copies()
            for what in EVERY:
                getattr(Checked(call), what)()
            checked = Checked(call)
            checked.append()
            # The call's own memory held them while it ran.
            rows = (2, BATCH, HEADS_K, QUERIES + KEYS, 16)
            v_rows = seen(folder)[:, : BATCH * HEADS_K * (QUERIES + KEYS) * 16].reshape(rows)[1, 0, :, QUERIES:]
            np.testing.assert_array_equal(v_rows, checked.v[0])
            assert hip.fake_copies() > before and hip.fake_live() == 0
            assert hip.fake_used(1 - device) == others
        hip.fake_fail_allocation(3)
        with pytest.raises(AssertionError, match="no memory for"):
            Checked(on_host(client)).forward()
        assert hip.fake_live() == 0
    finally:
        client.library.fmha_dispatcher_cleanup()
        hip.hipSetDevice(0)
