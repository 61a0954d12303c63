"""Hash-pinned requirements files: those of the workspace, or those that the plugin carries."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass

from kernelwright.pants.compat import rule
from kernelwright.pants.engine import digests
from kernelwright.pants.engine.exit_codes import BadInput
from kernelwright.pants.subsystems.codegen import CodegenSubsystem
from pants.engine.fs import Digest
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel

PACKAGE = "kernelwright.pants.pins"
# One path for both origins, so that the digest is the same.
_FOLDER = "3rdparty/toolchains"


class PinsError(BadInput):
    """A plugin that was not built as a wheel, without a folder of the workspace named."""


@dataclass(frozen=True)
class PinsRequest:
    """A requirements file by its name without ``.txt``."""

    name: str


@dataclass(frozen=True)
class Pins:
    """The file's text, its path, and a digest that holds it there."""

    text: str
    path: str
    digest: Digest


@rule(desc="Read pinned requirements", level=LogLevel.DEBUG)
async def read_pins(request: PinsRequest, codegen: CodegenSubsystem) -> Pins:
    path = f"{_FOLDER}/{request.name}.txt"
    if codegen.pins:
        source = f"{codegen.pins}/{request.name}.txt"
        files = await digests.read(await digests.workspace_files([source], "[kernelwright-codegen].pins"))
        text = files[source]
    else:
        text = packaged(f"{request.name}.txt")
    return Pins(text.decode(), path, await digests.create([(path, text)]))


def packaged(name: str) -> bytes:
    """Return a file of the plugin's own pins. Raises PinsError if the plugin runs from its sources."""
    try:
        text = pkgutil.get_data(PACKAGE, name)
    except OSError:
        text = None
    if text is None:
        raise PinsError(
            f"this plugin carries no {name}; install kernelwright-pants from its wheel, or set "
            "[kernelwright-codegen] source_roots, resolve, include and pins to folders of this workspace"
        )
    return text


def rules() -> list[object]:
    return [*collect_rules()]
