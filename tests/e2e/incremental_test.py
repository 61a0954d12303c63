"""One change, and exactly the processes that it needs: nothing more is executed, and nothing less.

A stand-in for the compiler writes its command line and the digests of the files it is given, so that an object differs
whenever a real one could.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import launcher
from e2e.workspace import Run
from faults.builds import COMPILER, CheapBuilds

PACKAGE = "codegen/kernelwright/codegen"
PLAN, DESCRIBE = "Plan t:lib0", "Describe x86_64_v3/liblib0.so"
LAUNCHERS = [f"Compile the CPU {name} of x86_64_v3/liblib0.so" for name in ("gemm_launch", "common_library")]
LOAD_PLUGIN = ("Extracting plugin locations", "Searching for `", "Test binary /")
TABLE, LINK = "Compile x86_64_v3/lib0_table.c", "Link x86_64_v3/liblib0.so"


class Library:
    """``t:lib0`` of kernels ``k0`` and ``j0``, built once; ``t:lib1`` beside it."""

    def __init__(self, folder: Path) -> None:
        self.compiler = folder / "compiler.sh"
        shutil.copy(COMPILER, self.compiler)
        self.builds = CheapBuilds(folder, 2, trace=True)
        known = [option for option in self.builds.options if not option.startswith("--kernelwright-host-path")]
        self.options = (*known, f"--kernelwright-host-path={self.compiler}")
        self.workspace = self.builds.workspace
        text = (self.workspace.root / "t/BUILD").read_text()
        second = text.splitlines()[1].replace('"k0"', '"j0"').replace("tile=[48, 64, 64]", "tile=[48, 96, 64]")
        self.workspace.write("t/BUILD", text.replace('dependencies=[":k0"]', 'dependencies=[":k0", ":j0"]') + second)

    def package(self) -> Run:
        """Build ``t:lib0``."""
        run = self.workspace.pants(*self.options, "package", "t:lib0", timeout=300)
        assert run.exit_code == 0, run.stderr
        return run

    def ran_after(self, path: str, old: str, new: str) -> list[str]:
        """What a change of a file makes run; the file is put back and built again."""
        before = (self.workspace.root / path).read_text()
        self.workspace.replace(path, old, new)
        try:
            return once(self.package())
        finally:
            self.workspace.write(path, before)
            again = self.package()
            assert set(again.ran) <= {DESCRIBE}, again.stderr


def once(run: Run) -> list[str]:
    """What ran, each process once.

    Pants begins again what it had begun when the file system told it of the change, and where the generator's sources
    change it first looks whether the parts of the former build still hold, so that it describes the former library
    anew (0.2 s) before it sees that there is a new plan. So a process may show twice, and none that is not wanted.
    A new daemon asks where plugins from wheels lie, for which it searches for shells and Pythons.
    """
    ran = sorted(map(named, (what for what in run.ran if not (launcher.named() and what.startswith(LOAD_PLUGIN)))))
    assert all(ran.count(what) <= 2 for what in ran), ran
    return sorted(set(ran))


def named(what: str) -> str:
    """Kernels by their tile instead of their whole name."""
    for tile, name in (("48x64x", "k0"), ("48x96x", "j0")):
        if what.startswith("Compile gemm") and tile in what:
            return f"Compile {name}"
    return what


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = Library(tmp_path_factory.mktemp("incremental"))
    library.package()
    yield library
    library.builds.close()


def test_one_spec(library: Library) -> None:
    ran = library.ran_after("t/BUILD", "tile=[48, 96, 64]", "tile=[48, 96, 72]")
    assert ran == sorted([PLAN, "Compile j0", TABLE, LINK, DESCRIBE])


def test_a_spec_of_another_library(library: Library) -> None:
    assert library.ran_after("t/BUILD", "tile=[48, 64, 65]", "tile=[48, 64, 66]") == []


def test_a_comment_in_a_build_file(library: Library) -> None:
    assert library.ran_after("t/BUILD", 'kernel_library(name="lib0"', '# a comment\nkernel_library(name="lib0"') == []


def test_the_order_of_dependencies(library: Library) -> None:
    assert library.ran_after("t/BUILD", '":k0", ":j0"', '":j0", ":k0"') == []


def test_the_template_of_the_backend(library: Library) -> None:
    template = f"{PACKAGE}/operations/gemm/templates/cpu/gemm.hpp.jinja"
    ran = library.ran_after(template, "by kernelwright.", "by kernelwright. Changed.")
    assert ran == sorted([PLAN, "Compile j0", "Compile k0", LINK, DESCRIBE])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (f"{PACKAGE}/operations/gemm/templates/cpu/gemm.hpp.jinja", "}  // namespace\n", "}  // without a name\n"),
        (f"{PACKAGE}/building/slots.sh", "# runs the command at once.", "# runs the command straight away."),
    ],
)
def test_a_comment_in_a_template_and_in_a_shell_helper(library: Library, file: str, old: str, new: str) -> None:
    assert set(library.ran_after(file, old, new)) <= {PLAN, DESCRIBE}


def test_the_template_of_another_backend(library: Library) -> None:
    template = f"{PACKAGE}/operations/gemm/templates/ck_tile/gemm.hpp.jinja"
    ran = library.ran_after(template, "by kernelwright.", "by kernelwright. Changed.")
    assert ran == [DESCRIBE, PLAN]  # the generator's own two calls; its answers are the same


def test_a_header_of_the_operation(library: Library) -> None:
    header = "dispatcher_cpp/include/kernelwright/cpu/gemm/micro/pack.hpp"
    ran = library.ran_after(header, "#ifndef", "// changed\n#ifndef")
    # The stand-in does not follow #include, as a compiler that finds nothing but a comment: its objects stay the same,
    # so nothing is linked; the statement about the library names the header's digest.
    assert ran == sorted(["Compile j0", "Compile k0", LAUNCHERS[0], DESCRIBE])


def test_a_header_that_operations_share(library: Library) -> None:
    header = "dispatcher_cpp/include/kernelwright/cpu/common/simd.hpp"
    ran = library.ran_after(header, "#ifndef", "// changed\n#ifndef")
    assert ran == sorted(["Compile j0", "Compile k0", *LAUNCHERS, DESCRIBE])


def test_the_launcher_of_an_operation(library: Library) -> None:
    source = "dispatcher_cpp/launchers/cpu/gemm/launch.cpp"
    ran = library.ran_after(source, "namespace {", "// changed\nnamespace {")
    assert ran == sorted([LAUNCHERS[0], LINK, DESCRIBE])


def test_a_launcher_that_operations_share(library: Library) -> None:
    header = "dispatcher_cpp/launchers/cpu/common/threads.hpp"
    assert library.ran_after(header, "#ifndef", "// changed\n#ifndef") == sorted([*LAUNCHERS, DESCRIBE])


def test_a_launcher_of_another_backend(library: Library) -> None:
    source = "dispatcher_cpp/launchers/hip/common/runtime.cpp"
    assert library.ran_after(source, "#include <dlfcn.h>", "// changed\n#include <dlfcn.h>") == []


def test_a_header_of_another_backend(library: Library) -> None:
    header = "dispatcher_cpp/include/kernelwright/hip/gemm/gemm.hpp"
    assert library.ran_after(header, "#ifndef", "// changed\n#ifndef") == []


@pytest.mark.parametrize("header", ["dispatcher.h", "dispatcher/registry.hpp"])
def test_a_header_of_the_dispatcher(library: Library, header: str) -> None:
    path = f"dispatcher_cpp/include/kernelwright/{header}"
    assert library.ran_after(path, "#ifndef", "// changed\n#ifndef") == []


def test_a_header_of_another_operation(library: Library) -> None:
    """Each backend has a tree for each operation: a GEMM kernel does not see the headers of convolutions."""
    header = library.workspace.root / "dispatcher_cpp/include/kernelwright/cpu/convolution/new.hpp"
    library.workspace.write(str(header.relative_to(library.workspace.root)), "// new\n")
    try:
        assert once(library.package()) == []
    finally:
        header.unlink()
        library.package()


def test_a_number_of_an_architecture(library: Library) -> None:
    ran = library.ran_after("arch/kernelwright/files/archs/x86_64_v3.json", '"clock_ghz": 3.5', '"clock_ghz": 1.5')
    # It stands in the library's table, from which the dispatcher rates kernels; no kernel sees it.
    assert ran == sorted([PLAN, TABLE, LINK, DESCRIBE])


def test_a_number_of_another_architecture(library: Library) -> None:
    ran = library.ran_after("arch/kernelwright/files/archs/gfx950.json", '"clock_ghz": 2.4', '"clock_ghz": 1.5')
    assert ran == [DESCRIBE, PLAN]


def test_a_flag(library: Library) -> None:
    ran = library.ran_after(f"{PACKAGE}/toolchains/host.py", '"-O3"', '"-O2"')
    assert ran == sorted([PLAN, "Compile j0", "Compile k0", *LAUNCHERS, TABLE, LINK, DESCRIBE])


def test_the_version_of_the_compiler(library: Library) -> None:
    text = library.compiler.read_text()
    library.compiler.write_text(text.replace("compiler 1.0", "compiler 1.1"))
    library.workspace.close()  # a daemon looks at a system compiler once
    try:
        ran = once(library.package())
    finally:
        library.compiler.write_text(text)
        library.workspace.close()
    fingerprint = f"Fingerprint {library.compiler}"
    assert ran == sorted([fingerprint, PLAN, "Compile j0", "Compile k0", *LAUNCHERS, TABLE, LINK, DESCRIBE])
