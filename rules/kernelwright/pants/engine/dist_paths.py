"""Paths below ``dist`` that goals write to."""

from __future__ import annotations

from kernelwright.pants.engine.exit_codes import BadInput

_MAX_NAME, _MAX_PATH = 255, 1024  # limits of file systems; well below PATH_MAX, as dist and a sandbox precede it


class OutsideDist(BadInput):
    """A path that leaves ``dist`` or that a file system does not accept."""


def checked_dist_path(path: str, what: str) -> str:
    """Return ``path`` if it names something below ``dist``; otherwise raise OutsideDist, which starts with ``what``."""
    parts = path.split("/")
    size = len(path.encode("utf-8", "surrogatepass"))
    for wrong, why in (
        (not path, "is empty"),
        (path.startswith("/"), "is absolute"),
        (".." in parts, "leaves the folder"),
        (not path.isprintable(), "has an unprintable character"),
        ("\\" in path, "has a backslash"),
        ("" in parts or "." in parts, "is not in its shortest spelling"),
        (any(len(part.encode("utf-8", "surrogatepass")) > _MAX_NAME for part in parts), "has too long a name"),
        (size > _MAX_PATH, "is too long"),
    ):
        if wrong:
            shown = path if len(path) <= 100 else f"{path[:100]}… ({len(path)} characters)"
            raise OutsideDist(f"{what} is {shown!r}, which {why}; allowed: a path below dist, such as 'a/b'")
    return path
