from __future__ import annotations

import pytest

from pants.engine.fs import EMPTY_DIGEST, CreateDigest, Digest, DigestContents, FileContent
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.rules import Get, QueryRule, rule
from pants.testutil.rule_runner import RuleRunner
from tilewright.pants.util_rules import actions
from tilewright.pants.util_rules.actions import Action, ActionOutputs, ActionsRequest
from tilewright.pants.util_rules.trees import Tree, TreeRequest


@rule
async def one_file_tree(request: TreeRequest) -> Tree:
    digest = await Get(Digest, CreateDigest([FileContent("word", request.name.encode())]))
    return Tree(request.name, digest)


@pytest.fixture
def runner() -> RuleRunner:
    return RuleRunner(
        rules=[
            *actions.rules(),
            one_file_tree,
            QueryRule(ActionOutputs, (ActionsRequest,)),
        ]
    )


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


def test_a_failing_action_shows_all_of_its_output(runner: RuleRunner) -> None:
    action = shell("bad", "echo the reason >&2; exit 7", [], ["never"])
    with pytest.raises(ExecutionError, match=r"(?s)Do bad failed with exit code 7 \(bad\):\nthe reason"):
        runner.request(ActionOutputs, [ActionsRequest((), (action,), ("never",), EMPTY_DIGEST)])
