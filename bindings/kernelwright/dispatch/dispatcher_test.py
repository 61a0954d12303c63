from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import (
    AppendProblem,
    ArchMismatchError,
    ArrayError,
    AttentionProblem,
    Candidate,
    ConvProblem,
    Device,
    Dispatcher,
    GemmProblem,
    GroupedGemmProblem,
    KernelEntry,
    KernelLibrary,
    LibraryLoadError,
    LibraryNotFoundError,
    NoKernelError,
    ProblemError,
    RankedValue,
    SelectionError,
)
from kernelwright.dispatch.arrays.view import view
from kernelwright.dispatch.core import native, selection
from kernelwright.dispatch.operations.gemm.operand import operand
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    mocks.native_library()
    return KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("library")))


@pytest.fixture(scope="module")
def dispatcher(library: KernelLibrary) -> Dispatcher:
    return Dispatcher([library])


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_what_is_no_problem_is_refused_by_name(dispatcher: Dispatcher) -> None:
    wrong: Any = 3
    for call in (lambda: dispatcher.plan(wrong), lambda: dispatcher.select(wrong), lambda: dispatcher.explain(wrong)):
        with pytest.raises(ProblemError, match=r"problem is a int; allowed: .*GemmProblem"):
            call()


def test_a_misspelt_selection_gets_a_proposal(library: KernelLibrary) -> None:
    with pytest.raises(SelectionError, match=r"kernel atuo is none of the .* \(did you mean 'auto'\?\)"):
        Dispatcher([library], selection="atuo")


def test_a_fallback_must_make_libraries(library: KernelLibrary) -> None:
    with pytest.raises(TypeError, match=r"fallback is a str; allowed: a kernelwright\.jit\.Registry"):
        Dispatcher(library, fallback="cpu")  # type: ignore[arg-type]


def test_selections(library: KernelLibrary) -> None:
    problem = GemmProblem(300, 64, 128)
    analytic = Dispatcher(library).select(problem)
    assert analytic.kernel.name == "gemm_fp32_rcr_64x64x64_whole"
    assert analytic.reason == "fastest predicted of 3"
    first = Dispatcher(library, selection="first_fit")
    assert first.select(problem).kernel.name == "gemm_fp32_rcr_128x128x64"
    first.set_priority("gemm_fp32_rcr_32x32x32", 1)
    assert first.select(problem).kernel.name == "gemm_fp32_rcr_32x32x32"
    first.set_priority(analytic.kernel, 2)
    assert first.select(problem).kernel is analytic.kernel
    for named in (analytic.kernel.name, analytic.kernel.identity):
        assert Dispatcher(library, selection=named).select(problem).kernel is analytic.kernel
    with pytest.raises(SelectionError, match="kernel fastest is none of the 9"):
        Dispatcher(library, selection="fastest")
    with pytest.raises(SelectionError, match="selection is 3"):
        Dispatcher(library, selection=3)  # type: ignore[arg-type]
    with pytest.raises(SelectionError, match="nope"):
        first.set_priority("nope", 1)
    for wrong in (2**31, 2**32 + 5, -(2**31) - 1, 1.5, "3", None):
        with pytest.raises(SelectionError, match=rf"priority is {wrong!r}; allowed: an integer from -2147483648 to"):
            first.set_priority("gemm_fp32_rcr_64x64x64_whole", wrong)  # type: ignore[arg-type]


