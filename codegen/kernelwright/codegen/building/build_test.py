from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.building.build import library_files, read_tree_roots
from kernelwright.codegen.building.store import Cost
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError


def test_costs_stand_beside_the_manifest_and_not_in_it(tmp_path: Path) -> None:
    arch = load("x86_64_v3")
    kernels = tuple(sorted(expand_set("gemm:essential", arch).kernels, key=lambda kernel: kernel.name))
    item = Selection(arch, kernels, {})
    plan = compile_plan("gemm", arch, kernels, backend_for(arch, {}))
    made = tmp_path / "made"
    made.write_bytes(b"library")
    object_file = tmp_path / "object"
    object_file.write_bytes(_object())
    files = {path: object_file for kernel in plan.kernels for path in kernel.objects} | {plan.library: made}
    first = plan.kernels[0].actions[0].id
    costs = {first: Cost(cpu_s=2.5, elapsed_s=9.0, peak_mb=104), "link": Cost(1.0, 1.0, 50)}
    contents = library_files("gemm", item, plan, {}, files, costs)
    assert set(contents) == {"libgemm.so", "manifest.json", "costs.json"} and contents["libgemm.so"] == b"library"
    assert json.loads(contents["costs.json"]) == {"kernels": {kernels[0].name: {"cpu_s": 2.5, "peak_mb": 104}}}
    assert contents["manifest.json"] == library_files("gemm", item, plan, {}, files, {})["manifest.json"]
    assert b"cpu_s" not in contents["manifest.json"]


def _object() -> bytes:
    """An ELF object whose code is one vfmadd231ps."""
    import struct

    code, names = bytes.fromhex("c4e26db8d9"), b"\0.text\0.shstrtab\0"
    headers = [bytes(64)]
    for name, kind, flags, at, size in ((1, 1, 6, 64, len(code)), (7, 3, 0, 64 + len(code), len(names))):
        headers.append(struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, at, size, 0, 0, 1, 0))
    fields = (1, 62, 1, 0, 0, 64 + len(code) + len(names), 0, 64, 0, 0, 64, 3, 2)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *fields)
    return head + code + names + b"".join(headers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"zigg": "/a"}', r"names an unknown tree 'zigg' \(did you mean 'zig'\?\); allowed: zig, clang"),
        ('{"zig": "/a", "zig": "/b"}', "the key 'zig' is given twice"),
        ("[]", "no JSON object of tree folders"),
        ('{"zig": 3}', "no JSON object of tree folders"),
        ("{", r"trees\.json' is not JSON"),
    ],
)
def test_wrong_folders_of_trees_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "trees.json").write_text(text)
    with pytest.raises(SpecError, match=message):
        read_tree_roots(tmp_path / "trees.json")
    (tmp_path / "trees.json").write_text('{"zig": "/a"}')
    assert read_tree_roots(tmp_path / "trees.json") == {"zig": Path("/a")}
