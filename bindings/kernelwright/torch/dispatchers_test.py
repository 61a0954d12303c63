from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import torch
from kernelwright.dispatch import Dispatcher, KernelwrightError
from kernelwright.torch import DispatcherNotFoundError, dispatchers, forget, gemm, use
from kernelwright.torch.testdata import mocked


@pytest.fixture(autouse=True)
def nothing_in_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dispatchers, "_in_use", {})
    yield


def test_one_dispatcher_serves_a_device() -> None:
    dispatcher = mocked.dispatcher()
    use(dispatcher)
    assert dispatchers.find("", torch.device("cpu")) is dispatcher
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    torch.testing.assert_close(gemm(a, b), a @ b)
    forget("cpu")
    with pytest.raises(DispatcherNotFoundError, match="no dispatcher is in use for cpu; in use: none; call kernelwr"):
        gemm(a, b)


def test_named_dispatchers_stand_beside_it() -> None:
    use(mocked.dispatcher())
    other = Dispatcher(mocked.dispatcher().libraries, selection="first_fit")
    use(other, "first")
    assert dispatchers.find("first", torch.device("cpu")) is other
    assert dispatchers.find("", torch.device("cpu")) is mocked.dispatcher()
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    torch.testing.assert_close(gemm(a, b, dispatcher="first"), a @ b)
    with pytest.raises(DispatcherNotFoundError) as error:
        gemm(a, b, dispatcher="frist")
    wanted = "no dispatcher 'frist' is in use for cpu; in use: 'first' for cpu, cpu; call .*device='cpu'.,? 'frist'.$"
    assert re.search(wanted, str(error.value)) and isinstance(error.value, KernelwrightError | LookupError)
    forget("cpu", "first")
    assert dispatchers.find("", torch.device("cpu")) is mocked.dispatcher()
    with pytest.raises(DispatcherNotFoundError):
        forget("cpu", "first")


def test_the_last_one_counts() -> None:
    use(mocked.dispatcher())
    other = Dispatcher(mocked.dispatcher().libraries)
    use(other)
    assert dispatchers.find("", torch.device("cpu")) is other


@pytest.mark.parametrize("hip, place", [(None, "cuda:1"), ("7.0", "hip:1")])
def test_devices_have_the_names_of_dispatchers(monkeypatch: pytest.MonkeyPatch, hip: str | None, place: str) -> None:
    monkeypatch.setattr(torch.version, "hip", hip)
    with pytest.raises(DispatcherNotFoundError, match=f"is in use for {place}; .*device='{place}'"):
        dispatchers.find("", torch.device("cuda", 1))
    with pytest.raises(DispatcherNotFoundError, match=f"is in use for {place[:-1]}0;"):
        dispatchers.find("", torch.device("cuda"))


def test_simulated_devices_serve_tensors_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Simulated:
        device = type("Device", (), {"memory": "cpu"})

    one: Any = Simulated()
    use(one)
    assert dispatchers.find("", torch.device("cpu")) is one
