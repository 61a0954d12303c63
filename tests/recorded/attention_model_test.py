"""The generator's time model of attention is the dispatcher's: the same kernels serve each stage, in the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.time_model.model import APPEND, AttentionTimeModel
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.dispatch import AppendProblem, AttentionProblem, Dispatcher, KernelLibrary
from kernelwright.dispatch.core.explanation import StageExplanation
from kernelwright.dispatch.recording.trace import entry
from kernelwright.dispatch.testdata import mocks
from recorded.stand_in import stand_in

MODEL = AttentionTimeModel()
CORES = 2
SHIPPED = "x86_64_v3"  # of CPUs the shipped library: what C++ templates add to its traits is compared too
SETS = {
    "sm_90a": ("attention:release", "attention:ck_default"),
    "gfx942": ("attention:essential", "attention:ck_default"),
}
DEVICES = {"sm_90a": "cuda:0", "gfx942": "sim:gfx942"}


def shipped() -> tuple[Dispatcher, dict[str, Kernel]]:
    folder = os.environ.get("KERNELWRIGHT_ATTENTION") or files("attention") / "cpu_attention" / SHIPPED
    library = KernelLibrary.load(folder)
    dispatcher = Dispatcher(library)
    dispatcher.set_num_threads(CORES)
    kernels = [parse_kernel(dict(one.spec), load(SHIPPED)) for one in library.kernels]
    return dispatcher, {one.identity: one for one in kernels}


@pytest.fixture(scope="module", params=[*SETS, SHIPPED])
def compared(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Dispatcher, dict[str, Kernel]]:
    mocks.native_library()
    if request.param == SHIPPED:
        return shipped()
    written, every = (expand_set(name, load(request.param)).kernels for name in SETS[request.param])
    kernels = dict.fromkeys([*written, *every[:: len(every) // 30]])
    library = stand_in([*kernels], tmp_path_factory.mktemp(request.param))
    return Dispatcher(library, device=DEVICES[request.param]), {one.identity: one for one in kernels}


@st.composite
def problems(draw: st.DrawFn) -> AttentionProblem | AppendProblem:
    batch, heads, shared = draw(st.integers(1, 8)), draw(st.sampled_from([1, 2, 8])), draw(st.sampled_from([1, 4]))
    hdim, dtype = draw(st.sampled_from([64, 128, 256])), draw(st.sampled_from(["bf16", "fp16", "fp32"]))
    if draw(st.integers(0, 5)) == 0:
        rope = draw(st.sampled_from(["none", "half"]))
        turned = {"rope": rope, "rotary_dim": hdim, "rotary_places": 4096} if rope != "none" else {}
        return AppendProblem(batch, heads, draw(st.integers(1, 64)), hdim, 4096, dtype=dtype, **turned)
    direction, flag = draw(st.sampled_from(["forward", "forward", "backward"])), st.booleans()
    q, k = draw(st.sampled_from([1, 17, 128, 1000, 4096])), draw(st.sampled_from([1, 63, 512, 4096, 32768]))
    mask = draw(st.sampled_from(["none", "none", "top_left", "bottom_right"]))
    fields: dict[str, Any] = {"mask": mask, "window": draw(st.sampled_from([None, (128, 0), (-1, 3)]))}
    fields = {} if mask == "none" else fields
    if direction == "forward":
        fields |= {"lse": draw(flag), "num_splits": draw(st.sampled_from([0, 0, 1, 6]))}
    else:
        fields |= {"deterministic": draw(flag)}
    if draw(st.integers(0, 3)) == 0:
        totals = {"total_q": max(q, batch * q // 2), "total_k": max(k, batch * k // 2)}
        fields |= {"group": True, **totals}
    elif direction == "forward" and draw(st.integers(0, 2)) == 0:
        row = -(-k // 128)
        fields |= {"page_table": "block", "pages": batch * row, "page_size": 128, "page_table_stride": row}
        fields |= {"kv_lengths": True}
    return AttentionProblem(direction, batch, heads * shared, heads, q, k, hdim, dtype=dtype, **fields)


def stages(
    problem: AttentionProblem | AppendProblem, explained: tuple[StageExplanation, ...], kernels: dict[str, Kernel]
) -> Iterator[tuple[StageExplanation, Any]]:
    """What the dispatcher says of each stage, and the stage as the model describes it."""
    arch = next(iter(kernels.values())).arch
    whole = MODEL.read(entry(problem, arch).problem, APPEND if isinstance(problem, AppendProblem) else "attention")
    main = 1 if getattr(problem, "direction", "") == "backward" else 0
    if main < len(explained):
        yield explained[main], whole
    if len(explained) > 1 and (chosen := explained[main].chosen) is not None:
        candidates = MODEL.candidates(kernels[chosen.identity], whole, load(arch), units_of(kernels[chosen.identity]))
        further = max(candidates, key=lambda one: len(one.further)).further
        others = [*explained[:main], *explained[main + 1 :]]
        for said, stage in zip(others, further, strict=True):
            if "num_splits" not in said.problem or said.problem["num_splits"] == getattr(stage, "num_splits", 1):
                yield said, stage


def units_of(kernel: Kernel) -> int | None:
    return CORES if kernel.arch == SHIPPED else None


@settings(deadline=None, max_examples=60)  # other builds share the machine
@given(problem=problems())
def test_the_generator_predicts_what_the_dispatcher_does(
    compared: tuple[Dispatcher, dict[str, Kernel]], problem: AttentionProblem | AppendProblem
) -> None:
    dispatcher, kernels = compared
    for said, stage in stages(problem, dispatcher.explain(problem).stages, kernels):
        for ranked in said.kernels:
            kernel = kernels[ranked.identity]
            candidates = MODEL.candidates(kernel, stage, load(kernel.arch), units_of(kernel))
            us = min((one.microseconds for one in candidates), default=None)
            if ranked.estimate is None:
                assert us is None, (ranked.name, ranked.reason)
            elif us is not None or kernel.arch == SHIPPED:  # the stand-ins lack conditions of memory
                assert us == pytest.approx(ranked.estimate.total_us, rel=1e-9, abs=5.1e-4), ranked.name
