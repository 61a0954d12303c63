"""Every copy of the C structs in ctypes against the headers: names, offsets, sizes, and that nothing is missing.

Structs of ``kernelwright.problems`` are no copies: C and ctypes are made of one description.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from kernelwright import dispatch
from kernelwright.codegen.operations.gemm import testing
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks

INCLUDE = mocks.NATIVE / "include"
HEADERS = [
    str(path.relative_to(INCLUDE))
    for folder in ("kernelwright", "kernelwright/dispatcher", "kernelwright/dispatcher/torch")
    for path in sorted((INCLUDE / folder).glob("*.h"))
]


def modules() -> Iterator[ModuleType]:
    """Those of the bindings, and of what runs kernels without them, that write a struct."""
    for package in (dispatch, testing):
        (root,) = map(Path, package.__path__)
        for path in sorted(root.rglob("*.py")):
            if not path.name.endswith("_test.py") and re.search(r"^class .*\bStructure\)", path.read_text(), re.M):
                inner = ".".join(path.relative_to(root).with_suffix("").parts)
                yield importlib.import_module(f"{package.__name__}.{inner}")


@cache
def copies() -> dict[str, tuple[str, type[ctypes.Structure]]]:
    """What a struct is called in C, and the copy, by the copy's name. Docstrings begin with the name in C."""
    structs = {}
    for module in modules():
        for name, value in vars(module).items():
            own = isinstance(value, type) and value.__module__ == module.__name__
            if own and issubclass(value, ctypes.Structure):
                said = re.match(r"``(\w+)``", value.__doc__ or "")
                assert said, f"{module.__name__}.{name} does not say what it is in C"
                if said[1].startswith("kw_"):  # others are CPython's and DLPack's
                    structs[f"{module.__name__}.{name}"] = said[1], value
    return structs


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
    layouts = {}
    for number, (label, (_, struct)) in enumerate(asked.items()):
        names = [*(name for name, *_ in struct._fields_), ""]
        numbers = (ctypes.c_uint64 * (2 * len(names))).in_dll(probe, f"layout_{number}")
        layouts[label] = list(zip(names, numbers[::2], numbers[1::2], strict=True))
    return layouts


class Wrong(ctypes.Structure):
    """What nobody should write: two fields have changed places."""

    _fields_ = [("struct_size", ctypes.c_uint32), ("dtype_a", ctypes.c_uint32), ("op", ctypes.c_uint32)]


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, int, int]]]:
    """What C says of every copy; one compile."""
    return in_c(tmp_path_factory.mktemp("probe"), {**copies(), "wrong": ("kw_gemm_problem", Wrong)})


@pytest.mark.parametrize("name", copies())
def test_copies_are_those_of_the_headers(name: str, stated: dict[str, list[tuple[str, int, int]]]) -> None:
    here = layout(copies()[name][1])
    assert here == stated[name]
    # C has no padding in these structs, so bytes that no field covers are a field that the copy lacks.
    assert sum(size for _, _, size in here[:-1]) == here[-1][2]


def test_copies_were_found() -> None:
    c_names = {c_name for c_name, _ in copies().values()}
    assert {"kw_problem", "kw_kernel", "kw_library", "kw_heuristic"} <= c_names


def test_the_probe_tells_differences(stated: dict[str, list[tuple[str, int, int]]]) -> None:
    there = stated["wrong"]
    assert there == [("struct_size", 0, 4), ("dtype_a", 8, 4), ("op", 4, 4), ("", 0, 224)] != layout(Wrong)


def test_versions_are_those_of_the_headers() -> None:
    text = "\n".join(
        (mocks.NATIVE / "include" / "kernelwright" / name).read_text() for name in ("abi.h", "gemm.h", "dispatcher.h")
    )
    assert f"#define KW_ABI_VERSION {native.ABI_VERSION}u" in text
    assert f"#define KW_DISPATCHER_VERSION {native.DISPATCHER_VERSION}u" in text
