"""The arguments of kernels by a code object's metadata (LLVM, AMDGPUUsage, "Code Object V5 Metadata")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgpack

METADATA_NOTE = 32  # NT_AMDGPU_METADATA, in notes of the owner "AMDGPU"
_HIDDEN = "hidden_"


class HiddenArgument(NamedTuple):
    """An argument that the runtime adds: ``kind`` as in the metadata, without ``hidden_``; offset and size in bytes."""

    kind: str
    offset: int
    nbytes: int


class Arguments(NamedTuple):
    """A kernel's arguments: the first ``explicit_bytes`` come from the caller, the hidden ones from the runtime."""

    explicit_bytes: int
    hidden: tuple[HiddenArgument, ...]


def read_arguments(note: bytes) -> Mapping[str, Arguments]:
    """Kernel name → its arguments, of a metadata note (MessagePack). Raises whatever damage leads to."""
    metadata = _metadata(note)
    return {kernel[".symbol"].removesuffix(".kd"): _arguments(kernel) for kernel in metadata["amdhsa.kernels"]}


def _metadata(note: bytes) -> Any:
    """The map that the note starts with; bytes that fill its last word follow. Raises ValueError if it is damaged."""
    decoder = msgpack.Unpacker()
    decoder.feed(note)
    try:
        return decoder.unpack()
    except msgpack.OutOfData:
        raise ValueError("the metadata note is cut off") from None


def _arguments(kernel: Mapping[str, Any]) -> Arguments:
    explicit, hidden = 0, []
    room = int(kernel[".kernarg_segment_size"])
    for argument in kernel.get(".args", ()):
        kind, offset, nbytes = str(argument[".value_kind"]), int(argument[".offset"]), int(argument[".size"])
        if offset < 0 or nbytes < 0 or offset + nbytes > room:
            raise ValueError(f"an argument at {offset} of {nbytes} bytes lies outside the {room} bytes of its kernel")
        if kind.startswith(_HIDDEN):
            hidden.append(HiddenArgument(kind.removeprefix(_HIDDEN), offset, nbytes))
        else:
            explicit = max(explicit, offset + nbytes)
    return Arguments(explicit, tuple(hidden))
