"""Toolchain trees as files of a test's sandbox."""

from __future__ import annotations

import json

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import digests
from kernelwright.pants.targets.toolchain import ToolchainBackendsField, ToolchainFilesField, ToolchainTreesField
from kernelwright.pants.util_rules import trees
from kernelwright.pants.util_rules.trees import TreeRequest
from pants.core.target_types import FileSourceField
from pants.engine.rules import collect_rules
from pants.engine.target import GeneratedSources, GenerateSourcesRequest
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


class ToolchainAsFiles(GenerateSourcesRequest):
    """The trees as files of a test that depends on them."""

    input = ToolchainFilesField
    output = FileSourceField


@rule(desc="Provide toolchain files", level=LogLevel.DEBUG)
async def toolchain_as_files(request: ToolchainAsFiles) -> GeneratedSources:
    target = request.protocol_target
    folder = f"{target.address.spec_path}/{target.address.target_name}".lstrip("/")
    own = trees.source_trees(target[ToolchainBackendsField].value or ())
    names = dict.fromkeys((*(target[ToolchainTreesField].value or ()), *own))
    prepared = await concurrently(trees.prepare_tree(TreeRequest(name), **implicitly()) for name in names)
    roots = json.dumps({tree.name: f"{folder}/{tree.name}" for tree in prepared})
    parts = [await digests.create([(f"{folder}/trees.json", roots.encode())])]
    for tree in prepared:
        parts.append(await digests.add_prefix(tree.digest, f"{folder}/{tree.name}"))
    return GeneratedSources(await digests.snapshot(await digests.merge(parts)))


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(GenerateSourcesRequest, ToolchainAsFiles)]
