from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.ck_tile import CkTileBackend
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.lean import unequal
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.toolchains.hip import LEAN_INCLUDE, HipToolchain
from kernelwright.codegen.toolchains.host import HostToolchain

ARCH = load("gfx942")
KERNELS: tuple[Kernel, ...] = tuple(expand_set("essential", ARCH).kernels)
BACKEND = CkTileBackend(HipToolchain.wheel(), HostToolchain.zig())


def compile_of(kernel: Kernel, backend: CkTileBackend = BACKEND) -> tuple[str, ...]:
    return backend.kernel_actions(kernel, "gfx942/a.hpp").actions[0].argv


def test_every_listed_kernel_is_one_that_is_shipped_and_has_its_name() -> None:
    shipped = {
        kernel.identity: f"{arch} {kernel.name}"
        for arch in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
        for kernel in expand_set("fmha_essential", load(arch)).kernels
    }
    assert {identity: shipped.get(identity) for identity in unequal.UNEQUAL} == unequal.UNEQUAL


def test_a_listed_kernel_is_compiled_with_the_headers_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = KERNELS[0]
    assert LEAN_INCLUDE in compile_of(kernel)
    monkeypatch.setitem(unequal.UNEQUAL, kernel.identity, kernel.name)
    stock = CkTileBackend(HipToolchain.stock(), HostToolchain.zig())
    assert compile_of(kernel) == compile_of(kernel, stock)
    rocm = CkTileBackend(HipToolchain.rocm("/opt/rocm", "x"), HostToolchain.zig())
    monkeypatch.delitem(unequal.UNEQUAL, kernel.identity)
    before = compile_of(kernel, rocm)
    monkeypatch.setitem(unequal.UNEQUAL, kernel.identity, kernel.name)
    assert compile_of(kernel, rocm) == before


def test_an_editor_keeps_its_compiler() -> None:
    assert HipToolchain.wheel().for_editor().with_stock_headers() == replace(
        HipToolchain.stock(), id="wheel", clang=("clang++",)
    )


def test_a_listed_kernel_is_not_compiled_together_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = [f"gfx942/{kernel.name}.hpp" for kernel in KERNELS]
    assert BACKEND.join(KERNELS, headers) is not None
    monkeypatch.setitem(unequal.UNEQUAL, KERNELS[1].identity, KERNELS[1].name)
    assert BACKEND.join(KERNELS, headers) is None
