from __future__ import annotations

import pytest

from kernelwright.pants.goals import package_site
from kernelwright.pants.goals.package_site import StaticSiteFieldSet
from kernelwright.pants.targets.static_site import StaticSiteTarget
from pants.core.goals.package import BuiltPackage
from pants.core.target_types import FilesGeneratorTarget, FileTarget
from pants.core.util_rules import source_files, stripped_source_files
from pants.engine.addresses import Address
from pants.engine.fs import DigestContents
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner


def packaged(site: str) -> tuple[BuiltPackage, list[str]]:
    """What ``package`` makes of a site over three files, and the paths of its files."""
    runner = RuleRunner(
        rules=[
            *package_site.rules(),
            *source_files.rules(),  # type: ignore[no-untyped-call]  # Pants has no types for it
            *stripped_source_files.rules(),  # type: ignore[no-untyped-call]
            QueryRule(BuiltPackage, [StaticSiteFieldSet]),
        ],
        target_types=[StaticSiteTarget, FileTarget, FilesGeneratorTarget],
    )
    runner.write_files({"d/html/index.html": "a", "d/html/x/page.html": "b", "d/other.txt": "c"})
    runner.write_files(
        {"d/BUILD": f'files(name="all", sources=["**/*.html", "*.txt"])\nstatic_site(name="site", {site})\n'}
    )
    target = runner.get_target(Address("d", target_name="site"))
    built = runner.request(BuiltPackage, [StaticSiteFieldSet.create(target)])
    files = runner.request(DigestContents, [built.digest])
    return built, sorted(file.path for file in files)


def test_the_folder_is_written_and_its_page_is_named_last() -> None:
    built, paths = packaged('dependencies=[":all"], root="d/html", output_folder="docs/html"')
    assert paths == ["docs/html/index.html", "docs/html/x/page.html"]
    (artifact,) = built.artifacts
    assert artifact.relpath == "docs/html" and artifact.extra_log_lines == ("Open dist/docs/html/index.html",)


@pytest.mark.parametrize(
    ("site", "message"),
    [
        ('dependencies=[":all"], root="d", output_folder="o"', "d:site: its dependencies have no file d/index.html"),
        ('dependencies=[":all"], root="d/html", output_folder="o", index="i.html"', "no file d/html/i.html"),
        ('dependencies=[":all"], root="d/html", output_folder="../o"', r"output_folder is '\.\./o', which leaves"),
    ],
)
def test_a_site_without_its_page_or_outside_of_dist_is_refused(site: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        packaged(site)
