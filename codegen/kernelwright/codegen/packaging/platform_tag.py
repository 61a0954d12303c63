"""The platform tag of a wheel: the oldest C library on which every shared library in it loads (PEP 600)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kernelwright.codegen.violations import SpecError

NO_PLATFORM = "any"

# Parts of glibc: PEP 600 lets a wheel need these (and a few more that our libraries do not need).
_GLIBC = {
    *("libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libutil.so.1"),
    "ld-linux-x86-64.so.2",
}
# Older versions have no Python that these wheels run on.
_OLDEST = (2, 17)
_X86_64 = "EM_X86_64"


def platform_tag(files: Mapping[str, bytes]) -> str:
    """Return e.g. ``manylinux_2_17_x86_64``; ``any`` if no file is a shared library.

    Raises SpecError for a library that is not for x86-64 Linux, or that needs anything beyond glibc.
    """
    libraries = {name: data for name, data in files.items() if data[:4] == b"\x7fELF"}
    if not libraries:
        return NO_PLATFORM
    newest = max([_OLDEST, *(needs for name, data in libraries.items() for needs in glibc_needs(name, data))])
    return f"manylinux_{newest[0]}_{newest[1]}_x86_64"


def glibc_needs(name: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the glibc versions whose symbols a library needs, from its ``.gnu.version_r``. SpecError as above."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(data))
        if file["e_machine"] != _X86_64:
            raise SpecError(f"{name} is for {file['e_machine']}; allowed: {_X86_64}")
        dynamic = file.get_section_by_name(".dynamic")
        needed = [tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"] if dynamic else []
        table = file.get_section_by_name(".gnu.version_r")
        versions = [entry.name for _, entries in table.iter_versions() for entry in entries] if table else []
    except ELFError as error:
        raise SpecError(f"{name} is no shared library: {error}") from None
    foreign = sorted(set(needed) - _GLIBC)
    if foreign:
        raise SpecError(f"{name} needs {', '.join(foreign)}; allowed in a wheel: {', '.join(sorted(_GLIBC))}")
    for version in versions:
        match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if match is None:
            raise SpecError(f"{name} needs the symbol version {version}; allowed: GLIBC_*")
        yield int(match[1]), int(match[2])
