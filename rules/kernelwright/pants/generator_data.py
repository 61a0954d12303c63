"""The generator's description of itself: spec fields, trees, and the script in which commands wait for memory.

``python -m kernelwright.codegen plugin-data`` writes it to ``data/generator.json``. The generator needs a newer Python
than Pants, so the plugin cannot import it.
"""

from __future__ import annotations

import json
import pkgutil
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=None)
def generator_data() -> dict[str, Any]:
    """Return the checked-in document, see ``kernelwright.codegen.interface.plugin_data``."""
    text = pkgutil.get_data("kernelwright.pants", "data/generator.json")
    assert text is not None  # Python's own loaders either return data or raise OSError
    data: dict[str, Any] = json.loads(text)
    return data
