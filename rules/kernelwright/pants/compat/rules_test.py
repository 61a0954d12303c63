from __future__ import annotations

from dataclasses import dataclass

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import digests
from pants.engine.fs import Digest, DigestContents
from pants.engine.rules import QueryRule
from pants.option.global_options import GlobalOptions
from pants.testutil.rule_runner import RuleRunner


@dataclass(frozen=True)
class Name:
    text: str


@dataclass(frozen=True)
class Suffix:
    text: str


@dataclass(frozen=True)
class File:
    digest: Digest


@dataclass(frozen=True)
class Names:
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    digest: Digest


@rule(desc="Find the suffix")
async def find_suffix() -> Suffix:
    return Suffix(".txt")


@rule(desc="Write a file")
async def write_file(name: Name, options: GlobalOptions) -> File:
    suffix = await find_suffix(**implicitly())
    return File(await digests.create([(name.text + suffix.text, b"written")]))


async def _merged(files: tuple[File, ...]) -> Digest:
    last = await write_file(Name("last"), **implicitly())
    return await digests.merge(file.digest for file in (*files, last))


@rule(desc="Write files")
async def write_files(names: Names) -> Files:
    files = await concurrently(write_file(Name(text), **implicitly()) for text in names.texts)
    return Files(await _merged(files))


def test_rules_call_each_other_by_name_and_get_the_rest_from_pants() -> None:
    queries = [QueryRule(Files, (Names,)), QueryRule(DigestContents, (Digest,))]
    runner = RuleRunner(rules=[find_suffix, write_file, write_files, *queries])
    files = runner.request(Files, [Names(("one", "two"))])
    contents = {file.path: file.content for file in runner.request(DigestContents, [files.digest])}
    assert contents == dict.fromkeys(("last.txt", "one.txt", "two.txt"), b"written")
