"""``package``: a folder of files, written to ``dist``, and the path of the page to open."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.pants.compat import rule
from kernelwright.pants.engine import digests, graph
from kernelwright.pants.engine.dist_paths import checked_dist_path
from kernelwright.pants.engine.exit_codes import BadInput
from kernelwright.pants.targets.static_site import SiteFolderField, SiteIndexField, SiteRootField
from pants.core.goals.package import BuiltPackage, BuiltPackageArtifact, PackageFieldSet
from pants.core.target_types import FileSourceField
from pants.engine.rules import collect_rules
from pants.engine.target import Dependencies
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


class SiteError(BadInput):
    """A site without its page."""


@dataclass(frozen=True)
class StaticSiteFieldSet(PackageFieldSet):
    """Marks ``static_site`` targets for the ``package`` goal."""

    required_fields = (SiteRootField, SiteFolderField)

    dependencies: Dependencies
    root: SiteRootField
    folder: SiteFolderField
    index: SiteIndexField


@rule(desc="Package site", level=LogLevel.DEBUG)
async def package_static_site(field_set: StaticSiteFieldSet) -> BuiltPackage:
    folder = checked_dist_path(field_set.folder.value or "", f"{field_set.address}: the field output_folder")
    root, index = field_set.root.value or "", field_set.index.value or ""
    targets = await graph.direct_dependencies(field_set.dependencies)
    files = await graph.sources(targets, (FileSourceField,), codegen=True)
    site = await digests.remove_prefix(await digests.subset(files, [f"{root}/**"]), root)
    if index not in (await digests.snapshot(site)).files:
        raise SiteError(f"{field_set.address}: its dependencies have no file {root}/{index}; correct root, or index")
    opened = BuiltPackageArtifact(folder, extra_log_lines=(f"Open dist/{folder}/{index}",))
    return BuiltPackage(await digests.add_prefix(site, folder), (opened,))


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(PackageFieldSet, StaticSiteFieldSet)]
