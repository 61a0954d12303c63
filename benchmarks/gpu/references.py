"""torch's calls for a product and its epilogue: all are timed, and the fastest correct one is the reference."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from timing import Call, Operands

# torch's names: gelu with approximate="tanh" is the one that cuBLASLt fuses; "none" is the exact one.
_GELU = {"bias_gelu": "tanh", "bias_gelu_erf": "none"}


def plain_calls(sets: Sequence[Operands], dtype: str) -> dict[str, Call]:
    """Calls by name that write A·Bᵀ to existing memory: matmul, _scaled_mm with fast accumulation, or _int_mm."""
    one = torch.ones((), device="cuda")

    def matmul(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        torch.matmul(a, b.T, out=out)

    def scaled(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=True, out=out)

    def integer(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        torch._int_mm(a, b.T, out=out)

    if dtype == "fp8":
        return {"_scaled_mm": scaled}
    if dtype == "int8":
        return {"_int_mm": integer}
    return _by_both_libraries("matmul", matmul)


def fused_calls(sets: Sequence[Operands], bias: torch.Tensor, epilogue: str) -> dict[str, Call]:
    """Calls by name that write act(A·Bᵀ + bias) to existing memory; ``epilogue`` is one of shape_sets.FUSED.

    _addmm_activation has only the tanh approximation of gelu. It is also listed for exact gelu, as bf16 hides the
    difference; outputs are compared.
    """

    def addmm(number: int) -> torch.Tensor:
        a, b, out = sets[number % len(sets)]
        return torch.addmm(bias, a, b.T, out=out)

    def fused(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        torch._addmm_activation(bias, a, b.T, use_gelu=epilogue in _GELU, out=out)

    if epilogue == "bias":
        return _by_both_libraries("addmm", addmm)
    calls = _by_both_libraries("_addmm_activation", fused)
    if epilogue == "bias_relu":
        return {**calls, "addmm, relu_": lambda number: torch.relu_(addmm(number))}
    gelu = torch.ops.aten.gelu_
    return {**calls, "addmm, gelu_": lambda number: gelu(addmm(number), approximate=_GELU[epilogue])}


def _by_both_libraries(name: str, call: Call) -> dict[str, Call]:
    """The call with torch's preference for cuBLAS, and for cuBLASLt, which takes effect when a graph is captured."""

    def preferring(library: str) -> Call:
        def preferred(number: int) -> None:
            torch.backends.cuda.preferred_blas_library(library)
            call(number)

        return preferred

    return {name: preferring("cublas"), f"{name}, cuBLASLt": preferring("cublaslt")}


def apply_epilogue(product: torch.Tensor, bias: torch.Tensor, epilogue: str) -> torch.Tensor:
    """act(product + bias) in the product's precision."""
    result = product + bias
    if epilogue == "bias_relu":
        return torch.relu(result)
    if epilogue in _GELU:
        return torch.nn.functional.gelu(result, approximate=_GELU[epilogue])
    return result
