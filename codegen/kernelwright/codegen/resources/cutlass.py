"""Reads the resources of a compiled CUTLASS kernel (registers, shared memory, spills) from its object file.

The object is an ELF file of the host; section ``.nv_fatbin`` holds the uncompressed device code, itself an ELF file
whose ``.nv.info`` sections carry what ``ptxas -v`` prints. Attribute numbers are those of ``cuobjdump -elf``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelwright.codegen.operation import Expectation

_MAGIC = b"\x7fELF"
_EM_CUDA = 190
_INSTRUCTION_BYTES = 16
_RESERVED_SHARED_BYTES = 1024  # per block, reserved for the system; ptxas counts them, limits do not

# EIATTR numbers of .nv.info; each such entry ends in a 32-bit value, or holds a list of them.
_MAX_THREADS, _FRAME_SIZE, _REGCOUNT = 0x05, 0x11, 0x2F
_SIZED_VALUE = 4  # format of an entry whose payload follows it

# The low 9 bits of a Hopper instruction name the operation, the next 3 the source of its operands.
_OPERATION = 0x1FF
# HGMMA, IGMMA, QGMMA: wgmma on 16-bit types, integers, 8-bit floats; HMMA: mma.sync on 16-bit types.
_MATRIX = frozenset({0x1F0, 0x1F1, 0x1F3, 0x03C})
_LOCAL = frozenset({0x183, 0x187})  # LDL, STL: emitted for spills


class ReportError(ValueError):
    """An object without readable device code of exactly one kernel."""


@dataclass(frozen=True)
class _Section:
    name: str
    size: int
    data: bytes


def read_report(data: bytes, expects: Expectation) -> dict[str, int]:
    """Return the resources of the device functions in the object file ``data``.

    ``registers`` per thread, ``block_size`` in threads, ``shared_bytes`` (static and dynamic, with ``stages`` of A and
    B in them), ``stack_bytes`` per thread, ``spill_instructions`` (local loads and stores), ``matrix_instructions``
    (wgmma, mma.sync) and ``code_bytes``. Raises ReportError if ``data`` is not such an object, or if the functions are
    not what is expected.
    """
    try:
        host = _sections(data)
        device = _sections(_device_code(host))
        return _read(host, device, expects)
    except (struct.error, IndexError) as error:
        raise ReportError(f"object with truncated or foreign device code: {error}") from None


def _read(host: Mapping[str, _Section], device: Mapping[str, _Section], expects: Expectation) -> dict[str, int]:
    kernels = [name.removeprefix(".text.") for name in device if name.startswith(".text.")]
    kernels = [name for name in kernels if not any(helper in name for helper in expects.helpers)]
    if len(kernels) != expects.device_kernels:
        raise ReportError(f"device code of {len(kernels)} kernels; expected {expects.device_kernels}")
    codes = [device[f".text.{kernel}"].data for kernel in kernels]
    operations = [
        struct.unpack_from("<H", code, at)[0] & _OPERATION
        for code in codes
        for at in range(0, len(code), _INSTRUCTION_BYTES)
    ]
    module = list(_attributes(device[".nv.info"].data))  # one entry per kernel; helpers use less of everything
    shared = [device[f".nv.shared.{kernel}"].size for kernel in kernels if f".nv.shared.{kernel}" in device]
    if ".kernelwright.resources" not in host:
        raise ReportError("no section .kernelwright.resources; not a kernelwright kernel object")
    _, dynamic_shared, threads, stages = struct.unpack_from("<4I", host[".kernelwright.resources"].data)
    for kernel in kernels:
        compiled = dict(_attributes(device[f".nv.info.{kernel}"].data))[_MAX_THREADS][0]
        if compiled != threads:
            raise ReportError(f"host launches {threads} threads, device code was compiled for {compiled}")
    matrix = sum(operation in _MATRIX for operation in operations)
    if expects.matrix_instructions and matrix == 0:
        raise ReportError(f"{', '.join(kernels)} has no matrix instruction (wgmma or mma.sync)")
    return {
        "registers": max(values[1] for number, values in module if number == _REGCOUNT),
        "block_size": threads,
        "shared_bytes": dynamic_shared + max(0, max(shared, default=0) - _RESERVED_SHARED_BYTES),
        "stages": stages,
        "stack_bytes": max(values[1] for number, values in module if number == _FRAME_SIZE),
        "spill_instructions": sum(operation in _LOCAL for operation in operations),
        "matrix_instructions": matrix,
        "code_bytes": sum(map(len, codes)),
    }


def _device_code(host: Mapping[str, _Section]) -> bytes:
    fatbin = host[".nv_fatbin"].data if ".nv_fatbin" in host else b""
    start = fatbin.find(_MAGIC)
    if start < 0 or struct.unpack_from("<H", fatbin, start + 18)[0] != _EM_CUDA:
        raise ReportError("no uncompressed device code in section .nv_fatbin")
    return fatbin[start:]


def _sections(elf: bytes) -> dict[str, _Section]:
    if not elf.startswith(_MAGIC):
        raise ReportError("not an ELF file")
    (offset,) = struct.unpack_from("<Q", elf, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, offset + index * entry_size) for index in range(count)]
    names = elf[headers[names_index][4] :]
    sections = {}
    for name_at, kind, _, _, start, size in headers:
        name = names[name_at : names.index(b"\0", name_at)].decode()
        data = b"" if kind == 8 else elf[start : start + size]  # SHT_NOBITS: size without bytes
        sections[name] = _Section(name, size, data)
    return sections


def _attributes(info: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED_VALUE:
            yield attribute, struct.unpack_from(f"<{size // 4}I", info, at)
            at += size
