"""The tile engine as a program, from the kernelwright wheel or from this workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from kernelwright.pants.compat import rule
from kernelwright.pants.engine import digests, graph, portable, python_tools
from kernelwright.pants.engine.exit_codes import BadInput
from kernelwright.pants.engine.portable import ForegroundCommand
from kernelwright.pants.subsystems.tile_engine import TileEngineSubsystem
from kernelwright.pants.util_rules.codegen import CodegenTool
from kernelwright.pants.util_rules.pins import PACKAGE, packaged
from pants.backend.python.target_types import PythonSourceField
from pants.core.target_types import ResourceSourceField
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.rules import collect_rules
from pants.engine.target import Target
from pants.util.logging import LogLevel

_MODULE = "kernelwright.tile_engine.interface.cli"
_PACKAGED = "bench.txt"


@dataclass(frozen=True)
class TileEngineTool:
    """The tile engine with its sources captured."""

    tool: python_tools.PythonTool


@rule(desc="Prepare the tile engine", level=LogLevel.DEBUG)
async def prepare_tile_engine(engine: TileEngineSubsystem, generator: CodegenTool) -> TileEngineTool:
    resolve, sources = "kernelwright-tile-engine", EMPTY_DIGEST
    lockfile: Optional[str] = f"resource://{PACKAGE}/{_PACKAGED}"
    if not engine.targets:
        packaged(_PACKAGED)  # raises an error that says what is missing
    else:
        if not engine.resolve:
            raise BadInput("[kernelwright-tile-engine].targets needs [kernelwright-tile-engine].resolve")
        resolve, lockfile = engine.resolve, None
        by_address: dict[str, Target] = {}
        for text in engine.targets:
            address = await graph.option_address(text, "[kernelwright-tile-engine].targets")
            own = await graph.target_at(address, "[kernelwright-tile-engine].targets")
            for target in (own, *await graph.transitive_dependencies(address)):
                by_address[str(target.address)] = target
        files = await graph.sources(by_address.values(), (PythonSourceField, ResourceSourceField), codegen=True)
        sources = await graph.strip_source_roots(files)
    return TileEngineTool(
        python_tools.PythonTool(
            resolve=resolve,
            lockfile=lockfile,
            interpreter_constraints=generator.tool.interpreter_constraints,
            pip_version=generator.tool.pip_version,
            module=_MODULE,
            source_roots=(),
            sources=await digests.merge([sources, generator.archs]),
            arch_path=generator.tool.arch_path,
        )
    )


@dataclass(frozen=True)
class TileEngineRequest:
    """Arguments of the engine, where ``{chroot}`` stands for a folder that holds ``inputs``."""

    arguments: tuple[str, ...]
    inputs: Digest


@dataclass(frozen=True)
class TileEngineCommand:
    """The engine's command line for the foreground."""

    command: ForegroundCommand


@rule(desc="Prepare a run of the tile engine", level=LogLevel.DEBUG)
async def command_of(request: TileEngineRequest, engine: TileEngineTool) -> TileEngineCommand:
    return TileEngineCommand(await portable.foreground_python(engine.tool, request.arguments, request.inputs))


def rules() -> list[object]:
    return [*collect_rules()]
