"""The GEMM calls of :class:`kernelwright.dispatch.Dispatcher`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, overload

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.explanation import Explanation
from kernelwright.dispatch.core.native_dispatcher import Methods
from kernelwright.dispatch.core.operation import Problem
from kernelwright.dispatch.operations.gemm.calls import GemmCalls
from kernelwright.dispatch.operations.gemm.grouped_calls import GroupedGemmCalls
from kernelwright.dispatch.operations.gemm.operand import ShuffledB
from kernelwright.dispatch.operations.gemm.plan import GroupedPlan, Plan
from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.options import GemmOptions
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.problems.literals import Activation, DOp, GemmLayout


class GemmMethods(Methods):
    """Products of matrices, single, batched and grouped."""

    _gemm: GemmCalls
    _grouped_gemm: GroupedGemmCalls

    def _begin(self) -> None:
        super()._begin()
        self._gemm = GemmCalls(self._core)
        self._grouped_gemm = GroupedGemmCalls(self._core)

    def gemm(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        out: Any = None,
        *,
        ds: Sequence[Any] = (),
        bias: Any = None,
        d_op: DOp = "add",
        activation: Activation = "none",
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: GemmLayout | None = None,
        split_k: int = 0,
        stream: int | None = None,
    ) -> Any:
        """Compute activation((alpha * a @ b + beta * c) op ds[0] op ds[1] …), copying no operand.

        Strides determine the layouts: a transposed view is a column-major matrix. Arrays of more dimensions hold a
        batch of matrices and have equal batch extents; an ``a`` or ``b`` of two dimensions, or with a batch of 1, is
        shared by all products. Sums of int8 products are int32 and wrap around like NumPy's, which takes a ``k`` above
        131,071.

        :param a: A (m, k).
        :param b: B (k, n), or the result of :meth:`shuffle_b`.
        :param c: C (m, n), needed when ``beta`` is not 0.
        :param out: the result (m, n), allocated when not given.
        :param ds: up to four D tensors of the result's dtype, (m, n), or (n,) or (1, n) for one row shared by all rows.
        :param bias: n values added to every row, like a first element of ``ds``; ``d_op`` must be ``"add"``.
        :param d_op: how D tensors are combined with the product, ``"add"`` or ``"multiply"``.
        :param activation: an activation of :class:`GemmProblem`.
        :param alpha: if 0, CPU kernels read neither ``a`` nor ``b``, as in BLAS, so a NaN in them does not reach the
            result; GPU kernels multiply the product by 0, so it does.
        :param beta: if 0, no kernel reads C.
        :param layout: three letters r or c for a, b and out, which override what their strides suggest.
        :param split_k: number of slices of k; 0 lets the dispatcher choose.
        :param stream: a ``cudaStream_t`` or ``hipStream_t`` as an integer. Results and workspaces are allocated, C is
            copied and the kernel is launched on it; the caller makes the operands ready on it. By default it is the
            current stream of the operands' array libraries, which must agree. While a CUDA graph is captured, torch
            provides a workspace that belongs to the graph; for other arrays bind a plan first.
        :returns: ``out``.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed, and for a capture that needs a
            workspace with arrays other than torch's.
        :raises ProblemError: for an unknown ``d_op``, ``activation`` or ``split_k``.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        return self._gemm.gemm(
            a, b, c, out, ds, bias, d_op, activation, alpha, beta, layout, split_k, stream
        )  # fmt: skip

    def plan_gemm(self, a: Any, b: Any, c: Any = None, out: Any = None, **options: Unpack[GemmOptions]) -> Plan:
        """Return the plan that :meth:`gemm` launches with these arrays; nothing is launched or copied.

        If a matrix of one row or column fits several layouts, the first one that some kernel serves counts. Parameters
        and errors are those of :meth:`gemm`. ``plan_gemm(a, b, out=d).bind(a, b, out=d)()`` owns its workspace, as a
        CUDA graph requires.
        """
        return self._gemm.plan(a, b, c, out, **options)

    def gemm_problem(
        self, a: Any, b: Any, c: Any = None, out: Any = None, **options: Unpack[GemmOptions]
    ) -> GemmProblem:
        """The problem that :meth:`gemm` plans with these arrays; the first of several readings if none is served.

        Parameters and errors are those of :meth:`gemm`.
        """
        return self._gemm.problem(a, b, c, out, **options)

    @overload
    def explain(self, problem: Problem, /) -> Explanation: ...
    @overload
    def explain(
        self, a: Any, b: Any, c: Any = None, out: Any = None, /, **options: Unpack[GemmOptions]
    ) -> Explanation: ...
    def explain(self, problem: Any, *arrays: Any, **options: Unpack[GemmOptions]) -> Explanation:
        """Rank every kernel with its score, or with the reason why it cannot be used. Never raises NoKernelError.

        Given arrays instead of a problem, explains what :meth:`gemm` does with them and the same options. Other
        operations are explained by their problems.
        """
        if arrays:
            try:
                problem = self.gemm_problem(problem, *arrays, **options)
            except ArrayError as error:
                allowed = "explain reads arrays as gemm does; for other operations pass a problem, such as"
                raise ArrayError(f"{error}; {allowed} AttentionProblem(…)") from None
        elif options:
            raise TypeError(f"explain got a problem and {', '.join(options)}; allowed: beside arrays a and b")
        return super().explain(problem)

    def grouped_gemm(
        self,
        a: Sequence[Any],
        b: Sequence[Any],
        outs: Sequence[Any] | None = None,
        cs: Sequence[Any] | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: GemmLayout | None = None,
        stream: int | None = None,
    ) -> list[Any]:
        """Compute alpha * a[i] @ b[i] + beta * cs[i] for every i in one launch.

        Every group has its own sizes; all share dtypes and layouts, which follow from strides as for :meth:`gemm`.

        :param a: A (m, k) of each group.
        :param b: B (k, n) of each group.
        :param outs: the result (m, n) of each group, allocated when not given.
        :param cs: C (m, n) of each group; ``cs[i]`` may be ``outs[i]``.
        :param stream: as for :meth:`gemm`.
        :returns: ``outs``.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        return self._grouped_gemm.grouped_gemm(a, b, outs, cs, alpha, beta, layout, stream)

    def shuffle_b(
        self, b: Any, *, m: int = 1024, dtype_c: str = "", layout: GemmLayout | None = None, **fields: Any
    ) -> ShuffledB:
        """Rearrange B (k, n) into the order of the best kernel with preshuffled B, for :meth:`gemm` and plans.

        B is copied, through the host if it is on a GPU, and transposed if the kernels need the other layout.

        :param m: the expected number of rows of A, which affects the choice of the kernel.
        :param dtype_c: the result's dtype; by default that of :class:`GemmProblem`.
        :param layout: three letters r or c that the kernel's layout must have.
        :param fields: fields of :class:`GemmProblem` that the products will have (``activation``, ``num_d``, …).
        :raises ArrayError: for a batch, or an array that cannot be read.
        :raises NoKernelError: if no kernel reads preshuffled B.
        """
        return self._gemm.shuffle_b(b, m, dtype_c, layout, fields)

    def plan_grouped(self, problem: GroupedGemmProblem) -> GroupedPlan:
        """The plan for products of different shapes, as :meth:`Dispatcher.plan` returns it."""
        plan = self._core.plan(problem)
        assert isinstance(plan, GroupedPlan)
        return plan
