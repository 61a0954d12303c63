from __future__ import annotations

import json

import pytest

from goldens import shipped

GOLDENS = {operation: json.loads(shipped.goldens(operation).read_text()) for operation in shipped.SETS}


@pytest.mark.parametrize("operation", shipped.SETS)
def test_every_architecture_has_goldens(operation: str) -> None:
    assert set(GOLDENS[operation]) == set(shipped.archs(operation))
    assert all(golden["kernels"] and golden["library"] for golden in GOLDENS[operation].values())


@pytest.mark.parametrize(("operation", "arch"), [(name, arch) for name in shipped.SETS for arch in GOLDENS[name]])
def test_names_identities_commands_and_files_are_the_golden_ones(operation: str, arch: str) -> None:
    found = shipped.described(operation, arch)
    golden = GOLDENS[operation][arch]
    assert list(found["kernels"]) == list(golden["kernels"])
    for column, what in enumerate(("identities", "commands", "generated files")):
        changed = [name for name, row in found["kernels"].items() if row[column] != golden["kernels"][name][column]]
        assert not changed, f"{what} of {len(changed)} kernels changed, e.g. {changed[0]}"
    assert found["library"] == golden["library"]
    assert found["table"] == golden["table"]
