"""``rms_norm()``, ``layer_norm()`` and their gradients: from arrays to a launch, with a cache for repeated calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kernelwright.dispatch.arrays import allocate
from kernelwright.dispatch.arrays.guards import metadata_key
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.arrays.view import ArrayView, view
from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.native_dispatcher import NativeDispatcher
from kernelwright.dispatch.core.plan import Checked
from kernelwright.dispatch.operations.norm.operand import INPUTS, NAMES, as_rows, wanted
from kernelwright.dispatch.operations.norm.plan import NormPlan
from kernelwright.problems.norm.problem import NormProblem

Makes = tuple[Callable[[], Any] | None, ...]
"""Allocator of each result that is not given; None if it is given, or absent."""


class NormOptions(NamedTuple):
    """Options that arrays do not express."""

    kind: str
    backward: bool
    dtype: str | None
    epsilon: float


class NormCalls:
    """Norm calls of one dispatcher. Threads may share it."""

    def __init__(self, core: NativeDispatcher) -> None:
        """``core`` owns the plans."""
        self._core = core
        # By metadata of the arrays and options: the plan, what it checked, and what allocates results.
        self.by_call: Cache[tuple[object, ...], tuple[NormPlan, Checked, Makes]] = core.new_cache()

    def run(self, operands: tuple[Any, ...], options: NormOptions, stream: int | None) -> Any:
        """Launch with arrays in the order of NAMES. Returns the results, a single one as itself."""
        metadata = metadata_key(operands)
        key = None if metadata is None else (metadata, options)
        known = None if key is None else self.by_call.get(key)
        if known is not None:
            plan, checked, makes = known
            given = self._with_results(operands, makes, checked.family, stream)
            if plan.relaunch(given, stream, checked):
                return _results(given)
        return self._first(operands, options, stream, key)

    def _first(
        self, operands: tuple[Any, ...], options: NormOptions, stream: int | None, key: tuple[object, ...] | None
    ) -> Any:
        """Make a call whose plan is not known."""
        stream = launch_stream(operands, stream, self._core.device.memory)
        arrays = {name: array for name, array in zip(NAMES, operands, strict=True) if array is not None}
        views = {name: view(array, name, stream) for name, array in arrays.items()}
        self._core.check_memory(views["x"].device)
        problem = problem_of(views, options)
        plan = self._core.plan(problem)
        assert isinstance(plan, NormPlan)
        makes = _makes(problem, views, operands, native.fp8_is_fnuz(plan.stages[0].library))
        given = self._with_results(operands, makes, views["x"].family, stream)
        plan.launch(given, stream)
        checked = plan.checked
        if key is not None and checked is not None:
            self.by_call.replace(key, (plan, checked, makes))
        return _results(given)

    def _with_results(
        self, operands: tuple[Any, ...], makes: Makes, family: str, stream: int | None
    ) -> tuple[Any, ...]:
        made = [
            given if make is None else self._core.made_on(stream, family, make)
            for given, make in zip(operands[INPUTS:], makes, strict=True)
        ]
        return (*operands[:INPUTS], *made)


def problem_of(views: dict[str, ArrayView], options: NormOptions) -> NormProblem:
    """Return the problem of the arrays. ArrayError or ProblemError if they, or the options, contradict each other."""
    x, weight = views["x"], views.get("weight", views.get("bias", views.get("dbias")))
    rows, columns, stride_x = as_rows(x, "x")
    strides = {"stride_x": stride_x}
    fields = {"residual": "stride_residual", "dy": "stride_dy", "out": "stride_y", "sum": "stride_sum"}
    for name, field in fields.items():
        if name not in views:
            continue
        layout = as_rows(views[name], name)
        if layout[:2] != (rows, columns):
            raise ArrayError(f"{name} has shape {views[name].shape} and x {x.shape}; they must be equal")
        strides[field] = layout[2]
    if "sum" in views and ("residual" not in views or options.backward):
        raise ArrayError("sum is given without a residual; it is what x and the residual make")
    out = views.get("out")
    dtype_y = options.dtype or (x.dtype if out is None else out.dtype)
    return NormProblem(
        options.kind, rows, columns, dtype=x.dtype, dtype_y=dtype_y, dtype_w="" if weight is None else weight.dtype,
        weight="weight" in views, bias="bias" in views or "dbias" in views, residual="residual" in views,
        backward=options.backward, epsilon=options.epsilon, **strides,
    )  # fmt: skip


def _makes(problem: NormProblem, views: dict[str, ArrayView], operands: tuple[Any, ...], fnuz: bool) -> Makes:
    """Allocators of the results that the caller does not give, with the shape of x, of its rows or of one row.

    ``fnuz`` says whether the device's 8-bit floats are in an FNUZ format.
    """
    x, family = views["x"], views["x"].family
    shapes = {"out": x.shape, "sum": x.shape, "scales": x.shape[:-1]}
    dtypes = {"out": problem.dtype_y, "sum": problem.dtype, "scales": "fp32"}
    owner = {"dweight": operands[NAMES.index("weight")]}
    return tuple(
        allocate.allocator(
            family,
            shapes.get(name, x.shape[-1:]),
            dtypes.get(name, problem.dtype_w),
            owner.get(name, operands[0]),
            fnuz,
        )
        if needed and name not in views
        else None
        for name, needed in list(wanted(problem).items())[INPUTS:]
    )


def _results(operands: tuple[Any, ...]) -> Any:
    outputs = tuple(array for array in operands[INPUTS:] if array is not None)
    return outputs[0] if len(outputs) == 1 else outputs
