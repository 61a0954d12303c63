"""``gemm()``: from arrays to a launch, with caches that make repeated calls short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Unpack

from numpy import ndarray

from kernelwright.dispatch.arrays.guards import metadata_key
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.arrays.view import is_torch
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.core.errors import ArrayError, NoKernelError
from kernelwright.dispatch.core.native_dispatcher import NativeDispatcher
from kernelwright.dispatch.core.plan import Checked
from kernelwright.dispatch.operations.gemm.from_arrays import GemmOperands, d_tensors, read_operands, read_options
from kernelwright.dispatch.operations.gemm.operand import ShuffledB, allocator, operand
from kernelwright.dispatch.operations.gemm.plan import Plan
from kernelwright.dispatch.operations.gemm.shuffle import shuffle
from kernelwright.problems.gemm.options import GemmOptions
from kernelwright.problems.gemm.problem import Epilogue, GemmProblem
from kernelwright.problems.literals import Activation, DOp
from kernelwright.problems.scalars import integer, real

Known = tuple[Plan, Checked, "Callable[[], Any] | None"]


class GemmCalls:
    """Calls of single and batched products of one dispatcher. Threads may share it."""

    def __init__(self, core: NativeDispatcher) -> None:
        """``core`` owns the plans."""
        self._core = core
        # Plans by views of the arrays and options.
        self.by_views: Cache[tuple[object, ...], Plan] = core.new_cache()
        # By metadata of the arrays and options: the plan, what it checked, and what allocates a result.
        self.by_call: Cache[tuple[object, ...], Known] = core.new_cache()
        # torch tensors by a part of their metadata: torch compares the rest in less time than it takes to read it.
        self.by_shapes: Cache[tuple[object, ...], Known] = core.new_cache()

    def gemm(
        self, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any], bias: Any, d_op: DOp, activation: Activation,
        alpha: float, beta: float, layout: str | None, split_k: int, stream: int | None,
    ) -> Any:  # fmt: skip
        """See :meth:`Dispatcher.gemm`."""
        if type(alpha) is not float or type(beta) is not float:
            alpha, beta = real("alpha", alpha), real("beta", beta)
        if type(ds) is not tuple or bias is not None:
            ds = d_tensors(ds, bias, d_op)
        if type(split_k) is not int:  # True and 1.0 would match an entry for 1
            split_k = integer("split_k", split_k, 0)
        operands = (a, b, c, *ds, out) if ds else (a, b, c, out)
        shapes = None
        kind = type(a)
        if kind is not ndarray and (kind is type(b) or is_torch(b)) and is_torch(a):
            shapes = (a.shape, b.shape, a.dtype, out is None, alpha, beta, layout, d_op, activation, split_k)
            known = self.by_shapes.get(shapes)
            if known is not None:
                if out is not None:
                    if known[0].relaunch(operands, stream, known[1]):
                        return out
                elif (result := self._again(known, operands, stream)) is not None:
                    return result
        metadata = metadata_key(operands)
        key = (metadata, alpha, beta, layout, d_op, activation, split_k)
        known = None if metadata is None else self.by_call.get(key)
        if known is not None:
            plan, checked, make = known
            if make is not None or shapes is not None:
                if (result := self._again(known, operands, stream)) is not None:
                    if shapes is not None:
                        self.by_shapes.replace(shapes, known)
                    return result
            elif plan.relaunch(operands, stream, checked):
                return out
        stream = launch_stream((a, b, c, *ds, out), stream, self._core.device.memory)
        given = self._read(a, b, c, out, ds, beta, stream)
        plan = self._plan_for(given, Epilogue(alpha, beta, d_op, activation), layout, split_k)
        copied, make = out is None and c is not None, None
        if given.out is None:
            make = allocator(given.a, given.shape, plan.problem.dtype_c, plan.problem.layout[2] == "r", a)
            out = self._core.made_on(stream, given.a.family, make)
            given.out = operand(out, "out", stream)
        if copied:  # C and D share strides: give C those of the new memory
            self._core.made_on(stream, given.a.family, partial(_copy, out, c))
            given.c, c = given.out, out
        if given.batch == 0:
            return out
        launched = plan.launch_views((a, b, c, *ds, out), given.views, stream)
        if metadata is not None and launched is not None and not copied:
            if make is not None:
                launched = launched._replace(write_notice=None)  # nobody has seen a new result before
            self.by_call.replace(key, (plan, launched, make))
        return out

    def _again(self, known: Known, operands: tuple[Any, ...], stream: int | None) -> Any:
        """Launch with what is known of such arrays and return the result; None if they must be checked again."""
        plan, checked, make = known
        if make is not None:
            result = make() if stream is None else self._core.made_on(stream, checked.family, make)
            operands = (*operands[:-1], result)
        return operands[-1] if plan.relaunch(operands, stream, checked) else None

    def plan(self, a: Any, b: Any, c: Any, out: Any, **options: Unpack[GemmOptions]) -> Plan:
        """See :meth:`Dispatcher.plan_gemm`."""
        ds, epilogue, layout, split_k = read_options(**options)
        return self._plan_for(self._read(a, b, c, out, ds, epilogue.beta, None), epilogue, layout, split_k)

    def problem(self, a: Any, b: Any, c: Any, out: Any, **options: Unpack[GemmOptions]) -> GemmProblem:
        """The problem :meth:`gemm` would plan with these arrays: the first reading that is served, else the first."""
        ds, epilogue, layout, split_k = read_options(**options)
        given = self._read(a, b, c, out, ds, epilogue.beta, None)
        problems = [GemmProblem(**fields) for fields in given.readings(epilogue, layout, split_k)]
        for problem in problems:
            with suppress(NoKernelError):
                self._core.plan_reading(problem)
                return problem
        return problems[0]

    def _read(
        self, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any], beta: float, stream: int | None
    ) -> GemmOperands:
        """Operands that fit together and are on the dispatcher's device."""
        given = read_operands(a, b, c, out, ds, beta=beta, stream=stream)
        self._core.check_memory(given.a.device)
        return given

    def _plan_for(self, given: GemmOperands, epilogue: Epilogue, layout: str | None, split_k: int) -> Plan:
        """The plan for the first equivalent reading of the arrays that some kernel serves."""
        key = (*(view and view.signature for view in given.views), epilogue, layout, split_k)
        plan = self.by_views.get(key)
        if plan is not None:
            return plan
        refused: tuple[GemmProblem, NoKernelError] | None = None
        for fields in given.readings(epilogue, layout, split_k):
            problem = GemmProblem(**fields)
            try:
                made = self._core.plan_reading(problem)
            except NoKernelError as error:
                refused = refused or (problem, error)
                continue
            assert isinstance(made, Plan)
            return self.by_views.put(key, made)
        assert refused is not None  # there is at least one reading
        made = self._core.plan_refused(*refused)
        assert isinstance(made, Plan)
        return self.by_views.put(key, made)

    def shuffle_b(self, b: Any, m: int, dtype_c: str, layout: str | None, fields: dict[str, Any]) -> ShuffledB:
        """See :meth:`Dispatcher.shuffle_b`."""
        view, memory = operand(b, "b"), self._core.device.memory
        if view.device not in ("cpu", memory):
            raise ArrayError(f"b is on {view.device}; allowed by this dispatcher: {memory}, or cpu")
        if view.batch is not None or view.b_format:
            raise ArrayError("b is a batch, or shuffled already; allowed: one matrix as it is")
        return shuffle(self._core, view, m, dtype_c, layout, fields)


def _copy(target: Any, source: Any) -> None:
    if hasattr(target, "copy_"):  # torch
        target.copy_(source)
    elif hasattr(target, "__cuda_array_interface__"):  # CuPy, which copies on the current device
        with target.device:
            target[...] = source
    else:
        target[...] = source
