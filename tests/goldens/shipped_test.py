from __future__ import annotations

import json

import pytest

from goldens import shipped
from kernelwright.arch import names

GOLDENS = json.loads(shipped.GOLDENS.read_text())


def test_every_architecture_has_goldens() -> None:
    assert set(GOLDENS) == set(names())
    assert all(golden["kernels"] and golden["library"] for golden in GOLDENS.values())


@pytest.mark.parametrize("arch", names())
def test_names_identities_commands_and_files_are_the_golden_ones(arch: str) -> None:
    found = shipped.described(arch)
    golden = GOLDENS[arch]
    assert list(found["kernels"]) == list(golden["kernels"])
    for column, what in enumerate(("identities", "commands", "generated files")):
        changed = [name for name, row in found["kernels"].items() if row[column] != golden["kernels"][name][column]]
        assert not changed, f"{what} of {len(changed)} kernels changed, e.g. {changed[0]}"
    assert found["library"] == golden["library"]
    assert found["table"] == golden["table"]
