"""Modes of a model's call: eager, captured in a CUDA graph, or compiled; original and adopted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from zoo import Model, Work, decode, inputs

Call = Callable[[], Any]


def call_of(model: Any, described: Model, work: Work, device: str, dtype: torch.dtype) -> Call:
    """The work as a call that returns the compared output: logits or, for a step, the loss (gradients are kept)."""
    if work.kind == "decode":
        return decode(model, work, device)
    given = inputs(described, work, device, dtype)
    if work.kind == "forward":
        last = {"logits_to_keep": 1, "use_cache": False} if described.kind.endswith("CausalLM") else {}
        return lambda: model(**given, **last).logits

    def step() -> torch.Tensor:
        model.zero_grad(set_to_none=True)
        loss = model(**given).loss
        loss.backward()
        return loss.detach()

    return step


def in_mode(mode: str, model: Any, described: Model, work: Work, device: str, dtype: torch.dtype) -> Call:
    """The call "eager", in a "graph" or "compiled". Propagates exceptions of capture and compilation."""
    if mode == "compiled":
        return call_of(torch.compile(model), described, work, device, dtype)
    call = call_of(model, described, work, device, dtype)
    if mode == "eager":
        return call
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay(holds: Call = call) -> Any:  # the arguments that the graph reads live as long as the graph
        graph.replay()
        return result

    return replay


def wait(device: str) -> None:
    """Wait until the device has finished all launches."""
    if device != "cpu":
        torch.cuda.synchronize()


def seconds(call: Call, count: int, device: str) -> float:
    """Seconds per call, over ``count`` calls."""
    wait(device)
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait(device)
    return (time.perf_counter() - start) / count


def interleaved(calls: Mapping[str, Call], rounds: int, device: str, round_s: float) -> dict[str, list[float]]:
    """Seconds of each call in each round, in which every call has its turn."""
    for call in calls.values():
        seconds(call, 3, device)
    counts = {name: max(1, round(round_s / seconds(call, 2, device))) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        names = list(calls) if turn % 2 == 0 else list(reversed(calls))
        for name in names:
            times[name].append(seconds(calls[name], counts[name], device))
    return times


def error(outputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """‖actual - expected‖ / ‖expected‖ in float64, over all tensors together. ValueError if all of them are zero."""
    pairs = [(one.double(), other.double()) for one, other in zip(outputs, expected, strict=True)]
    size = sum(float(other.square().sum()) for _, other in pairs)
    if size == 0:
        raise ValueError("the model computes zeros: nothing would be compared")
    return math.sqrt(sum(float((one - other).square().sum()) for one, other in pairs) / size)


def gradients(model: Any) -> list[torch.Tensor]:
    """The existing gradients of the model's parameters, in parameter order."""
    return [one.grad for one in model.parameters() if one.grad is not None]
