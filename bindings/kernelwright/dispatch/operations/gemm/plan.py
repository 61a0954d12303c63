"""Plans of GEMM problems, as users call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.plan import BoundPlan, NativePlan, OperationPlan
from kernelwright.dispatch.operations.gemm.binder import GemmBinder
from kernelwright.dispatch.operations.gemm.grouped_binder import GroupedBinder
from kernelwright.dispatch.operations.gemm.shuffle import shuffled_format
from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.problem import GemmProblem


class Plan(OperationPlan[GemmProblem]):
    """A GEMM problem with its kernel. Threads may share a plan.

    ``plan(a, b, out=d)`` takes NumPy arrays, torch tensors, … of exactly the problem's shapes, dtypes and strides.
    ``plan(a_address, b_address, out=d_address)`` takes addresses as integers and checks for null. On ``cuda:N``, the
    first such call of each thread, and every :meth:`bind`, also refuse addresses in host memory (pinned memory too) and
    on other devices; later calls do not query the driver again, and with ``KERNELWRIGHT_ADDRESS_CHECK=off`` none does.
    On AMD GPUs addresses are not looked up. On a GPU the launch is asynchronous, on ``stream``, or on the current
    stream of the operands' array libraries: libraries with different current streams are refused. Addresses alone go to
    the default stream.

    :ivar split_k: number of slices of k that are computed separately.
    """

    __slots__ = ("split_k",)

    def __init__(self, problem: GemmProblem, made: NativePlan) -> None:
        """Use :meth:`Dispatcher.plan` instead."""
        shuffled_bytes = shuffled_format(made.owner, problem)[1] if problem.b_format else None
        super().__init__(problem, made, GemmBinder(problem, made.device.memory, shuffled_bytes))
        self.split_k = int(dict(choice.split("=") for choice in made.choices.split())["split_k"])

    def __call__(
        self, a: Any, b: Any, c: Any = None, out: Any = None, *, ds: Sequence[Any] = (), stream: int | None = None,
        workspace: int | None = None,
    ) -> Any:  # fmt: skip
        """Launch and return ``out``.

        :param a: A (m, k); ``b`` is B (k, n).
        :param c: C (m, n), needed when beta is not 0.
        :param out: the result (m, n); it may be ``c`` but must not share memory with anything else.
        :param ds: one array for each D tensor of the problem.
        :param stream: a ``cudaStream_t`` or ``hipStream_t`` as an integer; the caller makes the operands ready on it.
            By default it is the current stream of the operands' array libraries, which must agree.
        :param workspace: address of ``workspace_bytes`` bytes, aligned to 256, that stay allocated until the stream's
            work is done; by default memory that plans share, or memory of the graph while a CUDA graph is captured.
        :raises ArrayError: before the launch, for arrays that do not fit, and in a capture with arrays other than
            torch's: bind the plan first.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        self.launch((a, b, c, *ds, out) if ds else (a, b, c, out), stream, workspace)
        return out

    def bind(
        self, a: Any, b: Any, c: Any = None, out: Any = None, *, ds: Sequence[Any] = (), stream: int | None = None
    ) -> BoundPlan:
        """Bind the memory too, for the shortest call. The result keeps the arrays alive; one thread at a time.

        If ``out`` is a torch tensor, every call bumps its version, so that ``backward()`` notices the change. A plan
        bound under ``torch.no_grad()`` saves that time and leaves the version unchanged.
        """
        return self.bound((a, b, c, *ds, out), out, stream)


class GroupedPlan(OperationPlan[GroupedGemmProblem]):
    """A grouped GEMM problem with its kernel. Threads may share a plan.

    ``plan(a, b, outs)`` takes lists of NumPy arrays, torch tensors, … of exactly the groups' shapes, dtypes and
    strides. Lists of integers are addresses, checked as :class:`Plan` checks them.
    """

    __slots__ = ()

    def __init__(self, problem: GroupedGemmProblem, made: NativePlan) -> None:
        """Use :meth:`Dispatcher.plan_grouped` instead."""
        super().__init__(problem, made, GroupedBinder(problem, made.device.memory))

    def __call__(
        self, a: Sequence[Any], b: Sequence[Any], outs: Sequence[Any], cs: Sequence[Any] | None = None, *,
        stream: int | None = None, workspace: int | None = None,
    ) -> Sequence[Any]:  # fmt: skip
        """Launch and return ``outs``.

        :param a: A (m, k) of each group; ``b`` holds every B (k, n).
        :param outs: the result (m, n) of each group; ``outs[i]`` may be ``cs[i]``.
        :param cs: C (m, n) of each group, needed when beta is not 0.
        :param stream: a ``cudaStream_t`` or ``hipStream_t`` as an integer; the caller makes the operands ready on it.
            By default it is the current stream of the operands' array libraries, which must agree.
        :param workspace: address of ``workspace_bytes`` bytes, aligned to 256, that stay allocated until the stream's
            work is done; by default memory that plans share, or memory of the graph while a CUDA graph is captured.
        :raises ArrayError: before the launch, for arrays that do not fit, and in a capture with arrays other than
            torch's: bind the plan first.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        count = len(self.problem.groups)
        for name, given in (("a", a), ("b", b), ("out", outs), ("c", cs)):
            if given is not None and len(given) != count:
                raise ArrayError(f"{name} has {len(given)} matrices; allowed: {count}, one per group")
        self.launch((*a, *b, *(cs if cs is not None else (None,) * count), *outs), stream, workspace)
        return outs
