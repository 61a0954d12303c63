"""The Pants that the tests run against: of the environment, or of the folder that ``KERNELWRIGHT_TEST_PANTS`` names."""

from __future__ import annotations

import os
import sys

if "KERNELWRIGHT_TEST_PANTS" in os.environ:
    sys.path.insert(0, os.path.abspath(os.environ["KERNELWRIGHT_TEST_PANTS"]))
