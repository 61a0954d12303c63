from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.packaging import provenance
from kernelwright.codegen.packaging.bundle import BrokenKernelError, manifest, respond_bundle
from kernelwright.codegen.resources.amd.command import counts_text
from kernelwright.codegen.resources.limits import LimitError
from kernelwright.codegen.resources.testing.loop import LOOP
from kernelwright.codegen.violations import SpecError
from kernelwright.files import arch_files

SPEC = {"op": "gemm"}
LIBRARY: dict[str, Any] = {
    "name": "gemm",
    "arch": "x86_64_v3",
    "backend": "cpu",
    "abi_version": 3,
    "device": "x86-64 with AVX2",
    "library": "x86_64_v3/libgemm.so",
    "toolchains": {"host": "zig"},
    "objects": ["x86_64_v3/a.o"],
    "kernels": [
        {
            "name": "a",
            "identity": "0" * 64,
            "arch": "x86_64_v3",
            "spec": SPEC,
            "features": "avx512_bf16",
            "objects": ["x86_64_v3/a.o"],
            "report": None,
            "expects": {"device_kernels": 1, "matrix_instructions": True, "helpers": []},
        }
    ],
}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def parsed(response: str) -> Any:
    return json.loads(json.loads(response)["manifest.json"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "x86_64_v3").mkdir()
    (tmp_path / "x86_64_v3/libgemm.so").write_bytes(b"library")
    (tmp_path / "x86_64_v3/a.o").write_bytes(b"object")
    return tmp_path


def test_the_manifest_has_the_schema_that_loaders_read(root: Path) -> None:
    assert parsed(respond_bundle({"library": LIBRARY, "root": str(root)})) == {
        "schema_version": 1,
        "name": "gemm",
        "arch": "x86_64_v3",
        "backend": "cpu",
        "abi_version": 3,
        "device": "x86-64 with AVX2",
        "library": "libgemm.so",
        "sha256": sha(b"library"),
        "toolchains": {"host": "zig"},
        "kernels": [
            {
                "name": "a",
                "identity": "0" * 64,
                "arch": "x86_64_v3",
                "spec": SPEC,
                "features": "avx512_bf16",
                "object_sha256": sha(b"object"),
                "resources": None,
            }
        ],
    }


def test_the_manifest_names_the_models_of_a_library(root: Path) -> None:
    models = [{"name": "fast", "op": "gemm", "dtypes": ["fp32"], "arch": "x86_64_v3", "sha256": "3" * 64}]
    assert parsed(respond_bundle({"library": {**LIBRARY, "models": models}, "root": str(root)}))["models"] == models


def test_digests_that_are_known_need_no_files() -> None:
    known = {"x86_64_v3/libgemm.so": "1" * 64, "x86_64_v3/a.o": "2" * 64}
    made = parsed(respond_bundle({"stage": "bundle", "library": LIBRARY, "sha256": known}))
    assert made["sha256"] == "1" * 64 and made["kernels"][0]["object_sha256"] == "2" * 64


def test_materials_bring_a_statement_that_is_tied_to_the_manifest(root: Path) -> None:
    materials = [{"requirements": "Zig_Lang==1.0 --hash=sha256:aa  # compiler"}, {"files": {"include/a.h": "bb"}}]
    files = json.loads(respond_bundle({"library": LIBRARY, "root": str(root), "materials": materials}))
    statement, made = json.loads(files["provenance.json"]), json.loads(files["manifest.json"])
    assert statement["subject"] == [
        {"name": "libgemm.so", "digest": {"sha256": sha(b"library")}},
        {"name": "manifest.json", "digest": {"sha256": sha(files["manifest.json"].encode())}},
    ]
    assert made["provenance_sha256"] == sha(provenance.canonical(statement["predicate"]))
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["kernels"] == [
        {"name": "a", "identity": "0" * 64, "spec": LIBRARY["kernels"][0]["spec"]}
    ]
    digests = {entry.get("uri") or entry["name"]: entry["digest"] for entry in definition["resolvedDependencies"]}
    assert digests["pkg:pypi/zig-lang@1.0"] == {"sha256": "aa"} and digests["include/a.h"] == {"sha256": "bb"}
    assert "kernelwright/codegen/packaging/bundle.py" in digests
    assert "kernelwright/codegen/planning/templates/library.c.jinja" in digests
    assert "kernelwright/files/archs/gfx942.json" in digests and not any(name.endswith("_test.py") for name in digests)


def test_several_objects_have_one_digest_that_depends_on_each(root: Path) -> None:
    (root / "x86_64_v3/b.o").write_bytes(b"second")
    kernel = {**LIBRARY["kernels"][0], "objects": ["x86_64_v3/a.o", "x86_64_v3/b.o"]}
    made = manifest({**LIBRARY, "kernels": [kernel]}, lambda path: root / path)
    assert made["kernels"][0]["object_sha256"] == sha((sha(b"object") + sha(b"second")).encode())


def test_reports_become_resources(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.codegen.resources.cpu.read_report", lambda data, expects: {"bytes": len(data)})
    kernel = {**LIBRARY["kernels"][0], "report": "x86_64_v3/a.o"}
    made = manifest({**LIBRARY, "kernels": [kernel]}, lambda path: root / path)
    assert made["kernels"][0]["resources"] == {"bytes": 6}


def test_a_report_that_shows_a_useless_kernel_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_report(data: bytes, expects: object) -> None:
        raise ValueError("no matrix instruction")

    monkeypatch.setattr("kernelwright.codegen.resources.cpu.read_report", read_report)
    kernel = {**LIBRARY["kernels"][0], "report": "x86_64_v3/a.o"}
    with pytest.raises(BrokenKernelError, match="a: no matrix instruction"):
        manifest({**LIBRARY, "kernels": [kernel]}, lambda path: root / path)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "a bundle request has the keys"),
        ({"library": LIBRARY, "rooot": "."}, "a bundle request has the keys"),
        ({"library": LIBRARY, "stage": "plan"}, "'stage' is 'plan'; allowed: bundle"),
        ({"library": 3}, "must be an entry"),
        ({"library": {"name": "gemm"}}, "lacks arch, backend, abi_version, device, library, toolchains, kernels"),
        ({"library": LIBRARY, "materials": "zig"}, "'materials' must be a list"),
        ({"library": LIBRARY, "materials": [{"requirements": "zig==1"}]}, "must pin one version and its sha256"),
        ({"library": LIBRARY, "materials": [{"requirements": "-r x"}]}, "cannot be read"),
        ({"library": LIBRARY, "root": "/nonexistent"}, "is not there; build the library first"),
        ({"library": {**LIBRARY, "backend": "vulkan"}, "root": "."}, "is not there"),
    ],
)
def test_wrong_requests_are_refused(raw: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        respond_bundle(raw)


METADATA = """\
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .group_segment_fixed_size: 8192
    .kernarg_segment_size: 56
    .max_flat_workgroup_size: 256
    .private_segment_fixed_size: 0
    .sgpr_count:     30
    .sgpr_spill_count: 0
    .symbol:         k_gemm.kd
    .vgpr_count:     64
    .vgpr_spill_count: 0
    .wavefront_size: 64
...
\t.end_amdgpu_metadata
"""


@pytest.mark.parametrize(("counted", "limits"), [(True, {}), (False, {}), (True, {"max_lds_conflicts": 11})])
def test_counts_are_those_of_the_file_that_the_plan_names(root: Path, counted: bool, limits: dict[str, int]) -> None:
    size = "\t.size\tk_gemm, .Lfunc_end0-k_gemm\n; codeLenInByte = 64\n"
    text = LOOP.format(shift=4, rest="s_nop 0").replace(".Lfunc_end0:\n", f".Lfunc_end0:\n{size}") + METADATA
    (root / "x86_64_v3/a.s").write_text(text)
    (root / "x86_64_v3/a.json").write_text(counts_text(text, "gfx942", 4))
    counts = "x86_64_v3/a.json"
    kernel = {
        **LIBRARY["kernels"][0],
        "report": "x86_64_v3/a.s",
        "counts": counts if counted else None,
        "limits": limits,
    }
    unit = arch_files.read("gfx942")[0]["compute_unit"]
    facts = {"backend": "ck_tile", "wave_size": 64, "compute_unit": unit}
    request = {"library": {**LIBRARY, **facts, "kernels": [kernel]}, "root": str(root)}
    if limits:
        with pytest.raises(LimitError, match=r"^a: 12 clocks that LDS bank conflicts add .* at most 11"):
            respond_bundle(request)
        return
    resources = parsed(respond_bundle(request))["kernels"][0]["resources"]
    assert resources["vgpr"] == 64 and ("counts" in resources) == counted
    if counted:
        assert resources["counts"]["bound"] == "lds" and resources["counts"]["loop"]["conflict_cycles"] == 12
        (root / counts).write_text("[]")
        with pytest.raises(SpecError, match=r"a\.json holds no counts of a kernel"):
            respond_bundle(request)
        (root / counts).unlink()
        with pytest.raises(SpecError, match=r"a\.json"):
            respond_bundle(request)