def test_models_of_a_library_select_without_being_asked(tmp_path: Path) -> None:
    library = KernelLibrary.load(mocks.write_library(tmp_path, "MOCK_MODEL=KW_HEURISTIC_VERSION"))
    dispatcher, problem = Dispatcher(library), GemmProblem(5, 9, 64)
    selected = dispatcher.select(problem)
    assert (selected.kernel.name, selected.reason) == ("gemm_fp32_rcr_128x128x64", "best of 3 by large_tiles")
    explained = dispatcher.explain(problem)
    assert (explained.selection, explained.ranked_by) == ("auto", "large_tiles")
    assert "gemm fp32 rcr 5x9x64, selection auto, ranked by large_tiles: best of 3 by large_tiles" in str(explained)
    # the model does not rank more than 100 rows
    assert dispatcher.select(GemmProblem(101, 9, 64)).reason == "fastest predicted of 3: ranked by no model"
    assert dispatcher.explain(GemmProblem(101, 9, 64)).ranked_by == "predicted time"
    with pytest.raises(NoKernelError, match=r"serves gemm bf16 .*\(selection auto, ranked by predicted time\): "):
        dispatcher.select(GemmProblem(5, 9, 64, dtype="bf16"))
    for other in ("analytic", "auto"):
        reason = Dispatcher(library, selection=other).select(problem).reason
        assert reason == {"analytic": "fastest predicted of 3, tie by name", "auto": "best of 3 by large_tiles"}[other]


def test_a_function_selects(library: KernelLibrary) -> None:
    seen: list[GemmProblem] = []

    def by_length(problem: GemmProblem, candidates: Sequence[KernelEntry]) -> list[float]:
        seen.append(problem)
        return [-len(candidate.name) for candidate in candidates]

    dispatcher = Dispatcher(library, selection=by_length)
    problem = GemmProblem(64, 64, 64)
    selection = dispatcher.select(problem)
    assert selection.kernel.name == "gemm_fp32_rcr_64x64x64_whole"
    assert selection.reason == "best of 3 by by_length"
    assert dispatcher.select(problem) is selection and seen == [problem]
    assert Dispatcher(library, selection=lambda *_: [float("inf")] * 3).explain(problem).chosen is None
    with pytest.raises(SelectionError, match="1 scores for 3"):
        Dispatcher(library, selection=lambda *_: [1.0]).select(problem)
    with pytest.raises(ZeroDivisionError):
        Dispatcher(library, selection=lambda *_: [1 / 0]).explain(problem)


def test_a_function_sees_what_is_open(library: KernelLibrary) -> None:
    values: list[int] = []

    def any_kernel(problem: GemmProblem, candidates: Sequence[Candidate]) -> list[float]:
        values.extend(candidate.value for candidate in candidates)
        assert all(candidate.spec == entry.spec for candidate in candidates for entry in by_name[candidate.name])
        return [0.0] * len(candidates)

    by_name = {kernel.name: [kernel] for kernel in library.kernels}
    dispatcher = Dispatcher(library, selection=any_kernel)
    dispatcher.select(GemmProblem(64, 64, 64))
    assert values == [0, 0, 0]
    dispatcher.select(GemmProblem(64, 64, 64, split_k=0))
    assert values[3:] == [1, 1, 1]
    (ranked,) = {kernel.values for kernel in dispatcher.explain(GemmProblem(64, 64, 64, split_k=0)) if kernel.rank}
    assert ranked == (RankedValue(1, "split_k=1", 0.0),)


