"""``kernelwright::gemm``: products with D tensors and an activation, in one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError, ProblemError, dtypes
from kernelwright.problems.literals import Activation, DOp
from kernelwright.problems.scalars import real
from kernelwright.problems.shared import RESULT
from kernelwright.torch import activations, dispatchers, inputs, prepacking
from kernelwright.torch.fallback import decisions, products
from kernelwright.torch.operator import plain, register
from kernelwright.torch.operators import gemm_gradient, gemm_shapes
from kernelwright.torch.operators.native import gemm as native_gemm
from kernelwright.torch.operators.native import linear as native_linear
from kernelwright.torch.operators.native.taught import computed
from kernelwright.torch.road import ROAD
from torch.compiler import is_dynamo_compiling  # pants: no-infer-dep

__all__ = ["gemm", "linear"]

_SCHEMA = (
    'gemm(Tensor a, Tensor b, Tensor[] ds, str d_op="add", str activation="none", float alpha=1.0, '
    'ScalarType? out_dtype=None, str dispatcher="") -> Tensor'
)
_DECISIONS = decisions.of("gemm")
_PYTHON_ROAD = bool(ROAD.why_not)
_native_layer = native_linear.linear
_STORE = prepacking.STORE
_WIDER = {"fp16": torch.float16, "int32": torch.int32}  # result dtypes of 8-bit operands


def gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    ds: Sequence[torch.Tensor] = (),
    d_op: DOp = "add",
    activation: Activation | None = None,
    alpha: float = 1.0,
    out_dtype: torch.dtype | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """Compute activation(alpha * a @ b op ds[0] op ds[1] …) by a kernel of the dispatcher in use.

    ``a @ b`` is :func:`torch.matmul`: vectors, matrices, and batches of matrices, which are broadcast. Strides
    determine the layouts: a transposed view is a column-major matrix, read in place. Operands that no kernel can
    address (expanded or strided ones, which torch copies, too) are copied; the logger ``kernelwright.torch`` reports
    that at level DEBUG. The result is row-major. Gradients of ``a``, ``b`` and ``ds`` are products of the same
    dispatcher. Under autocast, floating-point operands of 16 bits or more are cast as for torch's own products.

    :param a: A (m, k), (k,) for a single row, which the result then lacks, or (…, m, k) for a batch of matrices.
    :param b: B (k, n), (k,) or (…, k, n).
    :param ds: up to four D tensors of the result's dtype, whose shapes broadcast to the result's; whole matrices, and
        (n,) for one row shared by all, are read in place.
    :param d_op: how D tensors are combined with the product, ``"add"`` or ``"multiply"``.
    :param activation: ``"relu"``, ``"gelu"`` (erf form), ``"fast_gelu"`` (tanh form), ``"silu"``, ``"sigmoid"`` or
        ``"tanh"``.
    :param out_dtype: dtype of the result; by default that of ``a``, float16 for 8-bit floats, int32 for int8.
    :param dispatcher: a dispatcher's name, as given to :func:`use`.
    :raises DispatcherNotFoundError: for a name that is not in use on the device of ``a``.
    :raises ArrayError: for operands that are not dense tensors on the device of ``a``, and for tensors that do not fit
        together, have a dtype that no kernel has, or require grad and have 8 bits.
    :raises NoKernelError: in a :func:`strict` region, if no kernel serves the product or a gradient.
    """
    ds = () if type(ds) is tuple and not ds else list(_listed(ds))
    given = a, b, ds, d_op, activation, alpha, out_dtype, dispatcher
    if _PYTHON_ROAD or dispatcher != "" or is_dynamo_compiling():
        return _DECISIONS.call(_gemm, products.gemm, given, 3)
    result = native_gemm.gemm(a, b, ds, d_op, activation, alpha, out_dtype)
    if result is not None:
        return result
    return computed(_DECISIONS, _gemm, products.gemm, given, 3, lambda *made: native_gemm.learn(*given[:-1], *made))


def _gemm(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str, activation: str | None, alpha: float,
    out_dtype: torch.dtype | None, dispatcher: str,
) -> torch.Tensor:  # fmt: skip
    names = ["a", "b", *(f"ds[{number}]" for number in range(len(ds)))]
    _check(names, (a, b, *ds))
    if out_dtype is not None and not isinstance(out_dtype, torch.dtype):
        raise ProblemError(f"out_dtype is {out_dtype!r}; allowed: a torch.dtype; pass one, such as torch.float32")
    if not isinstance(alpha, float | torch.SymFloat):
        alpha = real("alpha", alpha)
    return _product(names, a, b, ds, d_op, activation, alpha, out_dtype, dispatcher)


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    activation: Activation | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """Compute activation(x @ weight.T + bias) in one kernel: :func:`torch.nn.functional.linear` with an activation.

    :param x: (…, k), or (k,).
    :param weight: (n, k), or (k,) for a result without dimension n.
    :param bias: (n,), or another shape that broadcasts to the result's, in the dtype of ``x``.
    :returns: (…, n).

    Everything else is as for :func:`gemm`.
    """
    result: torch.Tensor | None
    if _STORE.limit and dispatcher == "" and not is_dynamo_compiling():
        result = _packed_layer(x, weight, bias, activation)
        if result is not None:
            return result
    if not (_PYTHON_ROAD or dispatcher != "" or is_dynamo_compiling()):
        result = _native_layer(x, weight, bias, activation)
        if result is not None:
            return result
    return _layer(products.linear, (x, weight, bias, activation, dispatcher))


def linear_then(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    """:func:`linear` with an activation; if no kernel fuses both, the activation is a separate operator."""
    result: torch.Tensor | None
    if _STORE.limit and not is_dynamo_compiling():
        result = _packed_layer(x, weight, bias, activation)
        if result is not None:
            return result
    if not (_PYTHON_ROAD or is_dynamo_compiling()):
        result = _native_layer(x, weight, bias, activation)
        if result is not None:
            return result
    return _layer(_in_two, (x, weight, bias, activation, ""))


def _packed_layer(x: Any, weight: Any, bias: Any, activation: str | None) -> torch.Tensor | None:
    """:func:`prepacking.linear`, counted."""
    if activation not in (None, "none") and activation not in activations.NAMES:
        return None
    start = perf_counter_ns()
    result = prepacking.linear(x, weight, bias, activation)
    if result is not None:
        _DECISIONS.ours += 1
        _DECISIONS.ours_ns += perf_counter_ns() - start
    return result


def _layer(torchs: Callable[..., torch.Tensor], given: tuple[Any, ...]) -> Any:
    """Compute a layer that the native road does not know but may learn."""
    if _PYTHON_ROAD or given[-1] != "" or is_dynamo_compiling():
        return _DECISIONS.call(_linear, torchs, given, 3)
    recorded = partial(native_linear.computed_and_recorded, _linear)
    return computed(_DECISIONS, recorded, torchs, given, 3, lambda *made: native_linear.learn(*given[:-1], *made))


def _in_two(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, dispatcher: str
) -> torch.Tensor:
    return activations.apply(activation, linear(x, weight, bias, dispatcher=dispatcher))


def _linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str | None, dispatcher: str
) -> torch.Tensor:
    names, ds = (("x", "weight"), ()) if bias is None else (("x", "weight", "bias"), (bias,))
    _check(names, (x, weight, *ds))
    if not 1 <= weight.dim() <= 2:
        raise ArrayError(f"weight has shape {tuple(weight.shape)}; allowed: (n, k) or (k,); call gemm for batches")
    _check_layer(x, weight, bias)
    return _product(names, x, weight.t(), ds, "add", activation, 1.0, None, dispatcher)


def _check_layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Raise ArrayError for dtypes that differ, which torch refuses, too; autocast makes them equal."""
    dtype = x.dtype
    if weight.dtype == dtype and (bias is None or bias.dtype == dtype):
        return
    if inputs.autocast_dtype(x) is not None or x.element_size() < 2:  # 8-bit kernels have results of other dtypes
        return
    for name, operand in (("weight", weight), ("bias", bias)):
        if operand is not None and operand.dtype != dtype:
            raise ArrayError(
                f"{name} is {operand.dtype} and x {x.dtype}; allowed: one dtype for all; pass {name}.to(x.dtype)"
            )


