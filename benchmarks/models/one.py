"""The works of one model, in every mode: interleaved times of torch and ours, outputs against the model in fp32."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator
from typing import Any

import torch
from modes import Call, call_of, error, gradients, in_mode, interleaved
from ratios import ratios, spread
from zoo import Model, Work

import kernelwright.torch as ours

ROUND_S = 0.03  # seconds of each call per round


def measure(described: Model, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each work and mode."""
    dtype = getattr(torch, given.dtype)
    model = described.make(given.device, dtype)
    adopted = copy.deepcopy(model)
    ours.adopt(adopted, channels_last=described.inputs != "text")
    if described.inputs == "images":
        model.to(memory_format=torch.channels_last)
    for work in described.works:
        if given.works and work.kind not in given.works:
            continue
        for mode in given.modes:
            if mode == "graph" and (work.kind == "step" or given.device == "cpu"):
                continue
            yield {"work": str(work), "mode": mode, **_row(described, work, mode, (model, adopted), given)}
            torch.cuda.empty_cache() if given.device != "cpu" else None
            torch._dynamo.reset()


def _row(described: Model, work: Work, mode: str, models: tuple[Any, Any], given: argparse.Namespace) -> dict[str, Any]:
    dtype = getattr(torch, given.dtype)
    ours.reset_report()
    with torch.set_grad_enabled(work.kind == "step"):
        calls: dict[str, Call] = {}
        for name, model in zip(("torch", "kernelwright"), models, strict=True):
            try:
                calls[name] = in_mode(mode, model, described, work, given.device, dtype)
                calls[name]()
            except Exception as refused:
                return {"state": f"{name}: {type(refused).__name__}", "reason": str(refused)[:500]}
        errors = _errors(described, work, calls, models, given.device)
        row: dict[str, Any] = {"errors": errors, **_shares()}
        if not errors["kernelwright"] <= 2 * errors["torch"] + 1e-3:
            return {**row, "state": "unequal"}
        if mode == "compiled":
            calls["torch eager"] = call_of(models[0], described, work, given.device, dtype)
        ours.reset_report()
        times = interleaved(calls, given.rounds, given.device, ROUND_S)
        row["host_us"] = _shares()["host_us"]  # without the first calls
    best = min(set(times) - {"kernelwright"}, key=lambda name: sorted(times[name])[len(times[name]) // 2])
    milliseconds = {name: spread([1e3 * one for one in values]) for name, values in times.items()}
    return {**row, "ms": milliseconds, "ratio": spread(ratios(times[best], times["kernelwright"]))}


def _errors(
    described: Model, work: Work, calls: dict[str, Call], models: tuple[Any, Any], device: str
) -> dict[str, float]:
    """Relative errors against the same weights in fp32: of logits or, for a step, of all gradients together."""
    wide = copy.deepcopy(models[0]).float()
    allowed = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    result = call_of(wide, described, work, device, torch.float32)()
    expected = gradients(wide) if work.kind == "step" else [result]
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = allowed
    del wide
    errors = {}
    for (name, call), model in zip(calls.items(), models, strict=True):
        result = call()
        errors[name] = error(gradients(model) if work.kind == "step" else [result], expected)
    return errors


def _shares() -> dict[str, Any]:
    """Number of calls of each operator computed by kernels, in total and on the native road, their time on the host,
    and why the others were not."""
    report = ours.report()
    calls = {one.operator: [one.ours, one.ours + one.torchs, one.native] for one in report.operators}
    host_us = {one.operator: round(1e6 * one.ours_s / max(one.ours, 1), 1) for one in report.operators}
    torchs = [f"{one.calls} {one.operator}: {one.message}"[:200] for one in report.unserved]
    return {"calls (ours, all, native)": calls, "host_us": host_us, "torchs": torchs}
