"""``package``: wheels, written to ``dist/``, which then serves ``pip install --find-links``."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests
from kernelwright.pants.targets.wheels import WheelLicensesField, WheelProjectField
from kernelwright.pants.util_rules import wheel
from kernelwright.pants.util_rules.wheel import WheelsRequest
from pants.core.goals.package import BuiltPackage, BuiltPackageArtifact, PackageFieldSet
from pants.engine.rules import collect_rules
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class WheelFieldSet(PackageFieldSet):
    """Marks ``python_wheel`` and ``kernel_wheels`` targets for the ``package`` goal."""

    required_fields = (WheelProjectField, WheelLicensesField)


@rule(desc="Package wheel", level=LogLevel.DEBUG)
async def package_wheels(field_set: WheelFieldSet) -> BuiltPackage:
    built = await wheel.build_wheels(WheelsRequest(field_set.address), **implicitly())
    digest = await digests.merge(one.digest for one in built.wheels)
    return BuiltPackage(digest, tuple(BuiltPackageArtifact(one.name) for one in built.wheels))


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(PackageFieldSet, WheelFieldSet)]
