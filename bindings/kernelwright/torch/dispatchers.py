"""The dispatchers that operators launch with: one for each device, more of them by name."""

from __future__ import annotations

from collections.abc import Callable

import torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher, KernelwrightError
from kernelwright.dispatch.arrays.trials import try_torch
from kernelwright.dispatch.threads import share_with_torch

try_torch()  # here too: the dispatcher may have been made before torch was imported

_in_use: dict[tuple[str, str], Dispatcher] = {}  # by name and device


_changed: list[Callable[[], None]] = []


class DispatcherNotFoundError(KernelwrightError, LookupError):
    """No dispatcher of this name is in use for the device of the operands.

    :ivar name: the requested name; empty if there was none.
    """

    def __init__(self, message: str, name: str = "") -> None:
        """Append advice to the message."""
        super().__init__(message)
        self.name = name


def on_change(react: Callable[[], None]) -> None:
    """Have ``react`` called whenever the dispatchers in use change."""
    _changed.append(react)


def use(dispatcher: Dispatcher, name: str = "") -> None:
    """Have operators launch with this dispatcher if their operands are on its device.

    This applies to the whole process, in all threads, until another dispatcher replaces it: a backward pass runs in its
    own threads and looks it up again. A compiled function looks it up at each call.

    :param dispatcher: its device determines which tensors it serves; a simulated device serves tensors on the CPU.
    :param name: selects it by an operator's argument ``dispatcher``; the default, empty, serves all other calls.
    """
    if dispatcher.device.memory == "cpu":
        share_with_torch()
    _in_use[name, dispatcher.device.memory] = dispatcher
    _tell()


def forget(device: torch.device | str, name: str = "") -> None:
    """Undo :func:`use` for a device. Raises DispatcherNotFoundError if no such dispatcher is in use."""
    where = torch.device(device)
    find(name, where)
    del _in_use[name, place(where)]
    _tell()


def find(name: str, device: torch.device) -> Dispatcher:
    """The dispatcher in use for tensors on ``device``. Raises DispatcherNotFoundError if there is none."""
    where = place(device)
    dispatcher = _in_use.get((name, where))
    if dispatcher is None:
        raise DispatcherNotFoundError(_advice(name, where), name)
    return dispatcher


def _tell() -> None:
    for react in _changed:
        react()


def serves(device: torch.device) -> bool:
    """Whether a dispatcher without a name is in use for tensors on ``device``."""
    return ("", place(device)) in _in_use


def place(device: torch.device) -> str:
    """The device's name in this project. ROCm builds of torch call their devices cuda."""
    if device.type == "cpu":
        return "cpu"
    kind = "hip" if device.type == "cuda" and torch.version.hip else device.type
    return f"{kind}:{device.index or 0}"


def _advice(name: str, place: str) -> str:
    asked = f"no dispatcher {name!r} is in use for {place}" if name else f"no dispatcher is in use for {place}"
    others = ", ".join(sorted(f"{known!r} for {where}" if known else where for known, where in _in_use))
    more = f", {name!r}" if name else ""
    return (
        f"{asked}; in use: {others or 'none'}; call kernelwright.torch.use(Dispatcher(library, device={place!r}){more})"
    )
