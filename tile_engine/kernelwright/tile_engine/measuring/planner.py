"""The child process that loads a library for the engine and plans: it reports the dispatcher's choices.

A library's constructors and its ``plan`` are foreign code. It prints one JSON line per event: ``{"loaded": true}``,
then for each problem ``{"problem": INDEX, "selected": [IDENTITY, …], "ranks": {IDENTITY: RANK}}``, or ``{"error": TYPE,
"text": MESSAGE}``.
"""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch import Device, Dispatcher, KernelLibrary, KernelwrightError, NoKernelError
from kernelwright.tile_engine.measuring.worker import conversation
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.registry import measurable


def main() -> None:
    """Read the request, load, plan, exit."""
    request, say = conversation()
    try:
        dispatcher = Dispatcher(KernelLibrary.load(request["library"]), device=Device(request["device"]))
        operation = measurable(request["operation"])
        say({"loaded": True})
        for index, record in request["records"]:
            say({"problem": index, **_said(dispatcher, operation, record)})
    except (KernelwrightError, ValueError) as error:
        say({"error": type(error).__name__, "text": str(error)})


def _said(dispatcher: Dispatcher, operation: Measurable, record: Record) -> dict[str, Any]:
    problem = operation.problem(record)
    try:
        selected = {stage.kernel.identity for stage in dispatcher.plan(problem).stages}
    except NoKernelError:
        return {"selected": [], "ranks": {}}
    ranked = (one for stage in dispatcher.explain(problem).stages for one in stage.kernels)
    return {
        "selected": sorted(selected),
        "ranks": {one.identity: one.rank for one in ranked if one.rank is not None},
    }


if __name__ == "__main__":
    main()
