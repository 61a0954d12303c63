"""The host side of shipped AMD libraries against a stand-in HIP runtime: reasons, plans, launches, what goes wrong."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import Epilogue, Extent, GemmSpec, Pipeline, Scheduler
from kernelwright.dispatch import KernelLibrary
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks
from kernelwright.problems.gemm.structs import GemmArgs, GemmProblem

OK, INVALID, UNSUPPORTED, ARCH_MISMATCH, RUNTIME_MISSING, LAUNCH_FAILED = 0, 1, 2, 5, 7, 8
FP32, FP16, ROW, COL = 1, 2, 0, 1
MISSING = "/nonexistent/libamdhip64.so"


def spec(tile_k: int, wave: Extent, warp_tile: Extent, k_block_per_cu: int) -> GemmSpec:
    return GemmSpec(
        op="gemm",
        dtype_a=DType.FP16,
        dtype_b=DType.FP16,
        dtype_c=DType.FP16,
        dtype_acc=DType.FP32,
        layout=Layout.RCR,
        tile=Extent(m=128, n=128, k=tile_k),
        wave=wave,
        warp_tile=warp_tile,
        pipeline=Pipeline.COMPV3,
        epilogue=Epilogue.CSHUFFLE,
        scheduler=Scheduler.INTRAWAVE,
        k_block_per_cu=k_block_per_cu,
    )


# One of the kernels of each library.
KERNELS = {
    "gfx942": Kernel(arch="gfx942", spec=spec(64, Extent(m=2, n=2, k=1), Extent(m=32, n=32, k=16), 1)),
    "gfx1201": Kernel(arch="gfx1201", spec=spec(32, Extent(m=4, n=2, k=1), Extent(m=16, n=16, k=16), 2)),
}
# kw_hip_gemm_arguments: pointers, strides, extents, leading dimensions of D tensors, counts, alpha and beta.
ARGUMENTS = struct.Struct("<9Q7q6i4i3i2fi")
BLOCK_SIZE = 256  # four waves of 64, eight waves of 32


class Record(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("loads", "launches", "machine", "flags")),
        *((name, ctypes.c_uint32 * 3) for name in ("grid", "block")),
        *((name, ctypes.c_uint32) for name in ("lds_bytes", "argument_bytes", "load_device", "launch_device")),
        ("stream", ctypes.c_void_p),
        ("function", ctypes.c_char * 128),
        ("arguments", ctypes.c_ubyte * 256),
    )


class Built(NamedTuple):
    libraries: dict[str, KernelLibrary]
    runtime: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    libraries = {}
    for arch in KERNELS:
        with as_file(files("gemm") / f"{arch}_gemm" / arch) as path:
            libraries[arch] = KernelLibrary.load(path)
    source = Path(__file__).with_name("fake_hip.c")
    output = tmp_path_factory.mktemp("hip") / "fake_hip.so"
    return Built(libraries, mocks.compile_shared([*mocks.compilers()[0], "-std=c11", "-O2", str(source)], output))


def stream_of(device: int) -> int:
    """A stream of the stand-in."""
    return 0x1000 * (1 + device) + 0x77


class Session:
    """One library loaded against one runtime, each from a file of its own so that no state is shared."""

    def __init__(
        self, built: Built, arch: str, folder: Path, monkeypatch: pytest.MonkeyPatch, choose: bool = True
    ) -> None:
        runtime, library = folder / "libamdhip64.so.7", folder / "libgemm.so"
        runtime.write_bytes(built.runtime.read_bytes())
        library.write_bytes(built.libraries[arch].path.read_bytes())
        # What a caller chooses is opened, not what the environment says.
        monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", MISSING)
        monkeypatch.setenv("FAKE_HIP_ARCH", f"{arch}:sramecc+:xnack-" if arch == "gfx942" else arch)
        self.runtime = ctypes.CDLL(str(runtime))
        self._loaded = ctypes.CDLL(str(library))
        self._loaded.kw_library_get.restype = ctypes.POINTER(native.LibraryStruct)
        self.library = self._loaded.kw_library_get().contents
        pointers = self.library.kernels[: self.library.kernel_count]
        identity = KERNELS[arch].identity.encode()
        (self.pointer,) = (pointer for pointer in pointers if pointer.contents.identity == identity)
        self.kernel = self.pointer.contents
        self.path = str(runtime).encode()
        if choose:
            assert self.library.set_runtime(self.path) == OK, self.last_error

    @property
    def record(self) -> Record:
        return Record.in_dll(self.runtime, "fake_hip_record")

    @property
    def last_error(self) -> str:
        return (self.library.last_error() or b"").decode()

    def supports(self, problem: GemmProblem) -> tuple[int, str]:
        reason = ctypes.create_string_buffer(256)
        status = self.kernel.supports(
            ctypes.cast(self.pointer, ctypes.c_void_p), ctypes.addressof(problem), reason, 256
        )
        return status, reason.value.decode()

    def plan(self, problem: GemmProblem) -> tuple[int, ctypes.Array[ctypes.c_char]]:
        storage = ctypes.create_string_buffer(self.kernel.plan_bytes)
        status = self.kernel.plan(ctypes.cast(self.pointer, ctypes.c_void_p), ctypes.addressof(problem), storage)
        return status, storage

    def launch(
        self,
        storage: ctypes.Array[ctypes.c_char],
        a: int = 0x1000,
        b: int = 0x2000,
        d: int = 0x3000,
        device: int = 0,
        stream: int | None = None,
    ) -> int:
        handle = stream_of(device) if stream is None else stream
        where = native.Launch(struct_size=ctypes.sizeof(native.Launch), device=device, stream=handle)
        args = GemmArgs(struct_size=ctypes.sizeof(GemmArgs), a=a, b=b, d=d)
        pointer = ctypes.cast(self.pointer, ctypes.c_void_p)
        return int(self.kernel.launch(pointer, storage, ctypes.addressof(where), ctypes.addressof(args)))

    @property
    def current_device(self) -> int:
        """Current device of the calling thread."""
        device = ctypes.c_int(-1)
        assert self.runtime.hipGetDevice(ctypes.byref(device)) == 0
        return device.value

    def check_device(self, device: int = 0) -> tuple[int, str]:
        reason = ctypes.create_string_buffer(256)
        return self.library.check_device(device, reason, 256), reason.value.decode()


@pytest.fixture(params=sorted(KERNELS))
def session(request: pytest.FixtureRequest, built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    return Session(built, request.param, tmp_path, monkeypatch)


@pytest.fixture
def gfx942(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    return Session(built, "gfx942", tmp_path, monkeypatch)


def problem(m: int = 256, n: int = 384, k: int = 160, **changes: Any) -> GemmProblem:
    values = {
        **{"struct_size": ctypes.sizeof(GemmProblem), "op": 1, "split_k": 1, "batch": 1, "alpha": 1.0, "beta": 0.0},
        **{"dtype_a": FP16, "dtype_b": FP16, "dtype_c": FP16, "dtype_acc": FP32},
        **{"layout_a": ROW, "layout_b": COL, "layout_c": ROW},
        **{"m": m, "n": n, "k": k, "lda": k, "ldb": k, "ldc": n},
    }
    return GemmProblem(**{**values, **changes})


def test_the_library_describes_its_kernel(session: Session) -> None:
    assert session.kernel.struct_size == ctypes.sizeof(native.KernelStruct)
    kernel = KERNELS[session.kernel.arch.decode()]
    assert session.kernel.name.decode() == kernel.name
    assert session.kernel.identity.decode() == kernel.identity
    assert session.kernel.spec_json.decode() == kernel.canonical_json
    assert session.library.set_num_threads(2) == UNSUPPORTED


def test_kernels_have_matrix_instructions_and_no_spills(built: Built) -> None:
    for arch, library in built.libraries.items():
        (report,) = (kernel.resources for kernel in library.kernels if kernel.identity == KERNELS[arch].identity)
        assert report is not None
        assert report["matrix_instructions"] >= 32, arch
        assert (report["scratch_bytes"], report["vgpr_spills"]) == (0, 0), arch
        assert report["block_size"] == BLOCK_SIZE
        assert report["kernarg_bytes"] == ARGUMENTS.size
        assert report["wave_size"] == {"gfx942": 64, "gfx1201": 32}[arch]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"dtype_a": 3}, UNSUPPORTED, ("dtype_a", "bf16", "fp16")),
        ({"dtype_c": 99}, UNSUPPORTED, ("dtype_c", "unknown", "fp16")),
        ({"layout_b": ROW}, UNSUPPORTED, ("layout_b", "row-major", "column-major")),
        ({"split_k": 2}, UNSUPPORTED, ("split_k", "2")),
        ({"k": 156, "lda": 160, "ldb": 160}, UNSUPPORTED, ("k = 156", "8", "A")),
        ({"n": 380, "ldc": 384}, UNSUPPORTED, ("n = 380", "8", "C")),
        ({"lda": 161}, UNSUPPORTED, ("leading dimension of A", "161", "4 bytes")),
        ({"lda": 159}, INVALID, ("lda is 159", "k, the 160 elements of a row of A")),
        ({"ldc": 383}, INVALID, ("ldc is 383", "n, the 384 elements of a row of C")),
        ({"m": -1}, INVALID, ("m = -1", "negative")),
        ({"m": 1 << 40}, UNSUPPORTED, ("m = 1099511627776", "31 bits")),
        # Tiles are addressed from their own first row: the rows of one must not be too far apart.
        ({"lda": 1 << 24}, UNSUPPORTED, ("A spans", "rows of 16777216 elements", "31 bits")),
        ({"ldb": 1 << 24}, UNSUPPORTED, ("B spans", "rows of 16777216 elements", "31 bits")),
        ({"struct_size": 8}, INVALID, ("kw_gemm_problem",)),
        ({"op": 7}, INVALID, ("kw_gemm_problem",)),
    ],
)
def test_a_refusal_names_field_and_value(
    session: Session, changes: dict[str, Any], status: int, words: tuple[str, ...]
) -> None:
    refused = problem(**changes)
    answer, reason = session.supports(refused)
    assert answer == status, reason
    assert all(word in reason for word in words), reason
    assert session.plan(refused)[0] == status
    assert session.last_error == reason
    assert session.record.loads == 0


def test_an_empty_k_is_served_by_the_kernel_that_finishes(gfx942: Session) -> None:
    served = problem(200, 136, 0, beta=0.5)  # lda and ldb are 0: neither A nor B is read
    assert gfx942.supports(served) == (OK, "")
    status, storage = gfx942.plan(served)
    assert status == OK
    assert gfx942.launch(storage) == INVALID and "c must be a pointer" in gfx942.last_error
    status, storage = gfx942.plan(problem(200, 136, 0))
    assert gfx942.launch(storage, a=0, b=0) == OK, gfx942.last_error
    record = gfx942.record
    assert record.function.decode() == f"{KERNELS['gfx942'].symbol}_sum"
    assert list(record.grid) == [-(-200 * 136 // 4 // 256), 1, 1] and record.launches == 1
    assert gfx942.launch(storage, d=0) == INVALID


@pytest.mark.parametrize(
    ("m", "n", "k", "changes"),
    [
        (1, 8, 8, {}),  # every extent far below the tile
        (127, 136, 40, {}),
        (200, 136, 136, {"lda": 138, "ldb": 200, "ldc": 138}),
        (128, 128, 32, {}),
        (4096, 4096, 4096, {}),
        (0, 128, 32, {}),
        (128, 0, 32, {"ldc": 0}),
    ],
)
def test_what_is_served_is_planned_and_launched(
    session: Session, m: int, n: int, k: int, changes: dict[str, int]
) -> None:
    served = problem(m, n, k, **changes)
    assert session.supports(served) == (OK, "")
    status, storage = session.plan(served)
    assert status == OK
    assert session.launch(storage) == OK, session.last_error
    record = session.record
    if m == 0 or n == 0:
        assert record.launches == 0
        return
    assert (record.loads, record.launches) == (1, 1)
    assert list(record.grid) == [-(-m // 128) * -(-n // 128), 1, 1]
    assert list(record.block) == [BLOCK_SIZE, 1, 1]
    assert (record.lds_bytes, record.stream) == (0, stream_of(0))
    lda, ldb, ldc = (changes.get(name, default) for name, default in (("lda", k), ("ldb", k), ("ldc", n)))
    sizes = (m, n, k, lda, ldb, ldc, *[0] * 4, 1, 1, record.grid[0])
    expected = ARGUMENTS.pack(0x1000, 0x2000, 0, 0x3000, *[0] * 12, *sizes, 1.0, 0.0, 0)
    assert bytes(record.arguments[: record.argument_bytes]) == expected
    kernel = KERNELS[session.kernel.arch.decode()]
    assert record.function.decode() == f"{kernel.symbol}_gemm"
    assert (record.machine, record.flags & 0xFF) == (224, {"gfx942": 0x4C, "gfx1201": 0x4E}[kernel.arch])


def test_a_code_object_is_loaded_once_per_device(gfx942: Session) -> None:
    storage = gfx942.plan(problem())[1]
    for device in (0, 1, 0, 1):
        assert gfx942.launch(storage, device=device) == OK
    assert (gfx942.record.loads, gfx942.record.launches) == (2, 4)


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_a_launch_goes_to_its_device_and_leaves_the_current_one(gfx942: Session, current: int, device: int) -> None:
    assert gfx942.runtime.hipSetDevice(current) == 0
    assert gfx942.launch(gfx942.plan(problem())[1], device=device) == OK, gfx942.last_error
    assert (gfx942.record.load_device, gfx942.record.launch_device) == (device, device)
    assert gfx942.current_device == current


def test_a_failed_launch_leaves_the_current_device_too(gfx942: Session) -> None:
    storage = gfx942.plan(problem())[1]
    ctypes.c_int.in_dll(gfx942.runtime, "fake_hip_fail_launch").value = 101
    assert gfx942.launch(storage, device=1) == LAUNCH_FAILED and gfx942.current_device == 0
    assert gfx942.launch(storage, device=7, stream=0) == LAUNCH_FAILED and "invalid device ordinal" in gfx942.last_error
    for device in (-1, 64):
        assert gfx942.launch(storage, device=device) == INVALID
        assert f"device = {device}; allowed: 0 to 63" in gfx942.last_error
    assert gfx942.current_device == 0


def test_threads_have_current_devices_of_their_own(gfx942: Session) -> None:
    storage = gfx942.plan(problem())[1]

    def both(number: int) -> int:
        gfx942.runtime.hipSetDevice(number % 2)
        assert gfx942.launch(storage, device=1 - number % 2) == OK
        return gfx942.current_device - number % 2

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(both, range(64))) == {0}


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_streams_of_the_other_device_are_refused(gfx942: Session, current: int, device: int) -> None:
    storage = gfx942.plan(problem())[1]
    assert gfx942.runtime.hipSetDevice(current) == 0
    assert gfx942.launch(storage, device=device, stream=stream_of(1 - device)) == INVALID
    assert f"the stream is of device {1 - device} and the launch is on device {device}" in gfx942.last_error
    assert gfx942.launch(storage, device=device, stream=0x9000) == INVALID
    assert "stream 0x9000 has no device: HIP error 400" in gfx942.last_error
    assert (gfx942.record.loads, gfx942.record.launches) == (0, 0)
    for stream in (0, 1, 2, stream_of(device)):  # null, legacy, per thread, one of its own
        assert gfx942.launch(storage, device=device, stream=stream) == OK, gfx942.last_error
        assert gfx942.record.launch_device == device
    assert gfx942.current_device == current


def test_one_device_needs_no_look_at_the_stream(gfx942: Session) -> None:
    ctypes.c_int.in_dll(gfx942.runtime, "fake_hip_devices").value = 1
    assert gfx942.launch(gfx942.plan(problem())[1]) == OK
    assert ctypes.c_int.in_dll(gfx942.runtime, "fake_hip_stream_calls").value == 0


def test_bad_pointers_never_reach_the_runtime(gfx942: Session) -> None:
    storage = gfx942.plan(problem())[1]
    assert gfx942.launch(storage, a=0) == INVALID
    assert "null" in gfx942.last_error
    assert gfx942.launch(storage, d=0x3002) == INVALID
    assert "4 bytes" in gfx942.last_error
    assert gfx942.record.loads == 0


def test_a_refused_launch_carries_the_runtimes_text(gfx942: Session) -> None:
    ctypes.c_int.in_dll(gfx942.runtime, "fake_hip_fail_launch").value = 101
    assert gfx942.launch(gfx942.plan(problem())[1]) == LAUNCH_FAILED
    assert "101 (invalid device ordinal)" in gfx942.last_error


def test_devices_are_told_apart(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    arch = session.kernel.arch.decode()
    assert session.check_device() == (OK, "")
    for other in ("gfx90a:sramecc+:xnack-", arch[:-1], arch + "0", ""):
        monkeypatch.setenv("FAKE_HIP_ARCH", other)
        status, reason = session.check_device()
        assert status == ARCH_MISMATCH
        assert arch in reason and (other.split(":")[0] or "no AMD GPU") in reason
    status, reason = session.check_device(9)
    assert status == INVALID
    assert "device 9" in reason


def test_without_a_runtime_the_library_still_answers(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(built, "gfx942", tmp_path, monkeypatch, choose=False)
    assert session.supports(problem()) == (OK, "")
    status, storage = session.plan(problem())
    assert status == OK
    assert session.launch(storage) == RUNTIME_MISSING
    status, reason = session.check_device()
    assert status == RUNTIME_MISSING
    assert "libamdhip64" in reason and MISSING in reason
    # Nothing was opened, so the environment may still name another file; from then on it is that one.
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", session.path.decode())
    assert session.launch(storage) == OK
    assert session.library.set_runtime(session.path) == OK
    assert session.library.set_runtime(b"/another/runtime.so") == INVALID
    assert all(word in session.last_error for word in (session.path.decode(), "/another/runtime.so", "copy"))


def test_a_chosen_runtime_stays(gfx942: Session) -> None:
    for wrong in (None, b"", b"x" * 5000):
        assert gfx942.library.set_runtime(wrong) == INVALID
        assert "path" in gfx942.last_error
    assert gfx942.library.set_runtime(b"/another/runtime.so") == INVALID
    assert gfx942.library.set_runtime(gfx942.path) == OK
    assert gfx942.launch(gfx942.plan(problem())[1]) == OK
    assert gfx942.record.launches == 1


def test_threads_may_share_a_kernel(gfx942: Session) -> None:
    storage = gfx942.plan(problem())[1]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: gfx942.launch(storage), range(64))) == {OK}
    assert gfx942.record.loads == 1


def test_only_the_entry_point_is_exported_and_only_libc_is_needed(built: Built) -> None:
    # A process of its own: a library that needed ROCm would fail to load here.
    for path in (str(library.path) for library in built.libraries.values()):
        code = f"import ctypes; l = ctypes.CDLL({path!r}); l.kw_library_get; print(hasattr(l, 'kw_hip_launch'))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"
