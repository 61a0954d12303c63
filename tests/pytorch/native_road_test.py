"""Eager layers take the native road: results, gradients, threads, forks, and whatever must take the Python road."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from kernelwright.dispatch import ArrayError, Dispatcher, NoKernelError, record
from kernelwright.dispatch.tools import doctor
from kernelwright.torch import linear, public, report, reset_report, roads, use
from kernelwright.torch.road import OLDEST, ROAD, SHIM

HEADER = Path(__file__).resolve().parents[2] / "dispatcher_cpp/include/kernelwright/dispatcher/torch/shim.h"


@pytest.fixture(autouse=True)
def counts() -> Iterator[None]:
    reset_report()
    yield


def native() -> int:
    return sum(one.native for one in report().operators if one.operator == "gemm")


def layer(*shape: int, n: int = 48, dtype: torch.dtype = torch.float32) -> tuple[Any, Any, Any]:
    return torch.randn(*shape, dtype=dtype), torch.randn(n, shape[-1], dtype=dtype), torch.randn(n, dtype=dtype)


def test_this_torch_has_the_native_road() -> None:
    assert ROAD.name == "native"
    assert str(report()).startswith("road of eager calls: native")


@pytest.mark.parametrize("shape", [(5, 64), (1, 64), (2, 3, 64), (2, 2, 3, 64)], ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_results_are_those_of_the_python_road(shape: tuple[int, ...], biased: bool) -> None:
    for repeat in range(4):
        x, weight, bias = layer(*shape)
        result = linear(x, weight, bias if biased else None)
        wanted = functional.linear(x, weight, bias if biased else None)
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-4)
        assert result.shape == wanted.shape and result.is_contiguous() and not result.requires_grad
        assert native() == repeat


def test_every_kind_is_told_apart() -> None:
    whole = torch.randn(12, 200)
    weight = torch.randn(48, 64)
    for x in (whole[:, :64], whole[:5, :64], whole[:, :64].contiguous(), whole[::2, :64]):
        for _ in range(2):
            torch.testing.assert_close(linear(x, weight), functional.linear(x, weight), rtol=1e-4, atol=1e-4)
    x = whole[:, :64].contiguous()
    for w in (weight, torch.randn(64, 48).t(), torch.randn(24, 64)):
        for _ in range(2):
            torch.testing.assert_close(linear(x, w), functional.linear(x, w), rtol=1e-4, atol=1e-4)
    assert native() > 0


@pytest.mark.parametrize("needs", ["x", "weight", "bias", "all"])
@pytest.mark.parametrize("shape", [(5, 64), (2, 3, 64)], ids=str)
def test_gradients(needs: str, shape: tuple[int, ...]) -> None:
    given = dict(zip(("x", "weight", "bias"), layer(*shape), strict=True))
    for name, one in given.items():
        one.requires_grad_(needs in (name, "all"))
    linear(*given.values())  # is learned
    result = linear(*given.values())
    assert native() >= 1 and type(result.grad_fn).__name__ == "_LinearBackward"
    result.add_(1.0)  # no view of a function's input
    factor = torch.randn(result.shape)
    required = [one for one in given.values() if one.requires_grad]
    grads = torch.autograd.grad(result, required, factor)
    wanted = torch.autograd.grad(functional.linear(*given.values()), required, factor)
    for one, other in zip(grads, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_second_derivatives() -> None:
    x, weight, _ = layer(3, 64)
    x.requires_grad_(), weight.requires_grad_()
    linear(x, weight)

    def penalty(run: Any) -> Any:
        (first,) = torch.autograd.grad((run(x, weight) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), [x, weight])

    for one, other in zip(penalty(linear), penalty(functional.linear), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-1)
    assert native() >= 1


def test_only_what_a_gradient_needs_is_saved() -> None:
    x, weight, bias = layer(3, 64)
    bias.requires_grad_()
    linear(x, weight, bias)
    saved: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: saved.append(one), lambda one: one):
        linear(x, weight, bias)
    assert native() == 1 and not saved


def test_modes_and_transforms_take_the_python_road() -> None:
    x, weight, _ = layer(5, 64)
    for _ in range(2):
        wanted = linear(x, weight)
    before = native()
    assert before == 1
    with torch.inference_mode():
        torch.testing.assert_close(linear(x, weight), wanted)
    assert native() == before + 1
    vmapped = torch.vmap(lambda one: linear(one, weight))(x)
    torch.testing.assert_close(vmapped, wanted, rtol=1e-4, atol=1e-4)
    _, pulled = torch.func.vjp(lambda one: linear(one, weight), x)
    torch.testing.assert_close(pulled(wanted)[0], wanted @ weight, rtol=1e-4, atol=1e-2)
    with torch._subclasses.FakeTensorMode() as mode:
        assert linear(mode.from_tensor(x), mode.from_tensor(weight)).shape == wanted.shape
    graph = torch.compile(lambda one: linear(one, weight), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(graph(x), wanted, rtol=1e-4, atol=1e-4)
    assert native() == before + 1


def test_autocast_casts() -> None:
    x, weight, _ = layer(5, 64)
    for _ in range(2):
        linear(x, weight)
    with torch.autocast("cpu", torch.bfloat16):
        for one in (x, torch.randn(7, 64)):
            assert linear(one, weight).dtype == torch.bfloat16
    for one in (x, torch.randn(7, 64)):
        for _ in range(2):
            assert linear(one, weight).dtype == torch.float32


def test_errors_are_those_of_the_python_road() -> None:
    x, weight, bias = layer(5, 64)
    for _ in range(2):
        linear(x, weight, bias)
        with pytest.raises(ArrayError, match="k is 64 and 32"):
            linear(x, weight[:, :32])
        with pytest.raises(ArrayError, match="allowed: a torch"):
            linear(x.numpy(), weight)  # type: ignore[arg-type]
        with pytest.raises(ArrayError, match="one dtype for all"):
            linear(x, weight, bias.half())
        with pytest.raises(NoKernelError):
            linear(x.double(), weight.double())


def test_another_dispatcher_is_asked_anew(dispatcher: Dispatcher) -> None:
    x, weight, _ = layer(5, 64)
    for _ in range(3):
        linear(x, weight)
    assert native() == 2
    use(dispatcher)
    linear(x, weight)
    assert native() == 2
    linear(x, weight)
    assert native() == 3


def test_changed_selection_is_asked_anew(dispatcher: Dispatcher) -> None:
    x, weight, _ = layer(5, 64)
    for _ in range(2):
        linear(x, weight)
    plan = dispatcher.plan_gemm(x, weight.t(), out=torch.empty(5, 48))
    dispatcher.keep(plan.problem, plan)
    linear(x, weight)
    assert native() == 1


def test_recorders_count_every_call(tmp_path: Path) -> None:
    x, weight, _ = layer(5, 64)
    for _ in range(2):
        linear(x, weight)
    before = native()
    with record(tmp_path / "trace.json"):
        for _ in range(3):
            linear(x, weight)
    assert native() == before
    assert sum(map(int, re.findall(r'"count": (\d+)', (tmp_path / "trace.json").read_text()))) == 3


def test_threads_launch_while_others_forget() -> None:
    operands = [layer(rows, 64) for rows in range(1, 9)]
    wanted = [functional.linear(*each) for each in operands]
    wrong: list[Any] = []
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            for each, right in zip(operands, wanted, strict=True):
                if not torch.allclose(linear(*each), right, rtol=1e-3, atol=1e-3):
                    wrong.append(each)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        ROAD.forget()
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_children_of_a_fork_launch_and_forget() -> None:
    x, weight, bias = layer(1, 16, n=16)
    wanted = functional.linear(x, weight, bias)
    for _ in range(2):
        linear(x, weight, bias)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            right = [torch.allclose(linear(x, weight, bias), wanted, atol=1e-4) for _ in range(2)]
            ROAD.forget()
            right.append(torch.allclose(linear(x, weight, bias), wanted, atol=1e-4))
            code = 0 if all(right) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_python_road_on_request() -> None:
    program = "from kernelwright.torch import report; print(report().road)"
    for word, shown in (("python", "python: KERNELWRIGHT_TORCH_ROAD=python"), ("native", "native")):
        environment = {**os.environ, "KERNELWRIGHT_TORCH_ROAD": word}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == shown, done.stderr


@pytest.mark.parametrize("road", ["native", "python"])
def test_the_doctor_tells_the_road_of_each_function(road: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_TORCH_ROAD", road)
    reported = doctor.report()["torch"]
    assert list(reported) == list(public.MODULES)
    if road == "native":
        assert reported == roads()
        assert {name for name, one in reported.items() if one != "native"} == {"layer_norm", "rms_norm", "varlen_attn"}
        assert reported["rms_norm"] == "python: rms_norm has no operator in C++"
    else:
        assert set(reported.values()) == {"python: KERNELWRIGHT_TORCH_ROAD=python"}


def test_declarations_are_those_of_this_torch() -> None:
    """Types by position; names of arguments may change."""
    include = Path(torch.__file__).parent / "include/torch/csrc"
    files = (include / "inductor/aoti_torch/c/shim.h", include / "stable/c/shim.h")
    theirs = _flat("\n".join(path.read_text() for path in files))
    ours = _flat(HEADER.read_text())
    declared = re.findall(r"(\w+) \(\*(\w+)\)\((.*?)\);", ours)
    assert [name for _, name, _ in declared][:-1] == list(SHIM)
    for result, name, arguments in declared:
        match = re.search(rf"(\w+)\s+{name}\((.*?)\);", theirs)
        assert match is not None, name
        assert (result, _types(arguments)) == (match[1], _types(match[2])), name
    assert OLDEST == (2, 10) and "0x020a000000000000u" in ours


def _flat(text: str) -> str:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"\s+", " ", text)


def _types(arguments: str) -> list[str]:
    """Without names: the last word of each argument, except of a pointer to a function."""
    flat = re.sub(r"\(\*\w+\)", "(*)", arguments).strip()
    if flat in ("", "void"):
        return []
    split = re.split(r",\s*(?![^()]*\))", flat)
    return [re.sub(r"\s+", " ", re.sub(r"([\s*])\w+$", r"\1", one.strip())).strip() for one in split]
