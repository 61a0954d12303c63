"""Every kernel of the library on the GPU against float64, element by element."""

from __future__ import annotations

import ctypes
import threading

import pytest

torch = pytest.importorskip("torch")

from operands import Matrix, matrix, reference  # noqa: E402
from places import CURRENT, DEVICE, ORDINAL, current_stream, on_new_stream, sleep, synchronize  # noqa: E402
from raw_abi import INVALID_ARGUMENT, OK, Kernel, Library  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")

# Extents that are no multiple of a tile; m and k that are no multiple of 16 bytes either: lines are then padded.
SHAPES = [(256, 512, 512), (128, 256, 64), (1, 8, 16), (131, 264, 100), (517, 136, 1001), (65, 24, 4097), (3, 8, 7)]


def padded(extent: int) -> int:
    return (extent + 15) // 16 * 16


def operands(kernel: Kernel, m: int, n: int, k: int, extra: int = 0) -> tuple[Matrix, Matrix, Matrix]:
    layout, (dtype_a, dtype_b, dtype_c, _) = kernel.layout, kernel.dtypes
    a = matrix(m, k, dtype_a, layout[0], padded(k if layout[0] == "r" else m) + extra)
    b = matrix(k, n, dtype_b, layout[1], padded(n if layout[1] == "r" else k) + extra)
    return a, b, matrix(m, n, dtype_c, "r", padded(n) + extra, fill=False)


def run(
    kernel: Kernel, a: Matrix, b: Matrix, d: Matrix, c: Matrix | None = None, alpha: float = 1.0, beta: float = 0.0
) -> None:
    m, k = a.view.shape
    problem = kernel.problem(m, b.view.shape[1], k, a.leading, b.leading, d.leading, alpha, beta)
    status, reason = kernel.supports(problem)
    assert status == OK, reason
    stream = current_stream()
    status = kernel.launch(kernel.plan(problem), a.pointer, b.pointer, c.pointer if c else 0, d.pointer, stream)
    assert status == OK, kernel.last_error()


def check(
    kernel: Kernel, a: Matrix, b: Matrix, d: Matrix, c: torch.Tensor | None = None, alpha: float = 1, beta: float = 0
) -> None:
    synchronize()
    expected, bound = reference(kernel, a.view, b.view, c, alpha, beta)
    error = (d.view.double() - expected).abs()
    wrong = ~(error <= bound)
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.numel()} wrong, largest error {error.max().item():.3g}"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_right_and_writes_nothing_else(kernel: Kernel, shape: tuple[int, int, int]) -> None:
    a, b, d = operands(kernel, *shape)
    before = d.outside().clone()
    run(kernel, a, b, d)
    check(kernel, a, b, d)
    assert torch.equal(d.outside(), before)


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.0), (1.0, 1.0), (-3.0, 2.0), (0.0, 1.0)])
def test_alpha_beta(kernel: Kernel, alpha: float, beta: float) -> None:
    a, b, d = operands(kernel, 200, 296, 192)
    c = matrix(200, 296, kernel.dtypes[2], "r", d.leading)
    run(kernel, a, b, d, c, alpha, beta)
    check(kernel, a, b, d, c.view, alpha, beta)


def test_c_may_be_d(kernel: Kernel) -> None:
    a, b, _ = operands(kernel, 200, 296, 192)
    d = matrix(200, 296, kernel.dtypes[2], "r", 304)
    old = d.view.clone()
    run(kernel, a, b, d, d, 1.0, 2.0)
    check(kernel, a, b, d, old, 1.0, 2.0)


def test_leading_dimensions_beyond_the_extents(kernel: Kernel) -> None:
    a, b, d = operands(kernel, 160, 272, 144, extra=48)
    before = d.outside().clone()
    run(kernel, a, b, d)
    check(kernel, a, b, d)
    assert torch.equal(d.outside(), before)


def test_long_k_and_many_tiles(kernel: Kernel) -> None:
    a, b, d = operands(kernel, 2100, 3000, 4100)
    run(kernel, a, b, d)
    check(kernel, a, b, d)


