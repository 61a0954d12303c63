"""Two tiers of tests: what tells a contributor that a change is good, and the whole of families that take long.

A mark puts a family, which is a test function with all its cases, into both::

    @pytest.mark.thorough(keep=4)                # its first four cases are in the default tier, the rest is thorough
    @pytest.mark.thorough(keep=1, each="arch")   # the first one of each value of an argument
    @pytest.mark.thorough(instead="test_small")  # all of it is thorough; what stands for it by default: a test of this
                                                 # file, or path/of/another_test.py below the root of the repository

A case belongs to exactly one tier. ``KERNELWRIGHT_TIER`` says which one a process runs: ``default``, ``thorough`` or
``all``. BUILD files list files with such families as ``thorough`` of :func:`tiered_tests` (``tests/tiers.build``), and
``tests/architecture`` compares those lists with the marks. A ``conftest.py`` brings this into effect for its folder::

    from tiers import pytest_collection_modifyitems, pytest_configure
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable, Sequence

import pytest

TIERS = ("default", "thorough", "all")
VARIABLE = "KERNELWRIGHT_TIER"
_DONE = pytest.StashKey[bool]()
MARK = "thorough(keep, each, instead): a family of which the default tier runs a part, see tests/tiers.py"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


@pytest.hookimpl(tryfirst=True)  # before -k and -m, which would leave another part of a family
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.stash.get(_DONE, False):  # several folders have a conftest.py: what is left is a part already
        return
    config.stash[_DONE] = True
    tier = os.environ.get(VARIABLE) or "default"
    if tier not in TIERS:
        raise pytest.UsageError(f"{VARIABLE} is {tier!r}; allowed: {', '.join(TIERS)}")
    rest = {item.nodeid for family in families(items) for item in thorough_cases(family)}
    if tier == "all":
        return
    left_out = [item for item in items if (item.nodeid in rest) == (tier == "default")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if (item.nodeid in rest) == (tier == "thorough")]


def families(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """The marked items by function, in the order in which they were collected."""
    by_function: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("thorough"):
            by_function[item.nodeid.partition("[")[0]].append(item)
    return list(by_function.values())


def thorough_cases(family: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those of a family that the default tier leaves out; UsageError if its mark cannot be understood."""
    mark = family[0].get_closest_marker("thorough")
    assert mark is not None
    keep, each, instead = (mark.kwargs.get(name) for name in ("keep", "each", "instead"))
    understood = not mark.args and set(mark.kwargs) <= {"keep", "each", "instead"}
    if not understood or (keep is None) == (instead is None) or (keep is not None and keep < 1):
        raise pytest.UsageError(
            f"{family[0].nodeid} is marked {mark}; allowed: keep=1 or more, with each= or without, or instead=TEST"
        )
    if instead is not None:
        return list(family)
    kept: dict[Hashable, int] = defaultdict(int)
    left = []
    for item in family:
        value = _argument(item, each) if each else None
        kept[value] += 1
        if kept[value] > keep:
            left.append(item)
    return left


def _argument(item: pytest.Item, name: str) -> Hashable:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    if name not in parameters:
        raise pytest.UsageError(
            f"{item.nodeid} is marked thorough(each={name!r}); allowed: {', '.join(sorted(parameters))}"
        )
    return repr(parameters[name])
