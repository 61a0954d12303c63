from __future__ import annotations

import sys

import pytest

from kernelwright.pants.generator_data import generator_data
from kernelwright.pants.testing import target_pages


def test_every_target_and_field_is_known() -> None:
    page = target_pages.page()
    for known in generator_data()["operations"].values():
        assert f"\n## {known['target']}\n" in page
        assert all(f"\n| `{field['name']}` |" in page for field in known["fields"])
    assert "\n## kernel_library\n" in page and "\n| `budget_kernels` |" in page and "generated_kernel" not in page


@pytest.mark.skipif(sys.version_info >= (3, 10), reason="the page is of Pants 2.17; newer ones word types differently")
def test_the_page_is_what_pants_knows() -> None:
    assert target_pages.PAGE.read_text("utf-8") == target_pages.page()
