"""Compiled selection models, built by ``kernelwright heuristic`` and the target ``kernel_heuristic``."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import LibraryLoadError
from kernelwright.dispatch.loading.elf import why_not_loadable

VERSION = 1  # KW_HEURISTIC_VERSION


class _Struct(ctypes.Structure):
    """``kw_heuristic``."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("arch", ctypes.c_char_p),
        ("schema", ctypes.c_char_p),
        ("sha256", ctypes.c_char_p),
        ("score", ctypes.c_void_p),
    )


class Heuristic:
    """A learned selector for ``Dispatcher(selection=…)``.

    It scores every registered kernel that serves a problem. Problems of another element type, and those beyond the
    range of its training data, are left to the predicted times, and selection reasons say so.

    :ivar name: its name in explanations.
    :ivar arch: the architecture whose kernels it scores; others are left to the predicted times.
    :ivar sha256: digest of the model.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Load a library. LibraryLoadError if it cannot be loaded, is not a selection model, or has another version."""
        self.path = Path(path).absolute()
        try:
            why = why_not_loadable(self.path)
        except OSError as error:
            why = str(error)
        if why:
            raise LibraryLoadError(f"{self.path} is no compiled selection model: {why}")
        try:
            self._library = ctypes.CDLL(str(self.path))
            entry: Any = self._library.kw_heuristic_entry
        except (OSError, AttributeError) as error:
            raise LibraryLoadError(f"{self.path} is no compiled selection model: {error}") from None
        entry.restype = ctypes.POINTER(_Struct)
        model = entry().contents
        if model.version != VERSION or model.struct_size != ctypes.sizeof(_Struct):
            raise LibraryLoadError(
                f"{self.path} is a selection model of version {model.version}; allowed: {VERSION}; compile it again"
            )
        self.name, self.arch, self.sha256 = (text.decode() for text in (model.name, model.arch, model.sha256))
        self.score = ctypes.cast(model.score, native.Score)

    def __repr__(self) -> str:
        """Name, architecture and model."""
        return f"<Heuristic {self.name} for {self.arch}, model {self.sha256[:12]}>"
