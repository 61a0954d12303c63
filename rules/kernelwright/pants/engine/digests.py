"""Files as Pants stores them: creates, combines and reads digests.

The functions of this package are plain coroutines. Elsewhere, rules call only rules of this plugin.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Sequence

from kernelwright.pants import damaged_store
from kernelwright.pants.compat import calls
from pants.engine.fs import (
    AddPrefix,
    CreateDigest,
    Digest,
    DigestSubset,
    FileContent,
    FileEntry,
    GlobMatchErrorBehavior,
    MergeDigests,
    PathGlobs,
    RemovePrefix,
    Snapshot,
)


async def create(files: Iterable[tuple[str, bytes]]) -> Digest:
    """Return a digest of files with these paths and contents."""
    return await calls.create_digest(CreateDigest([FileContent(path, content) for path, content in files]))


async def merge(digests: Iterable[Digest]) -> Digest:
    """Return all files of all digests."""
    return await calls.merge_digests(MergeDigests(digests))


async def subset(digest: Digest, globs: Iterable[str]) -> Digest:
    """Return the files that match any of the globs."""
    return await calls.digest_subset(DigestSubset(digest, PathGlobs(globs)))


async def remove_prefix(digest: Digest, prefix: str) -> Digest:
    """Return the files below a folder, with paths relative to it."""
    return await calls.remove_prefix(RemovePrefix(digest, prefix))


async def add_prefix(digest: Digest, prefix: str) -> Digest:
    """Return the same files below a folder."""
    return await calls.add_prefix(AddPrefix(digest, prefix))


async def rename(digest: Digest, names: Mapping[str, str]) -> Digest:
    """Return the files whose paths ``names`` maps, at their new paths, without reading their contents."""
    entries = await calls.digest_entries(digest)
    return await calls.create_digest(
        CreateDigest(
            [
                FileEntry(names[entry.path], entry.file_digest, entry.is_executable)
                for entry in entries
                if isinstance(entry, FileEntry) and entry.path in names
            ]
        ),
    )


async def snapshot(digest: Digest) -> Snapshot:
    """Return the digest with the names of its files."""
    return await calls.snapshot(digest)


async def fingerprints(digest: Digest) -> dict[str, str]:
    """Return the sha256 of each file by path, without reading the contents."""
    entries = await calls.digest_entries(digest)
    return {entry.path: entry.file_digest.fingerprint for entry in entries if isinstance(entry, FileEntry)}


async def read(digest: Digest) -> dict[str, bytes]:
    """Return file contents by path. Raises DamagedStore if the store returns other contents than were stored."""
    contents = await calls.digest_contents(digest)
    files = {file.path: file.content for file in contents}
    damaged_store.check_contents(files, await fingerprints(digest))
    return files


async def with_checksums(digest: Digest) -> Digest:
    """Return the same files with a list of their checksums, which the process that gets them verifies first."""
    checksums = damaged_store.checksums(await fingerprints(digest))
    return await merge([digest, await create([(damaged_store.CHECKSUMS, checksums.encode())])])


async def workspace_files(globs: Sequence[str], origin: str) -> Digest:
    """Return files of the workspace; ``origin`` names the option or field to blame for a glob without a match."""
    return await calls.path_globs(
        PathGlobs(globs, glob_match_error_behavior=GlobMatchErrorBehavior.error, description_of_origin=origin),
    )
