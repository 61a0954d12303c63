"""Plans of attention, as users call them."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.plan import BoundPlan, NativePlan, OperationPlan
from kernelwright.dispatch.operations.attention.binder import AppendBinder, AttentionBinder
from kernelwright.dispatch.operations.attention.operand import NAMES
from kernelwright.dispatch.operations.attention.problem import AppendProblem, AttentionProblem
from kernelwright.files.proposals import closest


class _NamedOperands:
    """Operands by name, in launch order."""

    __slots__ = ("_names",)

    def __init__(self, kind: str) -> None:
        self._names = NAMES[kind]

    def __call__(self, given: dict[str, Any]) -> tuple[Any, ...]:
        unknown = [name for name in given if name not in self._names]
        if unknown:
            hint = closest(unknown[0], self._names)
            raise ArrayError(f"operand {unknown[0]!r} is unknown{hint}; allowed: {', '.join(self._names)}")
        return tuple(given.get(name) for name in self._names)


class AttentionPlan(OperationPlan[AttentionProblem]):
    """Attention, or its gradients, with the kernels of its stages. Threads may share a plan.

    ``plan(q=q, k=k, v=v, o=o, …)`` takes NumPy arrays, torch tensors, … of exactly the problem's shapes, dtypes and
    strides, or addresses as integers, which are checked only for null. Operands are passed by name, each only if the
    problem has it:

    - forward: ``q``, ``k``, ``v``, ``bias`` (elementwise, or slopes in fp32), ``sinks`` (fp32, one for each head);
      ``cu_seqlens_q``, ``cu_seqlens_k`` (batch + 1), ``seqlens_k`` (batch), ``page_table``, ``page_indptr``,
      ``last_page_lengths``, all int32; ``descale_q``, ``descale_k``, ``descale_v``, ``scale_o`` (fp32); results ``o``,
      ``lse`` (fp32, requests x heads x queries, in group mode heads x queries), ``random_bytes`` (int8, rows of LSE by
      keys).
    - backward: ``q``, ``k``, ``v``, ``o``, ``do``, ``lse``, ``bias``, lengths; results ``dq``, ``dk``, ``dv``,
      ``dbias``.

    A launch uses all operands at once: results share memory with no other operand.
    """

    __slots__ = ("_order",)

    def __init__(self, problem: AttentionProblem, made: NativePlan) -> None:
        """Use :meth:`Dispatcher.plan` instead."""
        super().__init__(problem, made, AttentionBinder(problem, made.device.memory))
        self._order = _NamedOperands(problem.direction)

    def __call__(
        self,
        *,
        seed: int = 0,
        offset: int = 0,
        stream: int | None = None,
        workspace: int | None = None,
        **operands: Any,
    ) -> Any:
        """Launch and return ``o``, or ``(dq, dk, dv)``.

        :param seed: dropout seed, 64 bits; ``offset``, 64 bits too, is the position in the seed's sequence. Forward and
            backward with the same numbers drop the same probabilities.
        :param stream: a ``cudaStream_t`` or ``hipStream_t`` as an integer; by default the operands' current stream.
        :param workspace: address of ``workspace_bytes`` bytes, aligned to 256, as for :class:`Plan`.
        :raises ArrayError: before the launch, for arrays that do not fit.
        :raises LaunchError: if a kernel or its runtime fails.
        """
        self.seeded(seed, offset)
        self.launch(self._order(operands), stream, workspace)
        return self._results(operands)

    def seeded(self, seed: int, offset: int) -> None:
        """Have launches of this thread use this seed and offset, if the problem has dropout."""
        if self.problem.dropout_p:
            args = self._new_state().args
            args.seed, args.offset = (self._number(*each) for each in (("seed", seed), ("offset", offset)))

    def bind(self, *, seed: int = 0, offset: int = 0, stream: int | None = None, **operands: Any) -> BoundPlan:
        """Bind the memory too, for the shortest call. The result keeps the arrays alive; one thread at a time."""
        numbers = {"seed": self._number("seed", seed), "offset": self._number("offset", offset)}
        return self.bound(self._order(operands), self._results(operands), stream, numbers)

    def _results(self, operands: dict[str, Any]) -> Any:
        if self.problem.direction == "forward":
            return operands.get("o")
        return operands.get("dq"), operands.get("dk"), operands.get("dv")

    @staticmethod
    def _number(name: str, value: Any) -> int:
        if not hasattr(value, "__index__") or not 0 <= value.__index__() < 1 << 64:
            raise ArrayError(f"{name} is {value!r}; allowed: an integer from 0 to 2**64 - 1")
        return int(value.__index__())


class AppendPlan(OperationPlan[AppendProblem]):
    """An append of keys to a cache, with its kernel. Threads may share a plan.

    ``plan(k=k, v=v, k_cache=…, v_cache=…, seqlens_k=…)`` writes the cache; with ``cos`` and ``sin`` if the problem has
    a rotary embedding, ``q`` and ``q_out`` (which may be ``q``) if it rotates Q, and ``page_table`` if the cache is
    paged.
    """

    __slots__ = ("_order",)

    def __init__(self, problem: AppendProblem, made: NativePlan) -> None:
        """Use :meth:`Dispatcher.plan` instead."""
        super().__init__(problem, made, AppendBinder(problem, made.device.memory))
        self._order = _NamedOperands("append")

    def __call__(self, *, stream: int | None = None, workspace: int | None = None, **operands: Any) -> Any:
        """Launch and return ``q_out``, or None if Q is not rotated.

        Parameters and errors are those of :class:`AttentionPlan`.
        """
        self.launch(self._order(operands), stream, workspace)
        return operands.get("q_out")

    def bind(self, *, stream: int | None = None, **operands: Any) -> BoundPlan:
        """Bind the memory too, for the shortest call. The result keeps the arrays alive; one thread at a time."""
        return self.bound(self._order(operands), operands.get("q_out"), stream)
