"""Compiles the native dispatcher with the pinned compiler to the folder of temporary files and prints where it is."""

from __future__ import annotations

import os
import shutil
import tempfile

from kernelwright.dispatch.testdata import mocks

mocks.native_library()
print(shutil.copy(os.environ["KERNELWRIGHT_LIBRARY"], tempfile.gettempdir()))
