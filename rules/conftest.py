"""The Pants that the tests run against: of the environment, or of the folder that ``KERNELWRIGHT_TEST_PANTS`` names."""

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
    """Sources of Pants without its native engine can be loaded, and execute nothing."""
    skipped = collection_path.name.endswith("_test.py") and collection_path.name != "load_test.py"
    return True if skipped and not _EXECUTES else None
