"""Real kernels through the compiler of the build; KERNELWRIGHT_TREES names a JSON of tree folders."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.store import file_digest
from kernelwright.codegen.interface import cli
from kernelwright.codegen.interface.exit_codes import EXIT_FAILED
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.resources.limits import LimitError
from kernelwright.codegen.violations import SpecError
from kernelwright.dispatch import Device, Dispatcher, GemmProblem, KernelLibrary, KernelwrightError, NoKernelError
from kernelwright.dispatch.tools.store_check import Found, check_folders
from kernelwright.jit import BuildFailedError, JitDisabledError, Registry, ToolchainError, command

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

SPEC = {"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [12, 48, 32], "warp_tile": [6, 16, 1]}
CPU = Device("cpu", arch="x86_64_v3")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jit")


def registry(cache: Path, *layouts: str, **rest: object) -> Registry:
    made = Registry(CPU, cache=cache, **rest)  # type: ignore[arg-type]
    for layout in layouts or ("rrr",):
        made.add(SPEC, layout=layout)
    return made


def test_what_is_missing_is_compiled_once(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = registry(cache)
    assert first.missing() == first.kernels
    library = first.build(2, progress=True)
    assert [kernel.name for kernel in library.kernels] == [kernel.name for kernel in first.kernels]
    assert library.kernels[0].resources is not None and library.kernels[0].resources["matrix_instructions"] > 0
    costs = json.loads((library.path.parent / "costs.json").read_text())["kernels"]
    assert costs[first.kernels[0].name]["cpu_s"] > 0
    said = capsys.readouterr().err
    assert "Compile gemm_fp32_rrr" in said and "Link" in said

    monkeypatch.setenv("KERNELWRIGHT_JIT", "off")
    again = registry(cache)
    assert again.missing() == ()
    assert again.build(progress=True).path == library.path and capsys.readouterr().err == ""
    more = registry(cache, "rrr", "rcr")
    with pytest.raises(JitDisabledError, match=r"KERNELWRIGHT_JIT=off, but 1 kernel for x86_64_v3 .*\n  gemm_fp32_rcr"):
        more.build()
    assert [gemm_spec(kernel).layout for kernel in more.missing()] == ["rcr"]

    monkeypatch.setenv("KERNELWRIGHT_JIT", "on")
    more.build(progress=True)
    said = capsys.readouterr().err
    assert "Compile gemm_fp32_rcr" in said and "Compile gemm_fp32_rrr" not in said


def test_no_compiler_is_needed_for_what_is_there(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = registry(cache).build()
    roots = {
        tree: str(root) for tree, root in read_tree_roots(os.environ["KERNELWRIGHT_TREES"]).items() if tree != "zig"
    }
    (tmp_path / "trees.json").write_text(json.dumps(roots))
    monkeypatch.setenv("KERNELWRIGHT_TREES", str(tmp_path / "trees.json"))
    monkeypatch.setattr("kernelwright.jit.registry.find_trees", _refuse)
    assert registry(cache).build().path == library.path and registry(cache).missing() == ()
    other = registry(cache, "ccr")
    assert other.missing() == other.kernels
    with pytest.raises(ToolchainError, match="ziglang"):
        other.build()


def _refuse(*_: object, **__: object) -> object:
    raise ToolchainError("ziglang==0.17.0 is not installed; pip install 'kernelwright[jit]'")


def test_a_damaged_library_is_linked_again(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = registry(cache).build()
    whole = library.path.read_bytes()
    fresh = library.path.with_name("copy")
    fresh.write_bytes(whole[:-1] + b"?")
    os.replace(fresh, library.path)  # another file: this process has the old one mapped
    assert registry(cache).missing() == ()
    rebuilt = registry(cache).build(progress=True)
    assert rebuilt.path == library.path and rebuilt.path.read_bytes() == whole
    assert capsys.readouterr().err == ""
    (library.path.parent / "manifest.json").write_text("{")
    assert registry(cache).build().path.read_bytes() == whole


def test_an_identity_with_two_objects_is_found_among_caches(cache: Path, tmp_path: Path) -> None:
    def problems() -> list[str]:
        findings = Found()
        check_folders([cache, tmp_path / "other"], findings)
        assert findings.kernels >= 1 and not findings.unknown
        return findings.problems

    registry(cache).build()
    first = registry(tmp_path / "other").build()
    assert problems() == []
    assert first.manifest.path.read_bytes() == registry(cache).build().manifest.path.read_bytes()
    (name,) = (kernel.name for kernel in first.kernels)
    (made,) = [path for path in (tmp_path / "other/actions").rglob("*.o") if name in path.name]
    made.write_bytes(made.read_bytes() + b"?")
    (problem,) = problems()
    assert f"{made} is not what was built" in problem
    (seal,) = (path for parent in made.parents for path in parent.glob("__sha256.json"))
    stated = json.loads(seal.read_text())
    seal.write_text(json.dumps({**stated, str(made.relative_to(seal.parent)): file_digest(made)}))
    registry(tmp_path / "other", name="second").build()
    command, identity = problems()
    assert f"{made.name} has 2 forms though command, inputs and toolchains are the same" in command
    assert identity.startswith(f"kernel {name} (identity {first.kernels[0].identity}) has 2 objects of one toolchain")


def test_a_permissive_umask_opens_no_cache(cache: Path) -> None:
    before = os.umask(0)
    try:
        library = registry(cache, name="umask").build()
        assert registry(cache, name="umask").build().path == library.path
    finally:
        os.umask(before)
    assert library.path.parent.stat().st_mode & 0o777 == 0o700 and cache.stat().st_mode & 0o777 == 0o700


def test_limits_hold(cache: Path) -> None:
    one = registry(cache)
    one.add(SPEC, limits={"max_code_bytes": 100})
    with pytest.raises(LimitError, match=r"gemm_fp32_rrr.* bytes of code; allowed: at most 100"):
        one.build()
    one.add(SPEC, limits={"max_code_bytes": 1 << 20})
    with pytest.raises(LimitError):  # the stricter one holds
        one.build()
    fine = registry(cache)
    fine.add(SPEC, limits={"max_code_bytes": 1 << 20})
    assert len(fine.build().kernels) == 1


def test_the_command_line_prints_the_library_that_it_makes(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({**SPEC, "layout": "rrr"}))
    arguments = ["--arch", "x86_64_v3", "--spec", str(tmp_path / "spec.json"), "--cache", str(cache)]
    arguments += ["--name", "cli"]
    assert cli.main(["jit", *arguments, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["compiled"] == made["kernels"] and made["arch"] == "x86_64_v3" and made["name"] == "cli"
    assert [kernel.name for kernel in KernelLibrary.load(Path(made["library"]).parent).kernels] == made["kernels"]
    assert json.loads(Path(made["manifest"]).read_text())["kernels"]

    monkeypatch.setenv("KERNELWRIGHT_JIT", "off")
    assert command.main([*arguments]) == 0
    assert capsys.readouterr().out == made["library"] + "\n"
    assert command.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**made, "compiled": []}
    assert command.main([*arguments, "--name", "other"]) == EXIT_FAILED
    said = capsys.readouterr()
    assert said.out == "" and "KERNELWRIGHT_JIT=off" in said.err
    monkeypatch.setenv("KERNELWRIGHT_JIT", "on")
    assert command.main([*arguments, "--limit", "max_code_bytes=9"]) == EXIT_FAILED
    assert "bytes of code; allowed: at most 9 (max_code_bytes)" in capsys.readouterr().err


def test_a_compiler_has_a_time_limit(cache: Path) -> None:
    slow = registry(cache, "crr")
    with pytest.raises(
        BuildFailedError, match=r"Compile gemm_fp32_crr\S+ for x86_64_v3: took .* limit of 0\.01 seconds"
    ):
        slow.build(timeout_s=0.01)
    assert slow.missing() == slow.kernels
    with pytest.raises(SpecError, match="timeout_s = 0: allowed: seconds above 0"):
        slow.build(timeout_s=0)


def test_failures_carry_what_the_compiler_printed(cache: Path, tmp_path: Path) -> None:
    roots = read_tree_roots(os.environ["KERNELWRIGHT_TREES"])
    broken = tmp_path / "broken"
    for path in (roots["cpu_gemm"] / "include").rglob("*"):
        if path.is_file():
            target = broken / path.relative_to(roots["cpu_gemm"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    for header in (broken / "include/kernelwright/cpu").rglob("*.hpp"):
        header.write_text("#error a header that cannot be\n" + header.read_text())
    for _ in range(2):
        one = registry(cache, "rrr", "rcr", trees={**roots, "cpu_gemm": broken})
        with pytest.raises(BuildFailedError, match="error: a header that cannot be") as caught:
            one.build(2)
        assert {name.partition("_packed")[0] for name in caught.value.failures} >= {
            "Compile gemm_fp32_rrr",
            "Compile gemm_fp32_rcr",
        }
    assert "nothing that it reads has changed" in str(caught.value)
    registry(cache, trees=roots).build()  # expired with the header


def test_a_dispatcher_computes(cache: Path) -> None:
    try:
        dispatcher = registry(cache, "rrr", "rcr").dispatcher()
    except KernelwrightError as error:
        if "KERNELWRIGHT_LIBRARY" not in str(error):
            raise
        pytest.skip("libkernelwright.so is not packaged here")
    a, b = np.arange(35, dtype=np.float32).reshape(5, 7), np.arange(21, dtype=np.float32).reshape(7, 3)
    assert (dispatcher.gemm(a, b) == a @ b).all()


def test_a_dispatcher_compiles_what_its_libraries_lack(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        loaded = registry(cache).build()
        dispatcher = Dispatcher(loaded, CPU, fallback=Registry(CPU, name="more", cache=cache))
    except KernelwrightError as error:
        if "KERNELWRIGHT_LIBRARY" not in str(error):
            raise
        pytest.skip("libkernelwright.so is not packaged here")
    capsys.readouterr()
    a, b = np.arange(35, dtype=np.float32).reshape(5, 7), np.arange(21, dtype=np.float32).reshape(7, 3)
    assert (dispatcher.gemm(a, b) == a @ b).all() and capsys.readouterr().err == ""
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: dispatcher.gemm(a, b, activation="relu"), range(8)))
    assert all((result == a @ b).all() for result in results)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kernelwright: ")]
    assert len(said) == 1 and "serves GemmProblem(m=5, n=3, k=7" in said[0]
    assert "; compiling fp32 rrr" in said[0]
    assert [library.name for library in dispatcher.libraries] == ["jit", "more"]
    many, others = np.ones((2, 3, 5, 7), np.float32), np.ones((2, 3, 7, 4), np.float32)
    assert (dispatcher.gemm(many, others) == many @ others).all()
    assert (dispatcher.gemm(a, b) == a @ b).all()
    with pytest.raises(NoKernelError) as refused:
        dispatcher.plan(GemmProblem(m=5, n=3, k=7, dtype_a="fp8", dtype_b="fp8", dtype_c="fp8", layout="rrr"))
    assert any(line.startswith("fallback: ") for line in refused.value.advice)
