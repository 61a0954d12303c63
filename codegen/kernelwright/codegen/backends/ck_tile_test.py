from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.ck_tile import CkTileBackend
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.attention.ck_tile import takes_stock_headers
from kernelwright.codegen.operations.attention.spec import attention_spec
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.toolchains.hip import LEAN_INCLUDE, HipToolchain
from kernelwright.codegen.toolchains.host import HostToolchain

HOST = HostToolchain.zig()
WHEEL, STOCK = (CkTileBackend(hip, HOST) for hip in (HipToolchain.wheel(), HipToolchain.stock()))
ROCM = CkTileBackend(HipToolchain.rocm("/opt/rocm", "x"), HOST)


def kernels(name: str, arch: str) -> tuple[Kernel, ...]:
    return tuple(expand_set(name, load(arch)).kernels)


def compile_of(kernel: Kernel, backend: CkTileBackend) -> tuple[str, ...]:
    return backend.kernel_actions(kernel, load(kernel.arch), f"{kernel.arch}/a.hpp").actions[0].argv


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1201"])
def test_gradients_of_attention_on_cdna_take_the_headers_as_they_are(arch: str) -> None:
    for kernel in kernels("attention:essential", arch):
        stock = arch != "gfx1201" and "bwd_dq_dk_dv" in kernel.name
        assert operation("attention").on_backend("ck_tile").takes_stock_headers(kernel, load(kernel.arch)) == stock
        assert (LEAN_INCLUDE in compile_of(kernel, WHEEL)) != stock
        assert (compile_of(kernel, WHEEL) == compile_of(kernel, STOCK)) == stock


def test_dropout_on_gfx1201_does_too() -> None:
    forward = [one for one in kernels("attention:pytorch", "gfx1201") if "_fmha_fwd_" in f"_{one.name}"]
    assert {takes_stock_headers(one, load(one.arch)) for one in forward} == {False, True}
    assert all(takes_stock_headers(one, load(one.arch)) == attention_spec(one).dropout for one in forward)


def test_other_operations_take_the_rewritten_headers() -> None:
    for kernel in (*kernels("gemm:essential", "gfx942"), *kernels("convolution:essential", "gfx942")):
        assert LEAN_INCLUDE in compile_of(kernel, WHEEL)


def test_another_compiler_stays_what_it_is() -> None:
    arch = load("gfx942")
    gradients = next(kernel for kernel in kernels("attention:essential", "gfx942") if takes_stock_headers(kernel, arch))
    assert compile_of(gradients, ROCM)[0] == "/opt/rocm/llvm/bin/clang++"
    editors = HipToolchain.wheel().for_editor()
    assert editors.with_stock_headers() == replace(HipToolchain.stock(), id="wheel", clang=("clang++",))


def test_such_kernels_are_not_compiled_together_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    some = kernels("gemm:essential", "gfx942")
    headers = [f"gfx942/{kernel.name}.hpp" for kernel in some]
    assert WHEEL.join(some, load("gfx942"), headers) is not None
    part = operation("gemm").on_backend("ck_tile")
    changed = replace(part, takes_stock_headers=lambda kernel, arch: kernel == some[1])
    monkeypatch.setattr(type(operation("gemm")), "on_backend", lambda self, backend: changed)
    assert WHEEL.join(some, load("gfx942"), headers) is None
