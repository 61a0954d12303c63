"""Every copy of the C structs in ctypes against the headers: names, offsets, sizes, and that nothing is missing.

Structs of ``kernelwright.problems`` are no copies: C and ctypes are made of one description.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import ModuleType

import pytest

from kernelwright.codegen.operations.gemm.testing import cpu_library
from kernelwright.dispatch.core import calls, native
from kernelwright.dispatch.testdata import extension, mocks

HEADERS = (
    "kernelwright/dispatcher/gemm.h",
    "kernelwright/dispatcher/python_call.h",
)
STRUCTS = {
    "kw_problem": ("ProblemHead",),
    "kw_launch": ("Launch",),
    "kw_gemm_extension": ("GemmExtension",),
    "kw_kernel": ("KernelStruct", "Kernel"),
    "kw_library": ("LibraryStruct", "Library"),
    "kw_arch": ("ArchStruct",),
    "kw_dispatcher_options": ("DispatcherOptions",),
    "kw_library_options": ("LibraryOptions",),
    "kw_candidate": ("Candidate",),
    "kw_selection_options": ("SelectionOptions",),
    "kw_plan_info": ("PlanInfo",),
    "kw_stage_info": ("StageInfo",),
    "kw_bound_call": ("BoundCall",),
}
C_NAMES = {name: struct for struct, names in STRUCTS.items() for name in names}
NOT_OURS = {(calls, "_MethodDef")}  # CPython's


def copies(module: ModuleType) -> dict[str, type[ctypes.Structure]]:
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, ctypes.Structure) and value.__module__ == module.__name__
    }
    return {name: value for name, value in found.items() if (module, name) not in NOT_OURS}


def layout(struct: type[ctypes.Structure]) -> list[tuple[str, int, int]]:
    """Name, offset and size of every field, then of the whole."""
    fields = [(name, getattr(struct, name)) for name, *_ in struct._fields_]
    return [*((name, field.offset, field.size) for name, field in fields), ("", 0, ctypes.sizeof(struct))]


def in_header(struct: str, field: str) -> str:
    """What C calls a field: problems begin with a struct of their own."""
    return (
        f"base.{field}"
        if struct.endswith("_problem") and struct != "kw_problem" and field in ("struct_size", "op")
        else field
    )


def in_c(folder: Path, asked: dict[str, tuple[str, type[ctypes.Structure]]]) -> dict[str, list[tuple[str, int, int]]]:
    """The same of the C structs, by a compiler. One that lacks a field does not compile, which names it."""
    lines = [f'#include "{header}"' for header in HEADERS]
    for number, (c_name, struct) in enumerate(asked.values()):
        fields = [in_header(c_name, name) for name, *_ in struct._fields_]
        pairs = [f"offsetof({c_name}, {field}), sizeof((({c_name}*)0)->{field})" for field in fields]
        lines.append(f"KW_EXPORT const uint64_t layout_{number}[] = {{{', '.join(pairs)}, 0, sizeof({c_name})}};")
    source = folder / "probe.c"
    source.write_text("\n".join(lines) + "\n")
    probe = ctypes.CDLL(str(mocks.compile_shared([*mocks.compilers()[0], str(source)], folder / "probe.so")))
    found = {}
    for number, (label, (_, struct)) in enumerate(asked.items()):
        names = [*(name for name, *_ in struct._fields_), ""]
        numbers = (ctypes.c_uint64 * (2 * len(names))).in_dll(probe, f"layout_{number}")
        found[label] = list(zip(names, numbers[::2], numbers[1::2], strict=True))
    return found


MODULES = (native, calls, extension, cpu_library)


class Wrong(ctypes.Structure):
    """What nobody should write: two fields have changed places."""

    _fields_ = [("struct_size", ctypes.c_uint32), ("dtype_a", ctypes.c_uint32), ("op", ctypes.c_uint32)]


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, int, int]]]:
    """What C says of every copy; one compile."""
    asked = {
        f"{module.__name__}.{name}": (C_NAMES[name.lstrip("_")], struct)  # KeyError: name it above
        for module in MODULES
        for name, struct in copies(module).items()
    }
    return in_c(tmp_path_factory.mktemp("probe"), {**asked, "wrong": ("kw_gemm_problem", Wrong)})


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_copies_are_those_of_the_headers(module: ModuleType, stated: dict[str, list[tuple[str, int, int]]]) -> None:
    structs = copies(module)
    assert structs
    for name, struct in structs.items():
        here, there = layout(struct), stated[f"{module.__name__}.{name}"]
        assert here == there
        # C has no padding in these structs, so bytes that no field covers are a field that the copy lacks.
        assert sum(size for _, _, size in here[:-1]) == ctypes.sizeof(struct)


def test_the_probe_tells_differences(stated: dict[str, list[tuple[str, int, int]]]) -> None:
    there = stated["wrong"]
    assert there == [("struct_size", 0, 4), ("dtype_a", 8, 4), ("op", 4, 4), ("", 0, 224)] != layout(Wrong)


def test_versions_are_those_of_the_headers() -> None:
    text = "\n".join(
        (mocks.NATIVE / "include" / "kernelwright" / name).read_text() for name in ("abi.h", "gemm.h", "dispatcher.h")
    )
    assert f"#define KW_ABI_VERSION {native.ABI_VERSION}u" in text
    assert f"#define KW_DISPATCHER_VERSION {native.DISPATCHER_VERSION}u" in text
