"""A program that prints the modules imported by calls: ``imports_of_calls LIBRARY VARIANTS ATTENTION``.

Everything a call needs is imported with the package: a child forked in the middle of an import waits forever for its
lock.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary, KernelwrightError
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata.mocks import Foreign

imported: list[str] = []


def listen() -> None:
    """Record every module search from now on; Python reports none for a module already imported."""

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import" and arguments[1] is None:  # a file is given if no search, and no lock, is needed
            imported.append(arguments[0])

    sys.addaudithook(heard)


def load_installed_library() -> None:
    """Search for the native library in installed wheels. Raises NativeLibraryError if there is none."""
    given = os.environ.pop("KERNELWRIGHT_LIBRARY", None)
    with contextlib.suppress(KernelwrightError):
        native._load()
    if given is not None:
        os.environ["KERNELWRIGHT_LIBRARY"] = given


def dense(dispatcher: Dispatcher) -> None:
    """Products through every entry point."""
    a, b, out = (np.ones(shape, np.float32) for shape in ((4, 8), (8, 6), (4, 6)))
    dispatcher.gemm(a, b)
    dispatcher.gemm(a, b, out=out)
    dispatcher.gemm(a, b, ds=[out], activation="relu")
    dispatcher.gemm(Foreign(a), b, out=out)
    dispatcher.gemm(np.stack([a, a]), np.stack([b, b]))
    dispatcher.grouped_gemm([a, a], [b, b])
    plan = dispatcher.plan(GemmProblem(4, 6, 8, layout="rrr"))
    plan(a, b, out=out)
    plan.bind(a, b, out=out)()
    dispatcher.explain(GemmProblem(4, 6, 8, layout="rrr"))
    dispatcher.gemm(a, dispatcher.shuffle_b(b.T.copy().T, m=4))


def fused(dispatcher: Dispatcher) -> None:
    """Attention, its gradients, and caches."""
    q = np.ones((2, 5, 4, 8), np.float32)
    out, lse = dispatcher.attention(q, q, q, lse=True)
    dispatcher.attention_backward(q, q, q, out, out, lse)
    lengths = np.array([3, 5], np.int32)
    dispatcher.decode(q[:, :1], q, q, seqlens_k=lengths)
    dispatcher.append_kv(q[:, :1].copy(), q[:, :1].copy(), q.copy(), q.copy(), lengths - 1)


def refused(dispatcher: Dispatcher) -> None:
    """Errors of every kind."""
    a = np.ones((4, 8), np.float32)
    bad: list[Callable[[], object]] = [
        lambda: dispatcher.gemm(a, a),
        lambda: dispatcher.gemm(a.astype(np.float64), a.T),
        lambda: dispatcher.gemm(a.astype(np.float16), a.T.astype(np.float16)),
        lambda: dispatcher.gemm("a", a),
        lambda: dispatcher.gemm(np.ma.masked_array(a), a.T),
        lambda: dispatcher.attention(a, a, a),
        lambda: dispatcher.conv_forward(np.ones((1, 5, 5, 4), np.float32), np.ones((4, 3, 3, 4), np.float32)),
    ]
    for call in bad:
        try:
            call()
        except KernelwrightError:
            continue
        raise AssertionError("a call that must be refused was not")


def main(*libraries: str) -> None:
    """Make a dispatcher, then every kind of call; print the imported modules."""
    listen()
    load_installed_library()
    dispatcher = Dispatcher([KernelLibrary.load(path) for path in libraries])
    for calls in (dense, fused, refused):
        calls(dispatcher)
    print(imported)


if __name__ == "__main__":
    main(*sys.argv[1:])