def _listed(ds: Any) -> Sequence[torch.Tensor]:
    if not isinstance(ds, list | tuple):
        raise ArrayError(f"ds is a {type(ds).__name__}; allowed: a list of tensors; pass ds=[tensor]")
    return ds


def _check(names: Sequence[str], operands: Sequence[Any]) -> None:
    given = dict(zip(names, operands, strict=True))
    inputs.check_tensors(**given)
    inputs.check_devices(**given)
    for name in names[:2]:
        inputs.check_dtype(name, given[name])


def _product(
    names: Sequence[str], a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str,
    activation: str | None, alpha: float, out_dtype: torch.dtype | None, dispatcher: str,
) -> torch.Tensor:  # fmt: skip
    """The product of operands of any rank; errors call A, B and the D tensors by ``names``."""
    activation = "none" if activation is None else activation
    inputs.check_options(d_op=d_op, activation=activation, dispatcher=dispatcher)
    a, b, ds, shape = gemm_shapes.as_product(*_autocast(a, b, ds, out_dtype), names)
    result = OPERATOR(a, b, ds, d_op, activation, alpha, out_dtype, dispatcher)
    return result if shape is None else result.reshape(shape)


def _autocast(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], out_dtype: torch.dtype | None
) -> tuple[torch.Tensor, torch.Tensor, Sequence[torch.Tensor]]:
    if not a.is_floating_point() or a.element_size() < 2:
        return a, b, ds
    return *inputs.autocast(a, b), inputs.autocast(a, *ds, to=out_dtype)[1:]


