from __future__ import annotations

import json

from results_file import text


def test_a_line_for_each_result() -> None:
    written = text({"machine": {"cores": 2}}, [{"m": 1, "us": [1, 2]}, {"m": 2}])
    assert json.loads(written) == {"machine": {"cores": 2}, "results": [{"m": 1, "us": [1, 2]}, {"m": 2}]}
    assert '\n  {"m": 1, "us": [1, 2]},\n  {"m": 2}\n' in written


def test_no_results_yet() -> None:
    assert json.loads(text({"date": "today"}, [], "shapes")) == {"date": "today", "shapes": []}
