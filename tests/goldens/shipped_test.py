from __future__ import annotations

import json

import pytest

from goldens import shipped

GOLDENS = {name: json.loads(shipped.goldens(name).read_text()) for name in shipped.SETS}


@pytest.mark.parametrize("name", shipped.SETS)
def test_every_architecture_has_goldens(name: str) -> None:
    assert set(GOLDENS[name]) == set(shipped.archs(name))
    assert all(golden["kernels"] and golden["library"] for golden in GOLDENS[name].values())


@pytest.mark.parametrize(("name", "arch"), [(name, arch) for name in shipped.SETS for arch in GOLDENS[name]])
def test_names_identities_commands_and_files_are_the_golden_ones(name: str, arch: str) -> None:
    actual = shipped.described(name, arch)
    golden = GOLDENS[name][arch]
    assert list(actual["kernels"]) == list(golden["kernels"])
    for column, what in enumerate(("identities", "commands", "generated files")):
        changed = [name for name, row in actual["kernels"].items() if row[column] != golden["kernels"][name][column]]
        assert not changed, f"{what} of {len(changed)} kernels changed, e.g. {changed[0]}"
    assert actual["library"] == golden["library"]
    assert actual["table"] == golden["table"]
