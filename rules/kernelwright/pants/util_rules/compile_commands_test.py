from __future__ import annotations

import json
from typing import Optional

import pytest

from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import codegen, compile_commands
from kernelwright.pants.util_rules.actions_test import one_file_tree
from kernelwright.pants.util_rules.archs_test import no_toolchains
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from kernelwright.pants.util_rules.compile_commands import FOLDER, CompileCommands, CompileCommandsRequest
from pants.engine.fs import DigestContents
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner


@in_place_of(codegen.run_codegen)
async def fake_codegen(request: CodegenRequest) -> CodegenResponse:
    answer = {
        "commands": [{"directory": "d", "file": "k.hpp", "arguments": [request.request]}],
        "files": [{"path": "arch/k.hpp", "text": "header"}],
        "trees": {"zig": ["wo*"], "clang": ["no_such_file"]},
    }
    return CodegenResponse(json.dumps(answer))


@pytest.mark.parametrize("include", ["src/include", None])
def test_the_generator_describes_commands_and_the_plugin_writes_files(include: Optional[str]) -> None:
    rules = [*compile_commands.rules(), fake_codegen, no_toolchains, one_file_tree]
    runner = RuleRunner(rules=[*rules, QueryRule(CompileCommands, (CompileCommandsRequest,))])
    if include:
        runner.set_options([f"--kernelwright-codegen-include={include}"])
    kernel = {"arch": "gfx942", "spec": {"op": "gemm"}, "origin": "0"}
    made = runner.request(CompileCommands, [CompileCommandsRequest((json.dumps(kernel),), "/checkout")])
    files = {file.path: file.content for file in runner.request(DigestContents, [made.digest])}
    assert sorted(files) == ["compile_commands.json", f"{FOLDER}/__zig/word", f"{FOLDER}/arch/k.hpp"]
    assert (made.count, files[f"{FOLDER}/arch/k.hpp"]) == (1, b"header")
    (entry,) = json.loads(files["compile_commands.json"])
    assert json.loads(entry["arguments"][0]) == {
        "stage": "compile_commands",
        "kernels": [kernel],
        "toolchains": {"host": "zig", "hip": "wheel", "cuda": "clang"},
        "directory": f"/checkout/{FOLDER}",
        **({"include": f"/checkout/{include}"} if include else {}),
    }