def _run(
    a: torch.Tensor, b: torch.Tensor, ds: list[torch.Tensor], d_op: str = "add", activation: str = "none",
    alpha: float = 1.0, out_dtype: torch.dtype | None = None, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    in_use = dispatchers.find(dispatcher, a.device)
    shape = gemm_shapes.result_shape(a, b)
    a, b = gemm_shapes.addressable("a", plain(a)), gemm_shapes.addressable("b", plain(b))
    ds = ds and [gemm_shapes.addressable(f"ds[{number}]", plain(d), row_major=True) for number, d in enumerate(ds)]
    out = a.new_empty(shape, dtype=_dtype(a, out_dtype))
    return in_use.gemm(a, b, out=out, ds=ds, d_op=d_op, activation=activation, alpha=alpha)  # type: ignore[arg-type]


def _fake(
    a: torch.Tensor, b: torch.Tensor, ds: list[torch.Tensor], d_op: str = "add", activation: str = "none",
    alpha: float = 1.0, out_dtype: torch.dtype | None = None, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    shape = gemm_shapes.result_shape(a, b)
    k, k_of_b = a.shape[-1], b.shape[-2]
    if k != k_of_b:
        raise ArrayError(f"a is {tuple(a.shape)} and b is {tuple(b.shape)}: k is {k} and {k_of_b}; they must be equal")
    return a.new_empty(shape, dtype=_dtype(a, out_dtype))


def _dtype(a: torch.Tensor, out_dtype: torch.dtype | None) -> torch.dtype:
    if out_dtype is not None:
        return out_dtype
    own = dtypes.name_of(a.dtype, "a")[0]
    result = RESULT.get(own, own)
    return a.dtype if result == own else _WIDER[result]


def _batch(
    info: Any, dims: Sequence[Any], a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], *rest: Any
) -> tuple[torch.Tensor, int]:
    """``torch.vmap`` rule: batched operands become more rows with one B, or a batch of products."""
    rank = max(a.dim() - (dims[0] is not None), b.dim() - (dims[1] is not None))

    def first(operand: torch.Tensor, dim: int | None) -> torch.Tensor:
        if dim is None:
            return operand
        operand = operand.movedim(dim, 0)
        missing = rank + 1 - operand.dim()
        return operand.reshape(operand.shape[0], *[1] * missing, *operand.shape[1:])

    ds = [first(d, dim) for d, dim in zip(ds, dims[2] or [None] * len(ds), strict=True)]
    names = ["a", "b", *(f"ds[{number}]" for number in range(len(ds)))]
    a, b = first(a, dims[0]), first(b, dims[1])
    if dims[0] is None and dims[1] is None:
        a = a.expand(info.batch_size, *[1] * (rank - a.dim()), *a.shape)  # only D tensors are batched
    product = gemm_shapes.as_product(a, b, ds, names)
    result = OPERATOR(product.a, product.b, product.ds, *rest)
    return (result if product.shape is None else result.reshape(product.shape)), 0


OPERATOR = register(_SCHEMA, _run, products.operator, _fake, gemm_gradient.save, gemm_gradient.backward, _batch)
