"""Runs the code generator to expand kernel sets, plan libraries and write manifests."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests, portable, python_tools
from kernelwright.pants.engine.exit_codes import BAD_INPUT
from kernelwright.pants.generator_data import generator_data
from kernelwright.pants.performance import Tuning
from kernelwright.pants.subsystems.codegen import CodegenSubsystem
from kernelwright.pants.util_rules.pins import PACKAGE, packaged
from pants.backend.python.subsystems.setup import PythonSetup
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.process import FallibleProcessResult
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel

_MODULE = "kernelwright.codegen"
_PACKAGED = "codegen.txt"


class CodegenError(Exception):
    """The generator refused its input; its own message names the field, the value and the allowed values.

    ``exit_code`` is the generator's: 2 for bad input, 4 for a defect.
    """

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class CodegenTool:
    """The generator with its sources captured; ``archs`` are architecture files of the workspace."""

    tool: python_tools.PythonTool
    archs: Digest = EMPTY_DIGEST


@rule(desc="Prepare the code generator", level=LogLevel.DEBUG)
async def prepare_codegen(codegen: CodegenSubsystem, python: PythonSetup, tuning: Tuning) -> CodegenTool:
    # Every larger task of the plugin starts with the generator, so the process is tuned by then.
    archs, arch_path = EMPTY_DIGEST, tuple(codegen.arch_path)
    if arch_path:
        files = [f"{folder}/*.json" for folder in arch_path]
        archs = await digests.workspace_files(files, "[kernelwright-codegen].arch_path")
    pip_version = str(getattr(python.pip_version, "value", python.pip_version))  # an enumeration on Pants 2.17
    if not codegen.source_roots:
        packaged(_PACKAGED)  # raises an error that says what is missing
        return CodegenTool(
            python_tools.PythonTool(
                resolve="kernelwright-codegen",
                lockfile=f"resource://{PACKAGE}/{_PACKAGED}",
                interpreter_constraints=tuple(codegen.interpreter_constraints),
                pip_version=pip_version,
                module=_MODULE,
                source_roots=(),
                sources=archs,
                arch_path=arch_path,
            ),
            archs,
        )
    if not codegen.resolve:
        raise CodegenError("[kernelwright-codegen].source_roots needs [kernelwright-codegen].resolve")
    globs = [f"{root}/**/*{suffix}" for root in codegen.source_roots for suffix in (".py", ".json", ".jinja", ".conf")]
    sources = await digests.workspace_files([*globs, "!**/*_test.py"], "[kernelwright-codegen].source_roots")
    return CodegenTool(
        python_tools.PythonTool(
            resolve=codegen.resolve,
            lockfile=None,
            interpreter_constraints=tuple(codegen.interpreter_constraints),
            pip_version=pip_version,
            module=_MODULE,
            source_roots=tuple(codegen.source_roots),
            sources=await digests.merge([sources, archs]),
            arch_path=arch_path,
        ),
        archs,
    )


@dataclass(frozen=True)
class CodegenRequest:
    """One call of the generator: a JSON request, the files that it reads, and a description for the log. ``origin`` is
    for messages.

    ``outputs`` are the files that it writes besides its response.
    """

    command: str
    request: str
    description: str
    origin: str
    inputs: Digest = EMPTY_DIGEST
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodegenResponse:
    """The generator's response as JSON text, and the files that it wrote."""

    text: str
    outputs: Digest = EMPTY_DIGEST

    def parse(self) -> Any:
        """Return the response as Python values."""
        return json.loads(self.text)


@rule(desc="Run the code generator", level=LogLevel.DEBUG)
async def run_codegen(request: CodegenRequest, codegen: CodegenTool) -> CodegenResponse:
    request_file = await digests.create([("request.json", request.request.encode())])
    inputs = await digests.merge([request_file, request.inputs])
    # Named after the request, so that a cache that mixes up its entries is noticed.
    response = f"response-{hashlib.sha256(request.request.encode()).hexdigest()[:16]}.json"
    result = await portable.run_python(
        codegen.tool,
        (request.command, "--request", "request.json", "--response", response),
        inputs,
        (response, *request.outputs),
        request.description,
    )
    if result.exit_code != 0:
        raise CodegenError(f"{request.origin}: {result.stderr.decode().strip()}", result.exit_code)
    files = await digests.read(await digests.subset(result.output_digest, [response]))
    return CodegenResponse(files[response].decode(), await digests.subset(result.output_digest, request.outputs))


@dataclass(frozen=True)
class ModuleRequest:
    """A command of a plan: a module of the generator that runs with the few generator files that such modules read.

    Therefore edits of all other files of the generator do not rerun it.
    """

    module: str
    arguments: tuple[str, ...]
    inputs: Digest
    outputs: tuple[str, ...]
    description: str
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ModuleResult:
    """Its exit status, and the files that it wrote."""

    process: FallibleProcessResult


@rule(desc="Run a module of the code generator", level=LogLevel.DEBUG)
async def run_module(request: ModuleRequest, codegen: CodegenTool) -> ModuleResult:
    tool = codegen.tool
    globs = [f"{root}/{file}" for root in tool.source_roots for file in generator_data()["python"]["files"]]
    sources = await digests.subset(tool.sources, globs)
    process = await portable.run_python(
        replace(tool, module=request.module, sources=sources, arch_path=()),
        request.arguments,
        request.inputs,
        request.outputs,
        request.description,
        request.env,
    )
    return ModuleResult(process)


@dataclass(frozen=True)
class ArchsRequest:
    """Asks which architectures have devices of a kind: ``cpu``, ``cuda`` or ``hip``."""

    kind: str


@dataclass(frozen=True)
class Archs:
    """Architectures by name, including those of the workspace."""

    names: frozenset[str]


@rule(desc="List architectures", level=LogLevel.DEBUG)
async def list_archs(request: ArchsRequest) -> Archs:
    asked = CodegenRequest("plan", json.dumps({"stage": "archs"}), "List architectures", "architectures")
    response = await run_codegen(asked, **implicitly())
    return Archs(frozenset(one["name"] for one in response.parse()["archs"] if one["kind"] == request.kind))


def rules() -> list[object]:
    return [*collect_rules()]
