from __future__ import annotations

import json

import pytest

from kernelwright.pants.engine import digests
from kernelwright.pants.goals import package_library
from kernelwright.pants.goals.package_library import KernelLibraryFieldSet
from kernelwright.pants.targets.kernel_library import KernelLibraryTarget
from kernelwright.pants.targets.operation_kernels import kernel_target
from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import library
from kernelwright.pants.util_rules.library import (
    BuiltLibraries,
    BuiltLibrary,
    LibraryRequest,
    PlannedLibraries,
)
from pants.core.goals.package import BuiltPackage
from pants.core.target_types import FileTarget
from pants.engine.addresses import Address
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner

GemmKernelTarget = kernel_target("gemm")

_requests: list[LibraryRequest] = []  # what was planned last


@in_place_of(library.plan_library)
async def fake_plan(request: LibraryRequest) -> PlannedLibraries:
    _requests.append(request)
    return PlannedLibraries(())


@in_place_of(library.build_libraries)
async def fake_build(planned: PlannedLibraries) -> BuiltLibraries:
    libraries = []
    for arch in sorted(_requests[-1].archs):
        digest = await digests.create([(f"{arch}/libx.so", b"\x7fELF")])
        libraries.append(BuiltLibrary(arch, digest))
    return BuiltLibraries(tuple(libraries))


KERNELS = """
file(name="text", source="BUILD")
gemm_kernel(name="amd", arch="gfx942", dtype="fp16")
gemm_kernel(name="cpu", arch="x86_64_v4", dtype="fp32")
"""


def packaged(build: str, name: str = "lib", folder: str = "src") -> tuple[str, ...]:
    runner = RuleRunner(
        rules=[*package_library.rules(), fake_plan, fake_build, QueryRule(BuiltPackage, [KernelLibraryFieldSet])],
        target_types=[KernelLibraryTarget, GemmKernelTarget, FileTarget],
    )
    runner.write_files({f"{folder}/BUILD": KERNELS + build})
    target = runner.get_target(Address(folder, target_name=name))
    built = runner.request(BuiltPackage, [KernelLibraryFieldSet.create(target)])
    return tuple(artifact.relpath or "" for artifact in built.artifacts)


def test_a_library_is_written_below_its_own_folder_or_the_one_that_it_names() -> None:
    text = 'kernel_library(name="lib", dependencies=[":amd", ":cpu"]'
    assert packaged(f"{text})") == ("src/lib/gfx942/libx.so", "src/lib/x86_64_v4/libx.so")
    assert packaged(f"{text}, archs=['gfx942'], output_path='a/b')") == ("a/b/gfx942/libx.so",)


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("${spec_path_normalized}/${target_name_normalized}${file_suffix}", "src.deep/lib"),
        ("out/$target_name_normalized", "out/lib"),
        ("${target_name_normalized}/../here", "here"),
    ],
)
def test_templates_of_an_output_path_are_filled_in(path: str, folder: str) -> None:
    text = f'kernel_library(name="lib", dependencies=[":cpu"], output_path="{path}")'
    assert packaged(text, folder="src/deep") == (f"{folder}/x86_64_v4/libx.so",)


def test_a_template_does_not_lead_out_of_dist() -> None:
    text = 'kernel_library(name="lib", dependencies=[":cpu"], output_path="${spec_path_normalized}/../../victim")'
    with pytest.raises(ExecutionError, match=r"the field output_path is '\.\./victim', which leaves the folder"):
        packaged(text)


def test_a_template_is_compared_with_the_folders_of_others() -> None:
    both = """
kernel_library(name="lib", dependencies=[":cpu"], output_path="${spec_path_normalized}/x")
kernel_library(name="other", dependencies=[":cpu"], output_path="src/x")
"""
    with pytest.raises(ExecutionError, match="src:other and src:lib both write src/x/x86_64_v4; give one"):
        packaged(both, "other")


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("lib", "output_path='../victim'", "the field output_path is '../victim', which leaves the folder"),
        ("lib", "output_path='/tmp/x'", "which is absolute; allowed: a path below dist"),
        ("..", "library_name='ok'", r"src:..: the folder that is named after the target is 'src/..', which leaves the"),
        (".", "library_name='ok'", "which is not in its shortest spelling"),
        ("n" * 300, "library_name='ok'", r"n… \(304 characters\)', which has too long a name"),
    ],
)
def test_a_library_stays_below_dist(name: str, fields: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        packaged(f"kernel_library(name={name!r}, dependencies=[':amd'], {fields})", name)


def test_two_libraries_do_not_write_the_same_files() -> None:
    both = """
kernel_library(name="lib", dependencies=[":amd", ":cpu"], archs={archs}, output_path="out")
kernel_library(name="other", dependencies=[":cpu"], output_path="out")
"""
    with pytest.raises(ExecutionError, match="src:lib and src:other both write out/x86_64_v4; give one"):
        packaged(both.format(archs=["gfx942", "x86_64_v4"]))
    assert packaged(both.format(archs=["gfx942"])) == ("out/gfx942/libx.so",)


def test_the_library_that_names_the_folder_of_another_is_the_one_that_is_refused() -> None:
    both = """
kernel_library(name="lib", dependencies=[":cpu"])
kernel_library(name="other", dependencies=[":cpu"], output_path="src/lib")
"""
    assert packaged(both) == ("src/lib/x86_64_v4/libx.so",)
    with pytest.raises(ExecutionError, match="src:other and src:lib both write src/lib/x86_64_v4; give one"):
        packaged(both, "other")


@pytest.mark.parametrize(
    ("named", "what"),
    [(":text", "src:text, a file"), (":other", "src:other, a kernel_library"), (":lib", "src:lib,")],
)
def test_a_library_depends_on_kernels_alone(named: str, what: str) -> None:
    with pytest.raises(ExecutionError, match=f"src:lib: dependencies name {what}.*; allowed: gemm_kernel, kernel_set"):
        packaged(
            f"""
kernel_library(name="lib", dependencies=[":amd", "{named}"])
kernel_library(name="other", dependencies=[":lib"])
"""
        )


def test_a_kernel_that_is_listed_twice_is_in_the_library_once() -> None:
    again = 'gemm_kernel(name="again", arch="gfx942", dtype="fp16")\n'
    assert packaged(f'{again}kernel_library(name="lib", dependencies=[":amd", ":again", ":cpu"])')
    assert [json.loads(kernel)["origin"] for kernel in _requests[-1].kernels] == ["src:again", "src:cpu"]