def test_measuring_needs_the_tile_engine(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher, problem = Dispatcher(library), GemmProblem(64, 64, 64)
    with pytest.raises(SelectionError, match=r"top_k and memory say what is measured; allowed: with measure=True"):
        dispatcher.select(problem, top_k=3)
    monkeypatch.setattr(selection, "ENGINE", "kernelwright.no_tile_engine")
    with pytest.raises(SelectionError, match=r"measure=True needs kernelwright\.tile_engine, .*install it"):
        dispatcher.select(problem, measure=True)


def test_a_plan_that_is_kept_serves_calls(library: KernelLibrary) -> None:
    dispatcher, problem = Dispatcher(library), GemmProblem(64, 64, 64)
    usual = dispatcher.plan(problem)
    other = next(one for one in dispatcher.explain(problem) if one.rank == 2)
    plan = Dispatcher(library, selection=other.identity).plan(problem)
    dispatcher.keep(problem, plan)
    assert dispatcher.plan(problem) is plan and dispatcher.select(problem).kernel.identity == other.identity
    dispatcher.set_priority(other.identity, 0)
    assert dispatcher.plan(problem).stages[0].kernel == usual.stages[0].kernel


def test_explain_ranks_every_kernel(dispatcher: Dispatcher) -> None:
    explanation = dispatcher.explain(GemmProblem(5, 9, 65))
    assert len(explanation) == 9 and [kernel.rank for kernel in explanation][:3] == [1, 2, None]
    # all of it is one register block, so the tile makes no difference
    assert explanation.chosen is not None and explanation.chosen.name == "gemm_fp32_rcr_128x128x64"
    assert explanation.chosen.estimate is not None and explanation.chosen.estimate.useful > 0
    refused = {kernel.name: kernel.reason for kernel in explanation if kernel.rank is None}
    assert refused["gemm_fp32_rcr_64x64x64_whole"] == "k is 65, not a multiple of tile_k 64"
    assert refused["a_gemm_fp32_rcr_exotic"] == "the device lacks made_up_feature"
    assert refused["gemm_fp32_rrr_32x32x32"] == "layout_b is column-major, this kernel serves row-major"
    text = str(explanation)
    assert (
        "gemm fp32 rcr 5x9x65, selection auto, ranked by predicted time: fastest predicted of 3" in text
        and "no: dtype_a is fp32" in text
        and "gemm_fp32_ccr_32x32x32 and 1 more" in text  # refused for the same reason
        and len(text.splitlines()) == 9
    )
    nothing = dispatcher.explain(GemmProblem(5, 9, 65, dtype="bf16"))
    assert nothing.chosen is None and nothing.reason == "no kernel serves this problem"
    with pytest.raises(NoKernelError, match=r"bf16 rcr 5x9x65.*dtype_a is bf16"):
        dispatcher.select(nothing.problem)


def test_export_lists_kernels_in_order(library: KernelLibrary) -> None:
    exported = json.loads(Dispatcher(library).export_json())
    names = [kernel["name"] for kernel in exported["kernels"]]
    assert names == sorted(names) and len(names) == 9
    assert exported["libraries"] == [{"name": "mock", "arch": "x86_64_v3", "abi_version": 3, "kernels": 9, "shared": 0}]


def test_dispatchers_are_independent(library: KernelLibrary) -> None:
    one, two = Dispatcher(library), Dispatcher(library, selection="gemm_fp32_rcr_32x32x32")
    problem = GemmProblem(5, 9, 64)
    plan = one.plan(problem)
    del one
    gc.collect()
    a, b, out = random(5, 64), random(9, 64).T, np.empty((5, 9), np.float32)
    np.testing.assert_allclose(plan(a, b, out=out), a @ b, atol=1e-4)
    assert two.select(problem).kernel is not plan.kernel
    two.set_num_threads(2)
    with pytest.raises(SelectionError, match="at most 64"):
        two.set_num_threads(99)
    for wrong in (-1, 2**32, 1.5, "2", None):
        with pytest.raises(SelectionError, match=rf"threads is {wrong!r}; allowed: an integer from 0 to 4294967295"):
            two.set_num_threads(wrong)  # type: ignore[arg-type]
    assert len(two.kernels) == 9


def test_factors_are_numbers(dispatcher: Dispatcher) -> None:
    a = random(4, 4)
    for factors in ({"alpha": "2"}, {"beta": "0"}):
        with pytest.raises(ProblemError, match=r"is '[02]'; allowed: a real number"):
            dispatcher.gemm(a, a, **factors)  # type: ignore[arg-type]
        with pytest.raises(ProblemError, match=r"is '[02]'; allowed: a real number"):
            dispatcher.grouped_gemm([a], [a], **factors)  # type: ignore[arg-type]


def test_libraries_must_suit_the_device(tmp_path: Path, library: KernelLibrary) -> None:
    mocks.native_library()
    foreign = mocks.write_library(tmp_path / "gfx942", arch="gfx942", backend="ck_tile", seed="9")
    with pytest.raises(ArchMismatchError, match="runs on hip; device is cpu"):
        Dispatcher([foreign])
    with pytest.raises(ArchMismatchError, match="gfx942; allowed by this dispatcher: gfx90a"):
        Dispatcher(foreign, device=Device("hip:0", arch="gfx90a"))
    refused = mocks.write_library(tmp_path / "refused", "MOCK_DEVICE=KW_ARCH_MISMATCH", seed="a")
    with pytest.raises(ArchMismatchError, match="cannot run on device 0: the mock device"):
        Dispatcher(refused)
    with pytest.raises(LibraryNotFoundError, match="libraries is empty"):
        Dispatcher([])


def test_libraries_share_kernels(tmp_path: Path, library: KernelLibrary) -> None:
    copy = KernelLibrary.load(mocks.write_library(tmp_path / "copy", "MOCK_MODEL=KW_HEURISTIC_VERSION", name="copy"))
    both = Dispatcher([library, copy, library])
    assert len(both.kernels) == 9 and all(a is b for a, b in zip(both.kernels, library.kernels, strict=True))
    explained = both.explain(GemmProblem(5, 9, 64))
    assert {one.library for one in explained} == {"mock"}
    assert explained.ranked_by == "large_tiles", "the model of a library is asked though its kernels are another's"
    a, b = random(5, 64), random(9, 64).T
    np.testing.assert_allclose(both.gemm(a, b), a @ b, atol=1e-4)
    assert {one.library for one in Dispatcher([copy, library]).explain(GemmProblem(5, 9, 64))} == {"copy"}
    other = KernelLibrary.load(mocks.write_library(tmp_path / "other", name="other", seed="e"))
    with pytest.raises(LibraryLoadError) as raised:
        Dispatcher([library, other])
    text = str(raised.value)
    assert f"library mock ({library.path})" in text and f"library other ({other.path})" in text
    assert "has the name of kernel" in text and "leave out one library" in text


def test_nothing_shows_more_than_a_few_lines(library: KernelLibrary, dispatcher: Dispatcher) -> None:
    problem = GemmProblem(64, 64, 64, split_k=0)
    plan, explanation = dispatcher.plan(problem), dispatcher.explain(problem)
    a = random(64, 64)
    shown = [
        *(library, library.manifest, library.kernels[0], dispatcher, plan, plan.selection, plan.stages[0]),
        *(explanation, explanation.stages[0], explanation.kernels[0], explanation.kernels[-1], problem),
        *(plan.bind(a, a.T, out=np.empty((64, 64), np.float32)), dispatcher.device, operand(a), view(a)),
        *(ConvProblem("forward", 8, 64, 64, (56, 56), (3, 3)), GroupedGemmProblem([(4, 5, 6)] * 1000)),
        AttentionProblem("backward", 2, 8, 8, 128, 128, 64, mask="bottom_right", dropout_p=0.1),
        AppendProblem(2, 4, 1, 64, 128),
    ]
    for one in shown:
        text = repr(one)
        assert len(text) <= 800 and len(text.splitlines()) <= 2, f"{type(one).__name__}: {len(text)} characters"
    assert repr(library) == f"<KernelLibrary mock for x86_64_v3: 9 kernels at {library.path}>"
    assert repr(dispatcher) == "<Dispatcher on cpu: mock for x86_64_v3, 9 kernels>"
    names = {"GemmProblem": GemmProblem, "ConvProblem": ConvProblem, "AttentionProblem": AttentionProblem}
    assert repr(plan.bind(a, a.T, out=np.empty((64, 64), np.float32))) == f"<BoundPlan of {plan!r}>"
    assert repr(plan.selection) == f"<Selection of {plan.kernel.short}: {plan.selection.reason}>"
    assert f"<Stage {plan.kernel.short}" in repr(plan.stages[0])
    assert repr(operand(a)).startswith("<Operand 64x64 fp32, strides (64, 1), numpy on cpu at 0x")
    problems = [one for one in shown if type(one).__name__ in names]
    assert len(problems) == 3
    for one in problems:
        assert eval(repr(one), {}, names) == one


def test_gpu_devices_are_checked_at_the_first_launch(tmp_path: Path) -> None:
    mocks.native_library()
    folder = mocks.write_library(tmp_path, "MOCK_DEVICE=KW_RUNTIME_MISSING", arch="gfx942", backend="ck_tile", seed="b")
    dispatcher = Dispatcher(folder, device="hip:0")
    problem = GemmProblem(64, 64, 64)
    assert dispatcher.select(problem).kernel.arch == "gfx942"
    assert dispatcher.explain(problem).chosen is not None
    with pytest.raises(Exception, match="the mock device 0 is something else"):
        dispatcher.plan(problem)(1 << 20, 2 << 20, out=3 << 20)
    a = np.zeros((2, 2), np.float32)
    with pytest.raises(ArrayError, match="arrays are on cpu; allowed by this dispatcher: hip:0"):
        dispatcher.gemm(a, a)
    with pytest.raises(ArrayError, match="a is on cpu; allowed for this plan: hip:0"):
        dispatcher.plan(GemmProblem(2, 2, 2, layout="rrr"))(a, a, out=a.copy())


def test_native_library_errors(monkeypatch: pytest.MonkeyPatch, library: KernelLibrary) -> None:
    from kernelwright.dispatch import NativeLibraryError

    monkeypatch.setattr(native, "_loaded", None)
    monkeypatch.setenv("KERNELWRIGHT_LIBRARY", str(library.path))
    with pytest.raises(NativeLibraryError, match="not the native dispatcher"):
        native.library()
    monkeypatch.setenv("KERNELWRIGHT_LIBRARY", "/nowhere.so")
    with pytest.raises(NativeLibraryError, match="nowhere"):
        native.library()


def test_importing_loads_no_native_code_and_no_array_library() -> None:
    code = "import sys, kernelwright.dispatch as d; d.GemmProblem(1, 2, 3); d.Device('cuda:0')\n"
    code += "from kernelwright.dispatch.core import native; assert native._loaded is None\n"
    code += "assert not {'torch', 'cupy', 'jax', 'ml_dtypes'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)}, timeout=60)


def test_arrays_are_explained_as_they_are_multiplied(dispatcher: Dispatcher) -> None:
    a, b, bias = random(5, 7), random(7, 3), random(3)
    explained = dispatcher.explain(a, b)
    assert explained.problem == dispatcher.plan_gemm(a, b).problem == dispatcher.gemm_problem(a, b)
    assert explained.chosen is not None
    fused = dispatcher.explain(a, b, bias=bias, activation="gelu")
    assert fused.problem == dispatcher.gemm_problem(a, b, ds=[bias], activation="gelu")
    assert (fused.problem.num_d, fused.problem.activation, fused.chosen) == (1, "gelu", None)
    with pytest.raises(ProblemError, match="d_op is 'multiply'; allowed with a bias, which is added: 'add'"):
        dispatcher.gemm(a, b, bias=bias, d_op="multiply")
    with pytest.raises(TypeError):
        dispatcher.explain(dispatcher.gemm_problem(a, b), layout="rrr")  # type: ignore[call-overload]


def test_words_of_calls_are_types(dispatcher: Dispatcher) -> None:
    with pytest.raises(ProblemError, match=r"activation is .gelo. .did you mean .gelu."):
        dispatcher.gemm(random(5, 7), random(7, 3), activation="gelo")  # type: ignore[arg-type]


def test_explain_says_how_other_operations_are_explained(dispatcher: Dispatcher) -> None:
    q, k = random(2, 16, 4, 64), random(2, 32, 4, 64)
    with pytest.raises(ArrayError, match="as gemm does; for other operations pass a problem, such as Attention"):
        dispatcher.explain(q, k, k)
    with pytest.raises(ArrayError, match="for other operations pass a problem"):
        dispatcher.explain(random(2, 8, 8, 4), random(4, 3, 3, 4))
