"""The Python dispatcher on the GPU: torch tensors (and CuPy arrays) by DLPack, without a copy."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from places import CURRENT, DEVICE, ORDINAL, on_new_stream, sleep, synchronize  # noqa: E402

from conftest import LIBRARY, NEEDS_DISPATCHER  # noqa: E402

dispatch = pytest.importorskip("kernelwright.dispatch")
pytestmark = NEEDS_DISPATCHER


@pytest.fixture(scope="module", params=["analytic", "first_fit"])
def dispatcher(request: pytest.FixtureRequest) -> dispatch.Dispatcher:
    return dispatch.Dispatcher([dispatch.KernelLibrary.load(LIBRARY.parent)], device=DEVICE, selection=request.param)


def close(value: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-2) -> bool:
    return bool(((value.double() - expected).norm() <= tolerance * expected.norm()).item())


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_strides_choose_the_layout(
    dispatcher: dispatch.Dispatcher, dtype: str, transpose_a: bool, transpose_b: bool
) -> None:
    kind = getattr(torch, dtype)
    a = torch.randn(*((512, 384) if transpose_a else (384, 512)), device=DEVICE).to(kind)
    b = torch.randn(*((640, 512) if transpose_b else (512, 640)), device=DEVICE).to(kind)
    a, b = (a.T if transpose_a else a), (b.T if transpose_b else b)
    out = torch.full((384, 640), float("nan"), device=DEVICE, dtype=kind)
    assert dispatcher.gemm(a, b, out=out) is out
    synchronize()
    assert close(out, a.double() @ b.double())


def test_result_is_allocated_and_c_is_added(dispatcher: dispatch.Dispatcher) -> None:
    a, b, c = (torch.randn(256, 256, device=DEVICE).bfloat16() for _ in range(3))
    out = dispatcher.gemm(a, b.T, c, alpha=2.0, beta=-1.0)
    assert out.is_cuda and out.dtype == torch.bfloat16
    synchronize()
    assert close(out, 2 * (a.double() @ b.double().T) - c.double())


def test_slices_are_served_in_place(dispatcher: dispatch.Dispatcher) -> None:
    big = torch.randn(512, 1024, device=DEVICE).bfloat16()
    a, b = big[:128, 64:576], big[128:384, 64:576].T
    before = big.clone()
    out = dispatcher.gemm(a, b)
    synchronize()
    assert close(out, a.double() @ b.double())
    assert torch.equal(big, before)


def test_current_stream_is_used(dispatcher: dispatch.Dispatcher) -> None:
    a, b = (torch.randn(256, 256, device=DEVICE).bfloat16() for _ in range(2))
    late, out = torch.randn_like(a), torch.empty_like(a)
    dispatcher.gemm(a, b.T, out=out)
    synchronize()
    with on_new_stream():
        sleep()
        a.copy_(late)
        dispatcher.gemm(a, b.T, out=out)
    synchronize()
    assert close(out, late.double() @ b.double().T)


def test_fp8_and_int8(dispatcher: dispatch.Dispatcher) -> None:
    a, b = (torch.randn(256, 512, device=DEVICE) for _ in range(2))
    narrow_a, narrow_b = (x.to(torch.float8_e4m3fn) for x in (a, b))
    out = dispatcher.gemm(narrow_a, narrow_b.T)
    synchronize()
    assert close(out, narrow_a.double() @ narrow_b.double().T)
    whole_a, whole_b = (torch.randint(-128, 128, (256, 512), device=DEVICE, dtype=torch.int8) for _ in range(2))
    exact = dispatcher.gemm(whole_a, whole_b.T)
    synchronize()
    assert torch.equal(exact.double(), whole_a.double() @ whole_b.double().T)


def test_cupy_arrays(dispatcher: dispatch.Dispatcher) -> None:
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(ORDINAL):
        a, b = (cupy.random.randn(256, 256).astype(cupy.float16) for _ in range(2))
    with cupy.cuda.Device(CURRENT):
        out = dispatcher.gemm(a, b.T)
    assert out.device.id == ORDINAL
    with cupy.cuda.Device(ORDINAL):
        expected = a.astype(cupy.float64) @ b.astype(cupy.float64).T
        assert float(cupy.linalg.norm(out.astype(cupy.float64) - expected) / cupy.linalg.norm(expected)) < 1e-2


def test_refusals_say_why(dispatcher: dispatch.Dispatcher) -> None:
    a, b = torch.randn(64, 100, device=DEVICE).bfloat16(), torch.randn(64, 100, device=DEVICE).bfloat16()
    with pytest.raises(dispatch.NoKernelError, match="multiples of 16 bytes"):
        dispatcher.gemm(a, b.T)
    odd = torch.randn(64 * 128 + 1, device=DEVICE).bfloat16()[1:].view(64, 128)
    with pytest.raises(dispatch.KernelwrightError, match="addresses that are multiples of 16 bytes"):
        dispatcher.gemm(odd, torch.randn(64, 128, device=DEVICE).bfloat16().T)
    with pytest.raises(dispatch.KernelwrightError, match="cpu"):
        dispatcher.gemm(a.cpu(), b.T.cpu())
