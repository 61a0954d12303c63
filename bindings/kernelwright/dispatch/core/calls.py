"""Python functions without arguments that launch a plan with one argument struct.

A ctypes call converts its arguments and always releases the interpreter lock, which takes longer than a small product.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import Structure, c_void_p
from typing import Any

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import ArrayError


def native_call(
    handle: c_void_p,
    launch: native.Launch,
    args: Structure,
    result: object,
    keep_interpreter: bool,
    keep: object,
) -> Callable[[], Any]:
    """A builtin that launches the plan ``handle`` with ``launch`` and ``args`` and returns ``result``, or raises.

    ``keep_interpreter`` holds the interpreter lock meanwhile. The builtin owns the structs and ``keep``. One thread
    at a time may call it.
    """
    assert handle.value is not None
    where, what = ctypes.addressof(launch), ctypes.addressof(args)
    owned = (launch, args, keep)
    return native.extension().bound_call(handle.value, where, what, keep_interpreter, result, _check, owned)


def foreign_call(
    run: Callable[[Any, Any, Any], int], handle: c_void_p, launch: native.Launch, args: Structure, result: object,
    keep: object,
) -> Callable[[], Any]:  # fmt: skip
    """:func:`native_call` through ``run(handle, launch, args)``, for launches that need work before and after them."""
    where, what = native.byref(launch), native.byref(args)

    def call(_keep: object = keep) -> Any:
        _check(run(handle, where, what))
        return result

    return call


def _check(status: int) -> None:
    native.check(status, ArrayError)