def test_work_is_ordered_on_the_given_stream(kernel: Kernel) -> None:
    a, b, d = operands(kernel, 256, 256, 256)
    late = matrix(256, 256, kernel.dtypes[0], kernel.layout[0], a.leading)
    synchronize()
    with on_new_stream():
        sleep()  # a launch on any other stream would read A before it is replaced
        a.storage.copy_(late.storage)
        run(kernel, a, b, d)
    check(kernel, late, b, d)


def test_graph_capture(kernel: Kernel) -> None:
    a, b, d = operands(kernel, 256, 256, 256)
    run(kernel, a, b, d)
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream(DEVICE)), torch.cuda.device(CURRENT):
        run(kernel, a, b, d)
    a.storage.copy_(matrix(256, 256, kernel.dtypes[0], kernel.layout[0], a.leading).storage)
    graph.replay()
    check(kernel, a, b, d)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_k_zero_gives_beta_c(kernel: Kernel, beta: float) -> None:
    c = matrix(65, 40, kernel.dtypes[2], "r", 48)
    d = matrix(65, 40, kernel.dtypes[2], "r", 48, fill=False)
    before = d.outside().clone()
    problem = kernel.problem(65, 40, 0, 128, 128, 48, 1.0, beta)
    stream = current_stream()
    assert kernel.launch(kernel.plan(problem), 0, 0, c.pointer, d.pointer, stream) == OK, kernel.last_error()
    synchronize()
    assert torch.equal(d.view.double(), beta * c.view.double())
    assert torch.equal(d.outside(), before)


@pytest.mark.parametrize("shape", [(0, 16, 16), (16, 0, 16), (0, 0, 0)])
def test_nothing_to_do(kernel: Kernel, shape: tuple[int, int, int]) -> None:
    assert kernel.launch(kernel.plan(kernel.problem(*shape)), 0, 0, 0, 0, 0) == OK


def test_pointers_are_checked(kernel: Kernel) -> None:
    a, b, d = operands(kernel, 128, 128, 128)
    plan = kernel.plan(kernel.problem(128, 128, 128, a.leading, b.leading, d.leading, 1.0, 1.0))
    launches = {
        "a is 0x": (a.pointer + 8, b.pointer, d.pointer, d.pointer),
        "b is null": (a.pointer, 0, d.pointer, d.pointer),
        "c is null": (a.pointer, b.pointer, 0, d.pointer),
        "d is 0x": (a.pointer, b.pointer, d.pointer, d.pointer + 4),
    }
    for message, pointers in launches.items():
        assert kernel.launch(plan, *pointers, 0) == INVALID_ARGUMENT
        assert kernel.last_error().startswith(message)


def test_threads_share_a_plan(kernel: Kernel) -> None:
    a, b, _ = operands(kernel, 384, 384, 384)
    results = [matrix(384, 384, kernel.dtypes[2], "r", 384, fill=False) for _ in range(4)]
    plan = kernel.plan(kernel.problem(384, 384, 384, a.leading, b.leading, 384))
    synchronize()
    statuses: list[int] = []

    def launch(d: Matrix) -> None:
        torch.cuda.set_device(CURRENT)
        statuses.extend(kernel.launch(plan, a.pointer, b.pointer, 0, d.pointer, 0) for _ in range(20))

    threads = [threading.Thread(target=launch, args=(d,)) for d in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [OK] * 80
    for d in results:
        check(kernel, a, b, d)


def test_device_is_accepted(library: Library) -> None:
    assert library.check_device(ORDINAL) == (OK, "")


def test_every_layout_and_dtype_is_covered(library: Library) -> None:
    served = {(kernel.dtypes[0], kernel.layout) for kernel in library}
    assert {(dtype, layout) for dtype in ("bf16", "fp16") for layout in ("rcr", "rrr", "crr", "ccr")} <= served
    assert {(dtype, layout) for dtype in ("fp8", "bf8", "int8") for layout in ("rcr", "ccr")} <= served


def test_workspace_is_nothing(kernel: Kernel) -> None:
    problem, size = kernel.problem(64, 64, 64), ctypes.c_uint64(1)
    assert kernel.descriptor.workspace_size(kernel.pointer, ctypes.addressof(problem), ctypes.addressof(size)) == OK
    assert size.value == 0
