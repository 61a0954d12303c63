"""``compile_commands.json``: how an editor on this machine compiles kernels, with the headers of the toolchains."""

from __future__ import annotations

import json
from dataclasses import dataclass

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import digests
from kernelwright.pants.subsystems.codegen import CodegenSubsystem
from kernelwright.pants.util_rules import codegen, trees
from kernelwright.pants.util_rules.codegen import CodegenRequest
from kernelwright.pants.util_rules.toolchains import Toolchains
from kernelwright.pants.util_rules.trees import TreeRequest
from pants.engine.fs import Digest
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel

FOLDER = "dist/compile_commands"
"""Where generated files and toolchain headers are written, relative to the root of the workspace."""


@dataclass(frozen=True)
class CompileCommandsRequest:
    """Kernels as JSON texts ``{"arch", "spec", "origin"}``; ``root`` is the absolute path of the workspace."""

    kernels: tuple[str, ...]
    root: str


@dataclass(frozen=True)
class CompileCommands:
    """``compile_commands.json`` with ``count`` entries, and the files below :data:`FOLDER` that its commands read."""

    digest: Digest
    count: int


@rule(desc="Write compile commands for editors", level=LogLevel.DEBUG)
async def compile_commands(
    request: CompileCommandsRequest, toolchains: Toolchains, options: CodegenSubsystem
) -> CompileCommands:
    body = {
        "stage": "compile_commands",
        "kernels": [json.loads(kernel) for kernel in request.kernels],
        "toolchains": toolchains.to_json(),
        "directory": f"{request.root}/{FOLDER}",
    }
    if options.include:
        body["include"] = f"{request.root}/{options.include}"
    text = json.dumps(body, sort_keys=True)
    response = await codegen.run_codegen(
        CodegenRequest("plan", text, "Plan for editors", "the kernels goal"), **implicitly()
    )
    described = response.parse()
    files = [(f"{FOLDER}/{file['path']}", file["text"].encode()) for file in described["files"]]
    files.append(("compile_commands.json", (json.dumps(described["commands"], indent=1) + "\n").encode()))
    parts = [await digests.create(files)]
    mounted = await concurrently(trees.prepare_tree(TreeRequest(name), **implicitly()) for name in described["trees"])
    for tree in mounted:
        headers = await digests.subset(tree.digest, described["trees"][tree.name])
        parts.append(await digests.add_prefix(headers, f"{FOLDER}/{tree.mount}"))
    return CompileCommands(await digests.merge(parts), len(described["commands"]))


def rules() -> list[object]:
    return [*collect_rules()]
