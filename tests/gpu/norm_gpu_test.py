"""Every kernel of norms on the GPU against float64, in guarded and poisoned memory, and the operators of torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from norm_operands import OnDevice  # noqa: E402
from places import DEVICE  # noqa: E402
from torch.nn import functional  # noqa: E402

import kernelwright.torch as kw  # noqa: E402
from conftest import HERE  # noqa: E402
from kernelwright.dispatch import Dispatcher, KernelLibrary  # noqa: E402
from kernelwright.dispatch.operations.norm import NormProblem  # noqa: E402
from norm.gpu_cases import check  # noqa: E402

FOLDER = Path(os.environ.get("KERNELWRIGHT_GPU_NORM", HERE.parents[1] / ".gpu" / "norm" / "sm_90a"))
# Rows, columns, elements by which operands miss an aligned address, and gaps between rows.
SHAPES = (
    *((1, 1, 0, 0), (3, 200, 0, 0), (5, 33, 1, 3), (2, 1500, 0, 8), (7, 4200, 0, 0), (9, 17, 0, 15)),
    *((130, 1024, 0, 0), (64, 4096, 0, 0), (9, 8192, 0, 8), (4, 20000, 0, 0), (3, 16385, 2, 1), (1500, 96, 0, 0)),
)
WORDS = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
TYPES = [(dtype, result) for dtype in ("fp32", "fp16", "bf16") for result in (dtype, "int8", "fp8")]

pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.skipif(not (FOLDER / "manifest.json").is_file(), reason=f"{FOLDER} has no library of norms"),
]
LIBRARY = KernelLibrary.load(FOLDER) if (FOLDER / "manifest.json").is_file() else None
KERNELS = sorted(one.name for one in LIBRARY.kernels) if LIBRARY is not None else []


def problem(spec: Any, rows: int, columns: int, gap: int, **fields: Any) -> NormProblem:
    backward = spec["direction"] == "backward"
    names = ["stride_x", "stride_y", *(["stride_dy"] if backward else [])]
    if fields.get("residual"):
        names += ["stride_residual", *([] if backward else ["stride_sum"])]
    return NormProblem(
        spec["kind"], rows, columns, dtype=spec["dtype"], dtype_y=spec["dtype_y"], backward=backward,
        bias=spec["kind"] == "layer", **{name: columns + gap for name in names}, **fields,
    )  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_what_float64_does(name: str) -> None:
    dispatcher = Dispatcher([LIBRARY], device="cuda:0", selection=name)
    (kernel,) = [one for one in LIBRARY.kernels if one.name == name]
    for seed, (rows, columns, shift, gap) in enumerate(SHAPES):
        fields: dict[str, Any] = {"residual": seed % 2 == 1, "weight": seed % 5 != 4}
        if seed % 3 == 2 and fields["weight"]:
            fields["dtype_w"] = "fp32"
        check(dispatcher, problem(kernel.spec, rows, columns, gap, **fields), seed, OnDevice(), shift=shift)


def test_sums_have_the_same_bits_in_every_run() -> None:
    dispatcher = Dispatcher([LIBRARY], device="cuda:0")
    x, dy = torch.randn(2, 5000, 1000, device=DEVICE, dtype=torch.bfloat16)
    weight = torch.randn(1000, device=DEVICE, dtype=torch.bfloat16)
    first, *others = (dispatcher.layer_norm_backward(dy, x, weight) for _ in range(4))
    assert all(torch.equal(*pair) for other in others for pair in zip(first, other, strict=True))


@pytest.mark.parametrize("kind", ["rms", "layer"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(64,), (3, 20), (4096,)])
def test_operators_of_torch_and_their_gradients(kind: str, dtype: Any, shape: tuple[int, ...]) -> None:
    kw.use(Dispatcher([LIBRARY], device="cuda:0"))
    if not any(kernel.spec["dtype"] == WORDS[dtype] for kernel in LIBRARY.kernels):
        pytest.skip(f"the library has no kernels for {dtype}")
    given = [torch.randn(2, 5, *shape, device=DEVICE, dtype=dtype, requires_grad=True)]
    given += [torch.randn(shape, device=DEVICE, dtype=dtype, requires_grad=True) for _ in range(1 + (kind == "layer"))]
    wide = [one.detach().double().requires_grad_() for one in given]
    with kw.strict():
        compares(kind, dtype, shape, given, wide)


def compares(kind: str, dtype: Any, shape: tuple[int, ...], given: list[Any], wide: list[Any]) -> None:
    """Results and gradients of the kernels with those of torch in float64."""
    if kind == "rms":
        normed, exact = kw.rms_norm(given[0], shape, given[1], 1e-5), functional.rms_norm(wide[0], shape, wide[1], 1e-5)
    else:
        normed, exact = kw.layer_norm(given[0], shape, *given[1:]), functional.layer_norm(wide[0], shape, *wide[1:])
    dy = torch.randn_like(normed)
    ours, exacts = torch.autograd.grad(normed, given, dy), torch.autograd.grad(exact, wide, dy.double())
    bound = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    for one, other in zip((normed, *ours), (exact, *exacts), strict=True):
        assert one.dtype == dtype
        assert (one.double() - other).abs().max().item() <= bound * max(other.abs().max().item(), 1.0)
    added, total = (kw.rms_norm if kind == "rms" else kw.layer_norm)(given[0], shape, residual=given[0])
    assert torch.equal(total, given[0] + given[0]) and added.shape == total.shape


def test_operators_compile_without_a_graph_break() -> None:
    kw.use(Dispatcher([LIBRARY], device="cuda:0"))
    x, weight = (torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16) for shape in ((6, 512), (512,)))
    compiled = torch.compile(lambda x: kw.rms_norm(x, (512,), weight) * 2, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), kw.rms_norm(x, (512,), weight) * 2)
