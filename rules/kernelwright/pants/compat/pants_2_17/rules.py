"""Rules that can be called by name, where Pants itself finds requests by type alone."""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"

import inspect
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Iterable, Optional, TypeVar, cast, get_type_hints

from pants.engine.rules import Effect, Get, MultiGet, goal_rule
from pants.engine.rules import rule as typed_rule

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Output = TypeVar("_Output")

__all__ = ["concurrently", "effect", "get", "goal_rule", "implicitly", "rule"]

if TYPE_CHECKING:

    async def concurrently(__calls: Iterable[Coroutine[Any, Any, _Output]]) -> tuple[_Output, ...]:
        """Return the results of several calls, which run concurrently."""
        raise NotImplementedError

else:
    concurrently = MultiGet


def implicitly() -> dict[str, Any]:
    """Return the arguments of a call besides its request: none, since Pants finds everything else itself."""
    return {}


def get(output: type[_Output], request: Optional[type] = None) -> Callable[..., Coroutine[Any, Any, _Output]]:
    """Return a function that asks Pants for an ``output``, given a value of the type ``request``.

    It returns a ``Get`` instead of awaiting it, since ``MultiGet`` takes nothing else. The annotation lets Pants find
    requests inside the function.
    """
    if request is None:

        def ask(**_: Any) -> Get:  # type: ignore[type-arg]
            return Get(output)

        return cast("Callable[..., Coroutine[Any, Any, _Output]]", ask)

    def call(value: Any, **_: Any) -> Get:  # type: ignore[type-arg]
        return Get(output, request, value)

    return cast("Callable[..., Coroutine[Any, Any, _Output]]", call)


def effect(output: type[_Output], request: type) -> Callable[..., Coroutine[Any, Any, _Output]]:
    """The same for effects outside of Pants' graph, such as a process in the foreground."""

    def call(value: Any, **_: Any) -> Effect:  # type: ignore[type-arg]
        return Effect(output, request, value)

    return cast("Callable[..., Coroutine[Any, Any, _Output]]", call)


def rule(**options: Any) -> Callable[[_Function], _Function]:
    """``rule`` as newer versions of Pants have it: the decorated rule is called with its first argument only.

    Pants provides the other arguments. Within a module, a rule must precede the rules that call it.
    """

    def decorate(function: _Function) -> _Function:
        registered = typed_rule(**options)(function)
        hints = get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters), None)
        call: Any = get(hints["return"], None if first is None else hints[first])
        call.rule = registered.rule
        return cast(_Function, call)

    return decorate
