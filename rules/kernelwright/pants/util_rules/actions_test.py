from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.pants.engine import digests, processes
from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import actions, codegen, trees
from kernelwright.pants.util_rules.actions import Action, ActionOutputs, ActionsRequest
from kernelwright.pants.util_rules.codegen import ModuleRequest, ModuleResult
from kernelwright.pants.util_rules.trees import Tree, TreeRequest
from pants.engine.fs import EMPTY_DIGEST, DigestContents
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.process import Process
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner


@in_place_of(trees.prepare_tree)
async def one_file_tree(request: TreeRequest) -> Tree:
    return Tree(request.name, await digests.create([("word", request.name.encode())]))


@in_place_of(codegen.run_module)
async def shell_as_module(request: ModuleRequest) -> ModuleResult:
    script = f"(cat in.s; echo {request.module} $A) >{request.outputs[0]}; exit {request.arguments[0]}"
    process = Process(
        ("/bin/sh", "-c", script),
        description=request.description,
        input_digest=request.inputs,
        output_files=request.outputs,
        env=dict(request.env),
    )
    return ModuleResult(await processes.try_run(process))


def make_runner(*options: str) -> RuleRunner:
    return RuleRunner(
        rules=[
            *actions.rules(),
            one_file_tree,
            shell_as_module,
            QueryRule(ActionOutputs, (ActionsRequest,)),
        ],
        bootstrap_args=options,
        isolated_local_store=not options,
    )


@pytest.fixture
def runner() -> RuleRunner:
    return make_runner()


def shell(name: str, script: str, inputs: list[str], outputs: list[str], trees: tuple[str, ...] = ()) -> Action:
    return Action(
        id=name,
        description=f"Do {name}",
        argv=("/bin/sh", "-c", script),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        trees=trees,
        env=(("PATH", "/usr/bin:/bin"),),
        caches=(),
        memory_mb=1,
    )


def test_actions_feed_each_other_and_see_their_trees(runner: RuleRunner) -> None:
    request = ActionsRequest(
        files=(("a/in.txt", "hello "),),
        actions=(
            shell("first", "cat a/in.txt __abi/word > mid.txt", ["a/in.txt"], ["mid.txt"], ("abi",)),
            shell("second", "test ! -e a/in.txt && cat mid.txt mid.txt > out.txt", ["mid.txt"], ["out.txt"]),
        ),
        keep=("out.txt",),
    )
    outputs = runner.request(ActionOutputs, [request])
    contents = runner.request(DigestContents, [outputs.digest])
    assert [(file.path, file.content) for file in contents] == [("out.txt", b"hello abihello abi")]


def test_the_generators_python_runs_its_own_modules(runner: RuleRunner) -> None:
    def counting(code: str) -> ActionsRequest:
        made = shell("count", "", ["in.s"], ["out.json"])
        argv, env = ("__python", "-m", "counting", code), (*made.env, ("A", "b"))
        made = replace(made, argv=argv, env=env)
        return ActionsRequest(files=(("in.s", "text\n"),), actions=(made,), keep=("out.json",))

    outputs = runner.request(ActionOutputs, [counting("0")])
    (made,) = runner.request(DigestContents, [outputs.digest])
    assert made.content == b"text\ncounting b\n"
    with pytest.raises(ExecutionError, match=r"Do count failed with exit code 3 \(count\)"):
        runner.request(ActionOutputs, [counting("3")])


def test_a_failing_action_shows_all_of_its_output(runner: RuleRunner) -> None:
    action = shell("bad", "echo the reason >&2; exit 7", [], ["never"])
    with pytest.raises(ExecutionError, match=r"(?s)Do bad failed with exit code 7 \(bad\):\nthe reason"):
        runner.request(ActionOutputs, [ActionsRequest((), (action,), ("never",), EMPTY_DIGEST)])


def test_a_damaged_input_is_not_compiled(tmp_path: Path) -> None:
    def request(name: str) -> ActionsRequest:
        text = f"{'x' * 5000} once {'y' * 5000}"
        copy = shell(name, f": {name}; cat in.txt > out.txt", ["in.txt"], ["out.txt"])
        return ActionsRequest(files=(("in.txt", text),), actions=(copy,), keep=("out.txt",))

    store = tmp_path / "store"
    make_runner(f"--local-store-dir={store}").request(ActionOutputs, [request("first")])
    assert overwrite(store, b"x once y", b"x 0nce y") > 0
    with pytest.raises(ExecutionError, match=r"(?s)local store is damaged: Do second: in\.txt: FAILED.*build again"):
        make_runner(f"--local-store-dir={store}").request(ActionOutputs, [request("second")])


def overwrite(folder: Path, old: bytes, new: bytes) -> int:
    count = 0
    for file in folder.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        position = data.find(old)
        while position >= 0:
            with open(file, "r+b") as stream:
                stream.seek(position)
                stream.write(new)
            count += 1
            position = data.find(old, position + 1)
    return count
