"""A cache from which code is loaded: requirements for its folders and files before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelwright.codegen.building.cache_folder import (
    CacheError,
    check_folder,
    usable,
    why_foreign,
    why_untrusted,
    why_untrusted_result,
)
from kernelwright.jit.errors import UntrustedCacheError, UnusableCacheError


@dataclass(frozen=True)
class TrustedCache:
    """A cache at ``root``. Unless ``shared``, nothing in it may belong to another user or be writable by one."""

    root: Path
    shared: bool = False

    def check(self, folder: Path | None = None) -> None:
        """Raise UntrustedCacheError if another user could replace files in the cache, or in a library's ``folder``.

        Raises UnusableCacheError if the cache is not a folder.
        """
        with unusable():
            check_folder(self.root)
        self._refuse(*(why_untrusted(path) for path in (self.root, *([folder] if folder else []))))
        if folder:
            self.check_result(folder)

    def check_result(self, path: Path) -> None:
        """Raise UntrustedCacheError if another user could change a file of a result."""
        self._refuse(None if self.shared else why_untrusted_result(path))

    def check_tools(self) -> None:
        """Raise UntrustedCacheError if compilers would read another user's files from the cache."""
        self._refuse(*(None if self.shared else why_foreign(self.root / name) for name in ("trees", "named")))

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Raise UnusableCacheError if the block finds that the cache cannot be written."""
        with unusable(), usable(self.root):
            yield

    def _refuse(self, *reasons: str | None) -> None:
        for reason in () if self.shared else filter(None, reasons):
            raise UntrustedCacheError(self.root, reason)


@contextmanager
def unusable() -> Iterator[None]:
    """Convert the generator's cache error to this package's error."""
    try:
        yield
    except CacheError as error:
        raise UnusableCacheError(str(error)) from None
