from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwright.arch import ArchError
from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.selecting.sets import set_archs
from kernelwright.codegen.violations import SpecError

SPEC: dict[str, Any] = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": {"m": 128, "n": 128, "k": 32},
    "wave": {"m": 2, "n": 2, "k": 1},
    "warp_tile": {"m": 32, "n": 32, "k": 16},
    "pipeline": "compv3",
}


def kernel(arch: str = "gfx942", **changes: Any) -> dict[str, Any]:
    return {"arch": arch, "spec": {**SPEC, **changes}, "origin": f"//kernels:{arch}"}


def test_expand_returns_whole_specs_sorted() -> None:
    response = respond({"stage": "expand", "set": "gemm:essential", "archs": ["gfx950", "gfx942"]})
    keys = [(item["arch"], item["name"]) for item in response["kernels"]]
    assert keys == sorted(keys) and {arch for arch, _ in keys} == {"gfx942", "gfx950"}
    for item in response["kernels"]:
        parsed = Kernel(arch=item["arch"], spec=GemmSpec.model_validate(item["spec"]))
        assert (parsed.name, parsed.identity) == (item["name"], item["identity"])
    assert response == respond({"stage": "expand", "kernels": [_short(item) for item in response["kernels"]]})


def test_expand_reports_what_rules_dropped(tmp_path: Path) -> None:
    config = {
        "op": "gemm",
        "problem": {**SPEC, "dtype": "fp16"},
        "trait_config": {"scheduler": {"values": ["intrawave", "interwave"]}},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    inline = respond({"stage": "expand", "config": config, "archs": ["gfx942"]})
    assert inline["dropped"][0] == {"arch": "gfx942", "rule": "gemm.traits", "count": 1}
    assert respond({"stage": "expand", "config": str(tmp_path / "config.json"), "archs": ["gfx942"]}) == inline


def test_filters_and_duplicates() -> None:
    request = {"stage": "expand", "kernels": [kernel(), kernel(), kernel("gfx950"), kernel(dtype="bf16")]}
    assert len(respond(request)["kernels"]) == 3
    kept = respond({**request, "filter": "c.dtype == 'bf16'"})["kernels"]
    assert [(item["arch"], item["spec"]["dtype_a"]) for item in kept] == [("gfx942", "bf16")]


def test_limits_reach_the_kernels_of_a_plan() -> None:
    limits = {"max_vgpr_spills": 0}
    request = {"stage": "expand", "set": "gemm:essential", "archs": ["gfx942", "gfx950"], "limits": limits}
    expanded = respond(request)["kernels"]
    assert expanded and all(item["limits"] == limits for item in expanded)
    listed = [{key: item[key] for key in ("arch", "spec", "limits")} for item in expanded]
    libraries = respond({"stage": "plan", "name": "gemm", "kernels": [*listed, kernel("gfx90a")]})["libraries"]
    stated = {library["arch"]: [item.get("limits") for item in library["kernels"]] for library in libraries}
    assert stated["gfx90a"] == [None] and set(map(str, stated["gfx942"])) == {str(limits)}
    with pytest.raises(
        SpecError, match="'limits' goes with set, config, specs or problems; listed kernels have their own"
    ):
        respond({"stage": "expand", "kernels": [kernel()], "limits": limits})


def test_a_report_names_libraries_as_asked() -> None:
    manifest = {"name": "gemm", "arch": "gfx942", "kernels": [{"name": "k", "identity": "0", "resources": {"vgpr": 5}}]}
    costs = {"here": {"kernels": {"k": {"cpu_s": 2.5}}}}
    answer = respond({"stage": "report", "manifests": {"here": manifest}, "costs": costs})
    assert answer["text"].splitlines() == [
        "gemm for gfx942: 1 kernel (here)",
        "regs  compile s  kernel",
        "   5        2.5  k",
    ]
    assert answer["libraries"][0]["kernels"][0]["registers"] == 5
    with pytest.raises(SpecError, match="has the keys manifests"):
        respond({"stage": "report"})


@pytest.mark.parametrize("arch", set_archs("gemm:essential"))
def test_plan_is_complete_and_deterministic(arch: str) -> None:
    request = {"stage": "plan", "name": "gemm", "set": "gemm:essential", "archs": [arch]}
    response = respond(request)
    assert json.dumps(response) == json.dumps(respond(request))
    (library,) = response["libraries"]
    assert library["library"] == f"{arch}/libgemm.so" and library["toolchains"] and library["abi_version"] == 3
    files = {file["path"] for file in library["files"]}
    for item in library["kernels"]:
        assert item["header"] in files and set(item["objects"]) <= set(library["objects"])
        assert (item["name"] in library["reports"]) == bool(item["report"])
    text = json.dumps(response)
    assert str(Path.cwd()) not in text and "/home" not in text


def test_the_abi_version_is_the_headers() -> None:
    header = Path(__file__).parents[4] / "dispatcher_cpp/include/kernelwright/abi.h"
    if not header.is_file():
        pytest.skip("headers are not beside the generator here")
    assert "#define KW_ABI_VERSION 3u" in header.read_text()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ([], "a request is a JSON object"),
        ({"stage": "expnd"}, r"'stage' is 'expnd' \(did you mean 'expand'\?\); allowed: expand, plan"),
        ({"stage": "expand", "sett": "x"}, r"unknown key 'sett' \(did you mean 'set'\?\); allowed: stage, name"),
        ({"stage": "expand"}, "exactly one of kernels, set, config, specs"),
        ({"stage": "expand", "set": "gemm:essential", "kernels": []}, "exactly one of"),
        ({"stage": "expand", "set": "gemm:essential"}, "'archs' must list at least one arch"),
        ({"stage": "plan", "kernels": [kernel()]}, "'name' must be the library's name"),
        ({"stage": "expand", "kernels": []}, "the list of kernels is empty"),
        ({"stage": "expand", "kernels": "x"}, "'kernels' must be a list, not 'x'"),
        ({"stage": "expand", "kernels": [{"arch": "gfx942"}]}, r"kernels\[0\] must have the keys"),
        ({"stage": "expand", "kernels": [kernel("gfx9")]}, "//kernels:gfx9: unknown arch 'gfx9'"),
        ({"stage": "expand", "kernels": [kernel(dtype="fp17")]}, "//kernels:gfx942: dtype = 'fp17' is unknown"),
        (
            {"stage": "expand", "kernels": [kernel(wave=[3, 1, 1])]},
            r"(?s)//kernels:gfx942: .*wave_set: wave = 3x1x1",
        ),
        ({"stage": "expand", "specs": 3, "archs": ["gfx942"]}, "must be a spec or a list of specs"),
        ({"stage": "expand", "specs": [], "archs": ["gfx942"]}, "the list of specs is empty"),
        ({"stage": "expand", "set": "gemm:essential", "archs": ["gfx942"], "filter": "False"}, "matches none of"),
        (
            {"stage": "plan", "name": "g", "kernels": [kernel()], "toolchains": {"hip": "rocmm"}},
            r"unknown hip toolchain 'rocmm' \(did you mean 'rocm'\?\); allowed: wheel, stock, rocm",
        ),
        (
            {"stage": "plan", "name": "g", "kernels": [kernel()], "toolchains": {"hip": {"choice": "rocm", "x": 1}}},
            "hip toolchain 'rocm': ",
        ),
    ],
)
def test_wrong_requests_are_refused(request_: object, message: str) -> None:
    with pytest.raises((SpecError, ArchError), match=message):
        respond(request_)


def test_every_wrong_kernel_is_named() -> None:
    with pytest.raises(SpecError) as caught:
        respond({"stage": "expand", "kernels": [kernel(f"bad{n}") for n in range(12)]})
    assert str(caught.value).count("unknown arch") == 10 and "and 2 more" in str(caught.value)


def _short(item: dict[str, Any]) -> dict[str, Any]:
    return {"arch": item["arch"], "spec": item["spec"]}


def test_sets_are_checked_for_what_contains_them() -> None:
    request = {"stage": "check_set", "set": "convolution:tests", "archs": ["gfx90a"]}
    assert respond(request) == {"problems": []}
    with pytest.raises(SpecError, match="unknown kernel set 'conv_test'"):
        respond({**request, "set": "conv_test"})
    with pytest.raises(SpecError, match="has the keys set and archs, not archs, filter, set, stage"):
        respond({**request, "filter": "True"})
    with pytest.raises(ArchError, match="unknown arch 'gfx9'"):
        respond({**request, "archs": ["gfx9"]})
