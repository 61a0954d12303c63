"""Compiles the native dispatcher with the pinned compiler and prints where it is."""

from __future__ import annotations

import os

from kernelwright.dispatch.testdata import mocks

mocks.native_library()
print(os.environ["KERNELWRIGHT_LIBRARY"])
