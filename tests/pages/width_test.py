from __future__ import annotations

from pages.pages import PAGES, ROOT, blocks, code_lines

WIDEST = 90


def test_lines_of_code_fit_a_narrow_window() -> None:
    assert len(PAGES) > 30
    wide = [
        f"{page.relative_to(ROOT)}:{number}: {len(line)} columns"
        for page in PAGES
        for number, line in code_lines(page)
        if len(line) > WIDEST
    ]
    assert wide == []


def test_blocks_are_found_below_their_headings() -> None:
    shown = blocks(ROOT / "README.md")
    assert {block.kind for block in shown} == {"", "python", "starlark"}
    (build,) = blocks(ROOT / "README.md", "starlark", "A kernel is a target")
    assert build.text.startswith("# kernels/mine/BUILD")
