from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for
from kernelwright.codegen.heuristics.model import write_model
from kernelwright.codegen.heuristics.testing.random_model import random_content
from kernelwright.codegen.planning.compile_plan import compile_plan, render_table
from kernelwright.codegen.planning.describe import library_json
from kernelwright.codegen.planning.groups import GROUP
from kernelwright.codegen.planning.models import read_models
from kernelwright.codegen.resources.amd import MODULE as COUNTING
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.testing.null_backend import NullBackend, null_templates
from kernelwright.codegen.toolchains.python import located
from kernelwright.codegen.violations import SpecError

GFX942 = archs.load("gfx942")
KERNELS = expand_set("gemm:essential", GFX942).kernels[:3]


@pytest.fixture(autouse=True)
def _null(monkeypatch: pytest.MonkeyPatch) -> None:
    null_templates(monkeypatch)


def test_the_plan_depends_on_the_set_of_kernels_alone() -> None:
    plan = compile_plan("gemm", GFX942, KERNELS, NullBackend())
    assert plan == compile_plan("gemm", GFX942, KERNELS[::-1], NullBackend())
    assert plan.library == "gfx942/libgemm.so"
    assert [file.path for file in plan.files] == ["gfx942/gemm_table.c"]
    assert len(plan.all_files) == 4 and len(plan.all_actions) == 4
    made = {output for action in plan.all_actions for output in action.outputs} | {f.path for f in plan.all_files}
    assert {path for action in plan.all_actions for path in action.inputs} <= made


def test_the_table_lists_every_kernel_and_the_arch_files_numbers() -> None:
    text = render_table("gemm", GFX942, KERNELS)
    for kernel in KERNELS:
        assert f"extern KW_HIDDEN const kw_kernel {kernel.symbol};" in text and f"    &{kernel.symbol},\n" in text
    for line in (
        ".compute_units = 304u",
        ".wave_size = 64u",
        ".lds_bytes = 65536u",
        ".clock_ghz = 2.1",
        ".backend = KW_BACKEND_HIP",
        "[KW_FP16] = 2048.0",
        ".kernel_count = 3u",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("name", "kernels", "message"),
    [
        ("gemm-1", KERNELS, "must be letters, digits and underscores"),
        ("1gemm", KERNELS, "must be letters"),
        ("", KERNELS, "must be letters"),
        ("../x", KERNELS, "must be letters"),
        ("gemm", (), "has no kernels"),
        ("gemm", (KERNELS[0], KERNELS[0]), "twice"),
        ("gemm", expand_set("gemm:essential", archs.load("gfx950")).kernels, "is for gfx942, but"),
    ],
)
def test_libraries_that_cannot_be(name: str, kernels: tuple, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(SpecError, match=message):
        compile_plan(name, GFX942, kernels, NullBackend())


def test_a_library_contains_the_models_for_its_architecture(tmp_path: Path) -> None:
    for name, arch, seed in (("fast", "gfx942", 1), ("faster", "gfx942", 2), ("other", "gfx950", 3)):
        write_model(random_content(seed, arch=arch), tmp_path / f"{name}.json")
    models = read_models([str(tmp_path / f"{name}.json") for name in ("fast", "faster", "other")])
    plan = compile_plan("gemm", GFX942, KERNELS, NullBackend(), models)
    table = {file.path: file.text for file in plan.files}
    assert list(table) == [f"gfx942/{name}.c" for name in ("gemm_table", "libgemm_model_fast", "libgemm_model_faster")]
    assert "    &kw_model_fast,\n    &kw_model_faster,\n" in table["gfx942/gemm_table.c"]
    assert ".heuristic_count = 2u" in table["gfx942/gemm_table.c"]
    assert "const kw_heuristic kw_model_fast = {" in table["gfx942/libgemm_model_fast.c"]
    assert "kw_heuristic_entry" not in table["gfx942/libgemm_model_fast.c"]
    linked = plan.actions[-1].inputs
    assert [path for path in linked if "_model_" in path] == [
        "gfx942/libgemm_model_fast.o", "gfx942/libgemm_model_faster.o",
    ]  # fmt: skip
    described = library_json(
        "gemm", Selection(GFX942, KERNELS, {}, {}), plan, DEFAULT_TOOLCHAINS, [models[0].described]
    )
    assert described["models"] == [
        {"name": "fast", "op": "gemm", "dtypes": ["fp32"], "arch": "gfx942", "sha256": models[0].model.digest}
    ]
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "fast.json").write_text((tmp_path / "fast.json").read_text())
    with pytest.raises(SpecError, match=r"two models are called 'fast'; give their files different names"):
        read_models([str(tmp_path / "fast.json"), str(tmp_path / "more" / "fast.json")])


@pytest.mark.parametrize("name", archs.names())
def test_plans_of_real_backends_are_closed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.undo()
    arch = archs.load(name)
    plan = compile_plan("gemm", arch, expand_set("gemm:essential", arch).kernels, backend_for(arch, DEFAULT_TOOLCHAINS))
    outputs = [output for action in plan.all_actions for output in action.outputs]
    paths = [file.path for file in plan.all_files]
    assert len(set(outputs + paths)) == len(outputs) + len(paths), "two producers of one file"
    assert {path for action in plan.all_actions for path in action.inputs} <= {*outputs, *paths}
    assert plan.library in outputs
    assert len({action.id for action in plan.all_actions}) == len(plan.all_actions)
    for path in (*outputs, *paths):
        assert path.startswith(f"{name}/") and ".." not in path and len(path.split("/")[-1]) < 250
    for kernel in plan.kernels:
        assert kernel.objects and set(kernel.objects) <= set(outputs)
        assert kernel.report is None or kernel.report in outputs
        assert (kernel.counts is not None) == (arch.backend == "ck_tile") and kernel.counts in (None, *outputs)


@pytest.mark.parametrize("count", [1, 2 * GROUP + 1])
def test_every_amd_kernel_is_counted_by_an_action_of_its_own(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.undo()
    kernels = expand_set("convolution:default", GFX942).kernels[:count]
    assert len(kernels) == count
    plan = compile_plan("gemm", GFX942, kernels, backend_for(GFX942, DEFAULT_TOOLCHAINS))
    for kernel in plan.kernels:
        (counting,) = [action for action in kernel.actions if kernel.counts in action.outputs]
        assert counting.inputs == (kernel.report,) and counting.trees == ()
        assert located(counting.argv)[4:9] == [COUNTING, kernel.report, kernel.counts, "gfx942", "4"]
        assert not set(counting.outputs) & {path for action in plan.all_actions for path in action.inputs}
    described = library_json("gemm", Selection(GFX942, kernels, {}, {}), plan, DEFAULT_TOOLCHAINS)
    assert [kernel["counts"] for kernel in described["kernels"]] == [kernel.counts for kernel in plan.kernels]
