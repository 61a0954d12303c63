"""The Pants that the tests run against: that of the environment, or the folder in ``KERNELWRIGHT_TEST_PANTS``."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Optional

FOLDER = os.environ.get("KERNELWRIGHT_TEST_PANTS")
if FOLDER:
    sys.path.insert(0, os.path.abspath(FOLDER))
_EXECUTES = importlib.util.find_spec("pants.engine.internals.native_engine") is not None


def pytest_ignore_collect(collection_path: Path) -> Optional[bool]:
    """Skip tests that execute rules: Pants' sources without its native engine can be loaded, but execute nothing."""
    skipped = collection_path.name.endswith("_test.py") and collection_path.name != "load_test.py"
    return True if skipped and not _EXECUTES else None
