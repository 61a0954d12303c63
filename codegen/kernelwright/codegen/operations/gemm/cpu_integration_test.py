"""CPU kernels against float64, bit for bit where arithmetic is exact. KERNELWRIGHT_TREES: a JSON of tree folders."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.cpu import CpuBackend
from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import Epilogue, Extent, GemmSpec, Pipeline, Scheduler
from kernelwright.codegen.operations.gemm.testing.cpu_library import (
    INVALID_ARGUMENT,
    OK,
    ROW,
    UNSUPPORTED,
    WORKSPACE_TOO_SMALL,
    CpuKernel,
    CpuLibrary,
)
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.toolchains.host import HostToolchain

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

ARCHS = ("x86_64_v3", "x86_64_v4")
NUMPY: dict[int, Any] = {1: np.float32, 2: np.float16, 3: ml_dtypes.bfloat16}
# Half an ulp at 1, and half the smallest subnormal.
ROUNDING = {1: (2.0**-24, 2.0**-150), 2: (2.0**-11, 2.0**-25), 3: (2.0**-8, 2.0**-134)}
# Small cache blocks, so that small problems have many of them and sums travel through the workspace.
SMALL_TILE = {"x86_64_v3": Extent(m=12, n=48, k=32), "x86_64_v4": Extent(m=28, n=96, k=32)}
SIZES = (
    *((1, 1, 1), (3, 5, 2), (6, 16, 32), (14, 32, 64), (13, 31, 7), (29, 97, 33), (61, 130, 257)),
    *((1, 333, 100), (16, 47, 300), (200, 1, 65), (2, 2, 1000), (129, 64, 16), (150, 210, 95)),
)


def kernels_of(arch: str) -> list[Kernel]:
    kernels = []
    warp = (6, 16) if arch == "x86_64_v3" else (14, 32)
    kinds = [(DType.FP32, DType.FP32, 1), (DType.FP16, DType.FP16, 1), (DType.BF16, DType.BF16, 1)]
    kinds += [(DType.BF16, DType.BF16, 2)] if arch == "x86_64_v4" else []
    # A and B are packed each on its own: two layouts have each order of each.
    layouts = (Layout.RCR, Layout.CRR)
    wanted = [(kind, layout) for layout in layouts for kind in kinds]
    wanted += [((DType.FP16, DType.FP32, 1), Layout.RRR)]
    for (dtype, output, depth), layout in wanted:
        spec = GemmSpec(
            op="gemm",
            dtype_a=dtype,
            dtype_b=dtype,
            dtype_c=output,
            dtype_acc=DType.FP32,
            layout=layout,
            tile=SMALL_TILE[arch],
            wave=Extent(m=1, n=1, k=1),
            warp_tile=Extent(m=warp[0], n=warp[1], k=depth),
            pipeline=Pipeline.PACKED,
            epilogue=Epilogue.DEFAULT,
            scheduler=Scheduler.DEFAULT,
        )
        kernels.append(Kernel(arch=arch, spec=spec))
    return kernels


def build(arch: str, kernels: list[Kernel], cache: Path) -> Path:
    model = load(arch)
    assert [violation for kernel in kernels for violation in validate(kernel, model)] == []
    plan = compile_plan("test", model, kernels, CpuBackend(HostToolchain.zig()))
    executor = LocalExecutor(read_tree_roots(os.environ["KERNELWRIGHT_TREES"]), cache, jobs=os.cpu_count() or 1)
    return executor.run(plan.all_files, plan.all_actions)[plan.library]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("KERNELWRIGHT_CACHE")
    return Path(named) if named else tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session", params=ARCHS)
def library(request: pytest.FixtureRequest, cache: Path) -> Iterator[CpuLibrary]:
    cpu_library = CpuLibrary(build(request.param, kernels_of(request.param), cache))
    status, reason = cpu_library.check_device()
    if status != OK:
        pytest.skip(reason)
    yield cpu_library
    cpu_library.set_num_threads(0)


def kernels(library: CpuLibrary) -> list[CpuKernel]:
    supported = [kernel for kernel in library if kernel.supports(kernel.problem(1, 1, 1, pads=(0, 0, 0)))[0] == OK]
    assert supported
    return supported


class Case:
    """Operands of one problem in padded, poisoned memory, and what must come out."""

    def __init__(
        self, kernel: CpuKernel, a: Any, b: Any, c: Any, alpha: float, beta: float, pads: tuple[int, int, int]
    ):
        t = kernel.traits
        self.kernel, self.alpha, self.beta = kernel, alpha, beta
        self.a, self.b, self.c = a.astype(NUMPY[t.dtype_a]), b.astype(NUMPY[t.dtype_b]), c.astype(NUMPY[t.dtype_c])
        self.m, self.n, self.k = a.shape[0], b.shape[1], a.shape[1]
        self.problem = kernel.problem(self.m, self.n, self.k, alpha=alpha, beta=beta, pads=pads)
        self.pads = pads

    def run(self, in_place: bool = False) -> Any:
        t, p = self.kernel.traits, self.problem
        a, b = _stored(self.a, t.layout_a, p.lda), _stored(self.b, t.layout_b, p.ldb)
        c = _stored(self.c, ROW, p.ldc)
        d = c if in_place else np.full_like(c, 7)
        guard = d.copy()
        address = c.ctypes.data if self.beta != 0 else 0
        status = self.kernel.plan(p).launch(a.ctypes.data, b.ctypes.data, address, d.ctypes.data)
        assert status == OK, self.kernel.library.last_error
        result = d[: self.m, : self.n].copy()
        guard[: self.m, : self.n] = result
        assert d.tobytes() == guard.tobytes(), "wrote outside the matrix"
        return result

    def check(self, result: Any) -> None:
        a, b = self.a.astype(np.float64), self.b.astype(np.float64)
        scaled = self.beta * self.c.astype(np.float64) if self.beta != 0 else np.zeros((self.m, self.n))
        exact = self.alpha * (a @ b) + scaled
        steps = self.k + 4
        gamma = steps * 2.0**-24 / (1 - steps * 2.0**-24)
        magnitude = abs(self.alpha) * (abs(a) @ abs(b)) + abs(scaled)
        relative, absolute = ROUNDING[self.kernel.traits.dtype_c]
        bound = (1 + relative) * gamma * magnitude + relative * abs(exact) + absolute + self.k * 2.0**-125
        error = abs(result.astype(np.float64) - exact)
        assert (error <= bound).all(), f"{self.kernel.name} {self.m}x{self.n}x{self.k}: {np.nanmax(error / bound)}"


def _stored(matrix: Any, layout: int, ld: int) -> Any:
    """The matrix in its layout, with one line of NaN behind it and NaN in the padding."""
    lines = matrix if layout == ROW else matrix.T
    memory = np.full((lines.shape[0] + 1, ld), np.nan, matrix.dtype)
    memory[: lines.shape[0], : lines.shape[1]] = lines
    return memory


def random_case(kernel: CpuKernel, size: tuple[int, int, int], alpha: float, beta: float, pads: Any) -> Case:
    m, n, k = size
    rng = np.random.default_rng([m, n, k])
    a, b, c = (rng.standard_normal(shape) for shape in ((m, k), (k, n), (m, n)))
    return Case(kernel, a, b, c, alpha, beta, pads)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (0.5, -2), (-1.25, 1)])
def test_within_the_error_bound_for_all_sizes(library: CpuLibrary, alpha: float, beta: float) -> None:
    for threads in (1, 2):
        library.set_num_threads(threads)
        for kernel in kernels(library):
            for number, size in enumerate(SIZES):
                case = random_case(kernel, size, alpha, beta, [(0, 0, 0), (3, 5, 1)][number % 2])
                case.check(case.run(in_place=number % 3 == 0))


def test_small_integers_are_exact(library: CpuLibrary) -> None:
    rng = np.random.default_rng(1)
    for kernel in kernels(library):
        a, b, c = (rng.integers(-4, 5, shape).astype(float) for shape in ((45, 200), (200, 113), (45, 113)))
        result = Case(kernel, a, b, c, 2, -1, (1, 0, 2)).run()
        assert result.tobytes() == (2 * (a @ b) - c).astype(NUMPY[kernel.traits.dtype_c]).tobytes(), kernel.name


def test_threads_do_not_change_a_bit(library: CpuLibrary) -> None:
    for kernel in kernels(library):
        case = random_case(kernel, (230, 190, 131), 1, 0.5, (0, 0, 0))
        results = []
        for threads in (1, 2, 3, 7):
            library.set_num_threads(threads)
            results.append(case.run().tobytes())
        assert len(set(results)) == 1, kernel.name


def test_zero_sizes_and_no_k(library: CpuLibrary) -> None:
    for kernel in kernels(library):
        for size in ((0, 5, 3), (5, 0, 3), (0, 0, 0)):
            assert random_case(kernel, size, 1, 0, (0, 0, 0)).run().size == 0
        case = random_case(kernel, (5, 33, 0), 3, -2, (0, 0, 1))
        assert case.run().tobytes() == (-2 * case.c.astype(np.float64)).astype(case.c.dtype).tobytes()
        assert not random_case(kernel, (5, 33, 0), 3, 0, (0, 0, 1)).run().any()


def test_beta_zero_never_reads_c(library: CpuLibrary) -> None:
    for kernel in kernels(library):
        case = random_case(kernel, (17, 40, 70), 1, 0, (0, 0, 0))
        case.c[:] = np.nan
        case.check(case.run(in_place=True))


def test_nan_and_infinity_follow_ieee(library: CpuLibrary) -> None:
    for kernel in kernels(library):
        case = random_case(kernel, (20, 40, 70), 1, 0, (0, 0, 0))
        case.a[3, 5], case.a[4, 6], case.b[9, 7] = np.nan, np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            expected = case.a.astype(np.float64) @ case.b.astype(np.float64)
            result = case.run().astype(np.float64)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected), kernel.name)
        np.testing.assert_array_equal(np.isposinf(result), np.isposinf(expected), kernel.name)
        np.testing.assert_array_equal(np.isneginf(result), np.isneginf(expected), kernel.name)


def test_subnormals_survive_where_the_instruction_lets_them(library: CpuLibrary) -> None:
    for kernel in kernels(library):
        if "x32x2" in kernel.name:
            continue  # vdpbf16ps treats them as zero
        smallest = {1: 2.0**-149, 2: 2.0**-24, 3: 2.0**-133}[kernel.traits.dtype_a]
        a, b = np.full((3, 1), smallest), np.ones((1, 20))
        case = Case(kernel, a, b, np.zeros((3, 20)), 1, 0, (0, 0, 0))
        assert (case.run().astype(np.float64) == smallest).all(), kernel.name


def test_16_bit_sums_of_many_rows_stay_within_bounded_workspace(library: CpuLibrary) -> None:
    kernel = next(kernel for kernel in kernels(library) if "fp16_rcr" in kernel.name)
    case = random_case(kernel, (400_000, 48, 40), 1, 1, (0, 0, 0))
    assert kernel.plan(case.problem).workspace.size < 80 << 20
    case.check(case.run())


@pytest.mark.parametrize("value", ["abc", "0", "-1", "2 ", "1000000"])
def test_a_number_of_threads_that_is_none_is_refused(
    library: CpuLibrary, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_NUM_THREADS", value)
    status, reason = library.check_device()
    assert status != OK and reason.startswith(f"KERNELWRIGHT_NUM_THREADS is '{value}'; allowed: 1 to ")
    for allowed in ("", "3"):
        monkeypatch.setenv("KERNELWRIGHT_NUM_THREADS", allowed)
        assert library.check_device() == (OK, "")


def test_several_threads_launch_at_once_and_after_fork(library: CpuLibrary) -> None:
    kernel = kernels(library)[0]
    library.set_num_threads(2)
    cases = [random_case(kernel, (150 + i, 160, 150), 1, 0, (0, 0, 0)) for i in range(4)]
    expected = [case.run().tobytes() for case in cases]
    wrong: list[int] = []

    def work(index: int) -> None:
        wrong.extend(index for _ in range(20) if cases[index].run().tobytes() != expected[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    child = os.fork()
    if child == 0:
        os._exit(0 if cases[0].run().tobytes() == expected[0] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cases[0].run().tobytes() == expected[0]


def test_refusals_name_field_and_value(library: CpuLibrary) -> None:
    kernel = kernels(library)[0]
    for field, value, status, text in (
        ("dtype_c", 6, UNSUPPORTED, "dtype_c is int8, this kernel serves"),
        ("layout_c", 1, UNSUPPORTED, "layout_c is column-major, this kernel serves row-major"),
        ("split_k", 3, UNSUPPORTED, "split_k is 3"),
        ("m", -1, INVALID_ARGUMENT, "-1"),
        ("lda", 2, INVALID_ARGUMENT, "lda is 2"),
        ("ldc", 2**62, INVALID_ARGUMENT, "no 64-bit address"),
    ):
        problem = kernel.problem(8, 9, 10, pads=(0, 0, 0))
        setattr(problem, field, value)
        actual, reason = kernel.supports(problem)
        assert (actual, text in reason) == (status, True), reason


def test_bad_launches_are_refused(library: CpuLibrary) -> None:
    kernel = kernels(library)[0]
    data = np.zeros((64, 64), np.float32)
    plan = kernel.plan(kernel.problem(8, 9, 10, pads=(0, 0, 0)))
    p = data.ctypes.data
    assert plan.launch(p, p, 0, p, workspace_bytes=plan.workspace.size - 1) == WORKSPACE_TOO_SMALL
    assert "workspace_bytes" in library.last_error
    assert plan.launch(0, p, 0, p) == INVALID_ARGUMENT
    assert plan.launch(p, p, 0, 0) == INVALID_ARGUMENT
    assert plan.launch(p, p, 0, p, device=1) == INVALID_ARGUMENT and "device is 1" in library.last_error
    assert library.set_num_threads(100_000) == INVALID_ARGUMENT
    assert library.set_runtime("/some/file.so") == UNSUPPORTED and "/some/file.so" in library.last_error
    assert library.check_device(3)[0] == INVALID_ARGUMENT


def test_same_bytes_from_another_folder_and_a_cold_cache(cache: Path, tmp_path: Path) -> None:
    few = kernels_of("x86_64_v3")[:2]
    digests = {
        hashlib.sha256(build("x86_64_v3", few, place).read_bytes()).hexdigest()
        for place in (cache, tmp_path / "a" / "much" / "longer" / "path")
    }
    assert len(digests) == 1


def test_only_kw_library_get_is_exported(cache: Path) -> None:
    data = build("x86_64_v3", kernels_of("x86_64_v3")[:2], cache).read_bytes()
    assert _exported(data) == ["kw_library_get"]
    assert b".symtab" not in data and b".note.gnu.build-id" not in data


def _exported(elf: bytes) -> list[str]:
    """Names of defined symbols in .dynsym of a 64-bit little-endian ELF file."""

    def word(at: int, size: int) -> int:
        return int.from_bytes(elf[at : at + size], "little")

    sections = [word(40, 8) + 64 * index for index in range(word(60, 2))]
    dynsym = next(at for at in sections if word(at + 4, 4) == 11)
    start, size, strings = word(dynsym + 24, 8), word(dynsym + 32, 8), word(sections[word(dynsym + 40, 4)] + 24, 8)
    names = []
    for at in range(start + 24, start + size, 24):
        if word(at + 6, 2) != 0:
            begin = strings + word(at, 4)
            names.append(elf[begin : elf.index(b"\0", begin)].decode())
    return names
