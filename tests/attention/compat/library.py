"""libdispatcher_fmha_lib.so, packaged or compiled here."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from kernelwright.dispatch.testdata import mocks

NATIVE = Path(__file__).resolve().parents[3] / "dispatcher_cpp"


def fmha_library(folder: Path) -> Path:
    """The packaged file, or one that is compiled to a folder."""
    file = resources.files("kernelwright.dispatch").joinpath("libdispatcher_fmha_lib.so")
    if file.is_file():
        return Path(str(file))
    folders = ("src", "compat/common", "compat/attention")
    sources = [str(path) for each in folders for path in sorted((NATIVE / each).rglob("*.cpp"))]
    flags = ["-std=c++17", "-O1", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
    output = folder / "libdispatcher_fmha_lib.so"
    return mocks.compile_shared([*mocks.compilers()[1], *flags, *sources, "-ldl", "-lpthread"], output)
