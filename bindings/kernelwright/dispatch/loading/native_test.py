"""What ``kw_dispatcher_add_library`` loads: a file whose digest is that of the manifest beside it, as in Python."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks

LOAD_FAILED, UNCHECKED = 11, 1


@pytest.fixture
def dispatcher() -> Iterator[ctypes.c_void_p]:
    mocks.native_library()
    handle = ctypes.c_void_p()
    assert native.library().kw_dispatcher_create(None, ctypes.byref(handle)) == native.OK
    yield handle
    native.library().kw_dispatcher_destroy(handle)


def add(dispatcher: ctypes.c_void_p, path: Path, digest_check: int = 0) -> tuple[int, str]:
    """The status, and the text of a failure."""
    options = native.LibraryOptions(struct_size=ctypes.sizeof(native.LibraryOptions), digest_check=digest_check)
    status = native.library().kw_dispatcher_add_library(dispatcher, os.fsencode(path), ctypes.byref(options))
    return status, native.library().kw_last_error().decode() if status else ""


def test_a_library_and_its_manifest(dispatcher: ctypes.c_void_p, tmp_path: Path) -> None:
    file = mocks.write_library(tmp_path) / "libmock.so"
    assert add(dispatcher, file) == (native.OK, "")
    assert native.library().kw_dispatcher_kernel_count(dispatcher) == len(mocks.KERNELS)


def test_a_flipped_bit(dispatcher: ctypes.c_void_p, tmp_path: Path) -> None:
    file = mocks.write_library(tmp_path) / "libmock.so"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    status, error = add(dispatcher, file)
    assert status == LOAD_FAILED and "libmock.so beside it has sha256" in error and "copy or build both again" in error


def test_no_manifest_is_an_explicit_choice(dispatcher: ctypes.c_void_p, tmp_path: Path) -> None:
    file = mocks.write_library(tmp_path) / "libmock.so"
    (tmp_path / "manifest.json").unlink()
    status, error = add(dispatcher, file)
    assert status == LOAD_FAILED and "manifest.json: cannot be opened" in error and "KW_DIGEST_UNCHECKED" in error
    assert add(dispatcher, file, UNCHECKED) == (native.OK, "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"library": "libother.so"}, ('describes "libother.so", not libmock.so', "folder with its own manifest")),
        ({"sha256": "0" * 64}, ("the manifest says " + "0" * 64,)),
        ({"sha256": "f00d"}, ("allowed: 64 hex digits",)),
        ({"sha256": ...}, ("sha256 is missing",)),
        ({"schema_version": 2}, ("schema_version is 2; allowed: 1",)),
    ],
)
def test_the_manifest_of_another_file(
    dispatcher: ctypes.c_void_p, tmp_path: Path, changes: dict[str, object], words: tuple[str, ...]
) -> None:
    folder = mocks.edit_manifest(mocks.write_library(tmp_path), **changes)
    status, error = add(dispatcher, folder / "libmock.so")
    assert status == LOAD_FAILED and all(word in error for word in words), error


def test_descriptors_that_a_program_closed_mislead_nobody(tmp_path: Path) -> None:
    """In a process of its own, which closes all descriptors, as programs that become daemons do."""
    mocks.native_library()
    files = [
        mocks.write_library(tmp_path / name, name=name, seed=seed) for name, seed in zip("abcd", "0123", strict=True)
    ]
    paths = [str(folder / f"lib{folder.name}.so") for folder in files]
    code = f"""
import ctypes, json, os
from kernelwright.dispatch import KernelLibrary
from kernelwright.dispatch.core import native

def name(path):
    handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(1 << 20)
    c = native.library()
    assert c.kw_dispatcher_create(None, ctypes.byref(handle)) == 0
    assert c.kw_dispatcher_add_library(handle, path.encode(), None) == 0, c.kw_last_error()
    assert c.kw_dispatcher_export_json(handle, text, len(text), None) == 0
    (library,) = json.loads(text.value)["libraries"]
    return library["name"]

a, b, c, d = {paths!r}
assert KernelLibrary.load(a).name == "a" == name(a)
assert name(b) == "b" == name(b)
os.closerange(3, 100)
assert [name(path) for path in (c, d, a, b)] == ["c", "d", "a", "b"]
"""
    folders = os.pathsep.join(path for path in sys.path if path)
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": folders}, check=True, timeout=60)


def test_a_loaded_library_that_is_written_into_is_refused(dispatcher: ctypes.c_void_p, tmp_path: Path) -> None:
    """The dynamic linker would give the old one, of which some pages may be new."""
    file = mocks.write_library(tmp_path, name="overwritten", seed="7") / "liboverwritten.so"
    assert add(dispatcher, file) == (native.OK, "")
    with file.open("ab") as stream:
        stream.write(b"behind the last section")
    mocks.edit_manifest(tmp_path, sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    handle = ctypes.c_void_p()
    assert native.library().kw_dispatcher_create(None, ctypes.byref(handle)) == native.OK
    status, error = add(handle, file)
    native.library().kw_dispatcher_destroy(handle)
    assert status == LOAD_FAILED and "was overwritten since; start the process anew" in error
