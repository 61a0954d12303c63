"""Element types: their names here, their numbers in the C ABI, and their names in array libraries."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from kernelwright.dispatch.core.errors import ArrayError, ProblemError
from kernelwright.files.proposals import closest
