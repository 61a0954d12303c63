"""What the native road has learned of public functions: numbers of option sets, and calls that cannot be taught."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher, KernelwrightError
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.core.plan import OperationPlan
from kernelwright.torch import inputs
from kernelwright.torch.fallback import decisions
from kernelwright.torch.road import ROAD, number, ordinary

_LIMIT = 4096
records = torch.is_grad_enabled
_Result = TypeVar("_Result")


class Lesson(NamedTuple):
    """The native road's knowledge of a call.

    :ivar results: tensors with the sizes, strides and dtypes of the results that the call allocates.
    :ivar places: byte offsets of the addresses in the plan's argument struct: those of operands, and of results.
    """

    dispatcher: Dispatcher
    plan: OperationPlan[Any]
    results: Sequence[torch.Tensor]
    places: tuple[list[int], list[int]]


class Taught:
    """Kinds of calls of public functions. Threads may share it.

    :ivar kinds: numbers of option sets, for :func:`kernelwright.torch.road.launch`.
    """

    def __init__(self, operator: str, *functions: str) -> None:
        """``operator`` counts the calls; ``functions`` are the public ones."""
        self.operator = operator
        ROAD.functions.update(functions)
        self.kinds: dict[Any, int] = {}
        self._untaught: Cache[Any, bool] = Cache(_LIMIT)  # kinds that need the Python road at each call

    def computed(
        self, operator: Callable[[], _Result], tensors: Sequence[torch.Tensor], option: Hashable,
        lesson: Callable[..., Lesson | None],
    ) -> _Result:  # fmt: skip
        """The result of ``operator()``, of which the road is taught ``lesson(result, *tensors)`` where a kernel ran."""
        decided, generation = decisions.of(self.operator), ROAD.generation
        before = decided.ours
        result = operator()
        if decided.ours != before:
            self.learn(tensors, option, generation, lambda *operands: lesson(result, *operands))
        return result

    def learn(
        self, tensors: Sequence[torch.Tensor], option: Hashable, generation: int, lesson: Callable[..., Lesson | None]
    ) -> None:
        """Teach the native road a call that a kernel has just computed, as ``lesson(*tensors)`` describes.

        :param generation: the road's generation before the call.
        """
        if not ordinary():
            return
        try:
            kind = decisions.kind((*tensors, option, generation), len(tensors))
            if kind is None or self._untaught.get(kind):
                return
            hash(kind)
        except TypeError:  # unhashable options
            return
        with torch.no_grad():
            plain = [one.detach() for one in tensors]
            taught = all(one.numel() > 0 and one.element_size() > 1 for one in plain) and self._teach(
                plain, option, generation, lesson
            )
        if not taught:
            self._untaught.put(kind, True)

    def _teach(
        self, plain: list[torch.Tensor], option: Hashable, generation: int, lesson: Callable[..., Lesson | None]
    ) -> bool:
        """8-bit operands have no gradient, which the Python road refuses; operands without elements have no plan."""
        try:
            with inputs.refusing_copies():
                learnt = lesson(*plain)
        except (inputs.CopyNeededError, KernelwrightError):  # the latter if the counted call was another one
            return False
        if learnt is None or any(one.numel() == 0 for one in learnt.results):
            return False
        numbered = number(self.kinds, option)
        return numbered is not None and ROAD.learn(
            plain, numbered, learnt.results, self.operator, generation, learnt.dispatcher, learnt.plan, learnt.places
        )


def same_memory(read: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> bool:
    """Whether kernels read the operands themselves, or views of them, and no copies."""
    return all(one.data_ptr() == other.data_ptr() for one, other in zip(read, given, strict=True))


def computed(
    decided: decisions.Decisions, ours: Callable[..., Any], torchs: Callable[..., Any], given: tuple[Any, ...],
    tensors: int, learn: Callable[[Any, int], None],
) -> Any:  # fmt: skip
    """Return the result of the Python road; if a kernel computed it, call ``learn(result, generation)``."""
    generation, before = ROAD.generation, decided.ours
    result = decided.call(ours, torchs, given, tensors)
    if decided.ours != before:
        learn(result, generation)
    return result
