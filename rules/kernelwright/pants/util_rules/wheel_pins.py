"""Requirements files that pin a wheel of this workspace by its digest."""

from __future__ import annotations

import json

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests, graph
from kernelwright.pants.targets.wheel_pins import PinnedRequirementsField, PinnedWheelField
from kernelwright.pants.util_rules import wheel
from kernelwright.pants.util_rules.wheel import BuiltWheel, WheelsRequest
from pants.core.target_types import FileSourceField
from pants.engine.rules import collect_rules
from pants.engine.target import GeneratedSources, GenerateSourcesRequest
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


def pin(built: BuiltWheel) -> str:
    """Return ``name==version --hash=sha256:…``."""
    name, version = built.name.split("-")[:2]
    return f"{name.replace('_', '-')}=={version} --hash=sha256:{built.sha256}\n"


METADATA = json.dumps(
    {"version": 2, "valid_for_interpreter_constraints": ["CPython>=3.11"], "generated_with_requirements": []}
)
"""The file that Pants 2.32 and newer requires beside a requirements file in a package."""


class WheelPinsAsFiles(GenerateSourcesRequest):
    """The requirements files as files of a target that depends on them."""

    input = PinnedRequirementsField
    output = FileSourceField


@rule(desc="Pin wheel", level=LogLevel.DEBUG)
async def wheel_pins_as_files(request: WheelPinsAsFiles) -> GeneratedSources:
    target = request.protocol_target
    address = await graph.parse_address(target[PinnedWheelField].value or "", target.address, PinnedWheelField.alias)
    built = await wheel.build_wheels(WheelsRequest(address), **implicitly())
    (only,) = built.wheels
    folder = f"{target.address.spec_path}/{target.address.target_name}".lstrip("/")
    line = pin(only)
    texts = await digests.read(request.protocol_sources.digest)
    files = []
    for path, text in texts.items():
        name = f"{folder}/{path.rpartition('/')[2]}"
        files += [(name, text.rstrip() + f"\n{line}".encode()), (f"{name}.metadata", METADATA.encode())]
    return GeneratedSources(await digests.snapshot(await digests.create(files)))


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(GenerateSourcesRequest, WheelPinsAsFiles)]
