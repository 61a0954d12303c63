"""Launches of a plan with one argument struct, as Python functions without arguments.

A ctypes call converts its arguments and always releases the interpreter lock, which takes longer than a small product.
So the native dispatcher has a function of CPython's own calling convention, and each launch gets a builtin made of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import PYFUNCTYPE, Structure, c_char_p, c_int, c_int32, c_uint32, c_void_p, py_object
from typing import Any

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import ArrayError

# In the order of kw_python_functions.
_FUNCTIONS = (
    "PyTuple_GetItem",
    "PyLong_AsVoidPtr",
    "Py_IncRef",
    "PyObject_CallObject",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
_METH_NOARGS = 4


class _BoundCall(Structure):
    """``kw_bound_call``."""

    _fields_ = [
        *[(name, c_void_p) for name in ("plan", "launch", "args", "result", "failed")],
        ("status", c_int32),
        ("keep_interpreter", c_uint32),
    ]


class _MethodDef(Structure):
    """``PyMethodDef``."""

    _fields_ = [("name", c_char_p), ("method", c_void_p), ("flags", c_int), ("doc", c_char_p)]


def native_call(
    handle: c_void_p,
    launch: native.Launch,
    args: Structure,
    result: object,
    keep_interpreter: bool,
    keep: object,
) -> Callable[[], Any]:
    """A builtin that launches the plan ``handle`` as ``launch`` and ``args`` say and returns ``result``, or raises.

    ``keep_interpreter`` holds the interpreter lock meanwhile. The builtin owns the structs and ``keep``. One thread
    at a time may call it.
    """
    where, what = ctypes.addressof(launch), ctypes.addressof(args)
    call = _BoundCall(handle.value, where, what, id(result), None, 0, keep_interpreter)

    def failed() -> None:
        native.check(call.status, ArrayError)

    call.failed = id(failed)
    method, new_builtin = _builtins()
    owned = (ctypes.addressof(call), call, launch, args, result, failed, keep)
    made: Callable[[], Any] = new_builtin(ctypes.addressof(method), owned, None)
    return made


def foreign_call(
    run: Callable[[Any, Any, Any], int], handle: c_void_p, launch: native.Launch, args: Structure, result: object,
    keep: object,
) -> Callable[[], Any]:  # fmt: skip
    """The same through ``run(handle, launch, args)``, for launches that need work before and after them."""
    where, what = native.byref(launch), native.byref(args)

    def call(_keep: object = keep) -> Any:
        native.check(run(handle, where, what), ArrayError)
        return result

    return call


_made: dict[str, tuple[_MethodDef, Any]] = {}


def _builtins() -> tuple[_MethodDef, Any]:
    """The method definition that all builtins refer to, and the function that makes them; both live until exit.

    Where several threads make them at once, all get those of the first: a builtin does not keep its definition alive.
    """
    found = _made.get("builtins")
    return _made.setdefault("builtins", _new_builtins()) if found is None else found


def _new_builtins() -> tuple[_MethodDef, Any]:
    library = native.library()
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value for name in _FUNCTIONS]
    library.kw_python_use((c_void_p * len(addresses))(*addresses))
    method = ctypes.cast(library.kw_python_call, c_void_p).value
    # A prototype of our own: pythonapi's functions are one object for all of the process.
    new_builtin = PYFUNCTYPE(py_object, c_void_p, py_object, c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))
    return _MethodDef(b"launch", method, _METH_NOARGS, b"Run and return out."), new_builtin
