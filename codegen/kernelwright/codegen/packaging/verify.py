"""``kernelwright verify``: does a package match its statement, who signed it, and are its materials at hand?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwright.codegen.packaging import provenance
from kernelwright.codegen.packaging.contents import MANIFEST, WHEEL_ENDING, Contents, contents
from kernelwright.codegen.packaging.package_files import Files, UnreadableError, files_in_folder, wheel_files
from kernelwright.codegen.packaging.signing import ENDING, LIBRARY_ENVELOPE, NotSignedError, signed_text
from kernelwright.codegen.violations import SpecError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# Folders of the files that statements name: in a checkout, in an installed distribution, in a source archive.
_ROOTS = ("", "arch", "codegen", "bindings", "simulator", "rules", "dispatcher_cpp", "kernelwright/native")


@dataclass(frozen=True)
class Verdict:
    """A package and its problems; none if the package matches its statement."""

    package: str
    subjects: int
    problems: tuple[str, ...]


def verify(path: Path, material_folders: Sequence[Path] = (), keys: Sequence[Ed25519PublicKey] = ()) -> list[Verdict]:
    """Check every package at or below ``path``: wheels, and folders with a library, its manifest and its statement.

    With ``material_folders``, every material of a statement must be there: toolchain wheels by their digest, sources by
    path and digest. With ``keys``, one of them must have signed every package, and there must be nothing else: no file
    that is not a package's, no link, no pipe. Unsigned packages are not opened. Without keys, links are refused where a
    package is or seems to be. Raises SpecError if there is nothing to check, or no such folder.
    """
    if not path.exists():
        raise SpecError(f"{path} is not there; give a wheel, or a folder with wheels or libraries")
    for folder in material_folders:
        if not folder.is_dir():
            raise SpecError(f"{folder} is no folder; give one with toolchain wheels, or a checkout")
    known = _Materials(material_folders) if material_folders else None
    listing = contents(path)
    verdicts = [_wheel_verdict(wheel, keys, known) for wheel in listing.wheels]
    verdicts += [_folder_verdict(folder, listing, keys, known) for folder in listing.folders]
    verdicts += [Verdict(str(at), 0, (why,)) for at, why in listing.refused.items() if keys or _matters(at, listing)]
    verdicts += _strays(listing) if keys else ()
    if not verdicts:
        raise SpecError(f"{path} holds no package: no wheel and no folder with {MANIFEST}")
    return verdicts


def _matters(path: Path, listing: Contents) -> bool:
    """Whether a link or other special file hides a package, or a part of one."""
    if path.parent in listing.folders or path.suffix == WHEEL_ENDING or not path.is_symlink():
        return True
    return any((path / name).exists() for name in (MANIFEST, provenance.FILE))


def _strays(listing: Contents) -> Iterator[Verdict]:
    """Yield files that belong to no package, which no signature covers."""
    own = {wheel.with_name(wheel.name + ending) for wheel in listing.wheels for ending in ("", ENDING)}
    for folder in listing.folders:
        files = files_in_folder(listing.of_folder(folder))
        named = {provenance.FILE, LIBRARY_ENVELOPE, *_named_by_statement(files)}
        own |= {folder / name for name in files if name in named}
    for file in listing.files:
        if file not in own:
            missing = file.name.removesuffix(ENDING)
            about = f"signs {missing}, which is missing" if missing.endswith(WHEEL_ENDING) else ""
            yield Verdict(str(file), 0, (about or "is not signed: no statement names it",))


def _named_by_statement(files: Files) -> Sequence[str]:
    try:
        return list(provenance.subjects_of(_parsed(files, provenance.FILE)))
    except (OSError, KeyError, ValueError, RecursionError):
        return ()


def _folder_verdict(
    folder: Path, listing: Contents, keys: Sequence[Ed25519PublicKey], known: _Materials | None
) -> Verdict:
    files = files_in_folder(listing.of_folder(folder))
    if keys:
        try:
            files = files.with_text(provenance.FILE, signed_text(folder, keys))
        except NotSignedError as error:
            return Verdict(str(folder), 0, (str(error),))
    return Verdict(str(folder), *_checked(files, _library_problems, known))


def _wheel_verdict(path: Path, keys: Sequence[Ed25519PublicKey], known: _Materials | None) -> Verdict:
    try:
        if keys:
            signed_text(path, keys)
        with wheel_files(path) as wheel:
            count, problems = _checked(wheel.files, _covers_everything, known)
            return Verdict(str(path), count, (*wheel.problems, *_inner_problems(wheel.files, known), *problems))
    except (NotSignedError, UnreadableError) as error:
        return Verdict(str(path), 0, (str(error),))


def _inner_problems(files: Files, known: _Materials | None) -> Iterator[str]:
    """Yield the problems of the libraries in a wheel."""
    for folder in sorted({name.rpartition("/")[0] for name in files if name.endswith(f"/{MANIFEST}")}):
        for text in _checked(files.below(folder), _library_problems, known)[1]:
            yield f"{folder}: {text}"


def _checked(files: Files, check: Any, known: _Materials | None) -> tuple[int, tuple[str, ...]]:
    """Return how many files the statement names, and the problems."""
    if provenance.FILE not in files:
        return 0, (f"carries no {provenance.FILE}",)
    try:
        statement = _parsed(files, provenance.FILE)
        subjects = provenance.subjects_of(statement)
        dependencies = provenance.dependencies_of(statement)
    except (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        return 0, (f"{provenance.FILE} {_text(error)}",)
    problems = [*_subject_problems(files, subjects), *check(files, statement, subjects)]
    return len(subjects), (*problems, *(known.missing(dependencies) if known else ()))


def _subject_problems(files: Files, subjects: Mapping[str, str]) -> Iterator[str]:
    for name, stated in subjects.items():
        if name not in files:
            yield f"{name} is missing"
            continue
        try:
            sha256 = files.digest(name)
        except OSError as error:
            yield f"{name} {_text(error)}"
            continue
        if sha256 != stated:
            yield f"{name} has sha256 {sha256}, its statement says {stated}"


def _covers_everything(files: Files, statement: Mapping[str, Any], subjects: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(set(files) - set(subjects) - {provenance.FILE}):
        yield f"{name} is not named by the statement"


def _library_problems(files: Files, statement: Mapping[str, Any], subjects: Mapping[str, str]) -> Iterator[str]:
    if MANIFEST not in files:
        yield f"{MANIFEST} is missing"
        return
    try:
        yield from _manifest_problems(_parsed(files, MANIFEST), statement, subjects)
    except (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        yield f"{MANIFEST} {_text(error)}"


def _manifest_problems(
    manifest: Mapping[str, Any], statement: Mapping[str, Any], subjects: Mapping[str, str]
) -> Iterator[str]:
    if set(subjects) != {manifest["library"], MANIFEST}:
        yield f"the statement is about {', '.join(subjects)}, not about {manifest['library']} and {MANIFEST}"
    if subjects.get(manifest["library"]) != manifest["sha256"]:
        yield f"{MANIFEST} and statement name different digests of {manifest['library']}"
    predicate = statement["predicate"]
    if manifest.get("provenance_sha256") != provenance.sha256(provenance.canonical(predicate)):
        yield f"the statement's predicate is not the one that {MANIFEST} was written with"
    external = predicate["buildDefinition"]["externalParameters"]
    kernels = [{key: kernel[key] for key in provenance.KERNEL_KEYS} for kernel in manifest["kernels"]]
    if external != {"name": manifest["name"], "arch": manifest["arch"], "kernels": kernels}:
        yield f"{MANIFEST} and statement name different kernels"


def _parsed(files: Files, name: str) -> dict[str, Any]:
    return provenance.parsed(files.read(name))


def _text(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return f"lacks {error}" if isinstance(error, KeyError) else str(error)


class _Materials:
    """Files at hand, looked up by digest (wheels) or by path (sources)."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder / root for folder in folders for root in _ROOTS]
        wheels = [wheel for folder in folders for wheel in folder.rglob("*.whl") if wheel.is_file()]
        self._wheels = {provenance.sha256(wheel.read_bytes()) for wheel in wheels}
        self._where = ", ".join(map(str, folders))

    def missing(self, dependencies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Yield one sentence for each dependency that is not there with its digest."""
        for entry in dependencies:
            digest, name = entry["digest"]["sha256"], entry.get("name")
            if name is None:
                if digest not in self._wheels:
                    yield f"{entry.get('uri')} with sha256 {digest} is not in {self._where}"
                continue
            candidates = [folder / name for folder in self._folders if (folder / name).is_file()]
            if not any(provenance.sha256(path.read_bytes()) == digest for path in candidates):
                state = f"is another file in {self._where}" if candidates else f"is not in {self._where}"
                yield f"{name} with sha256 {digest} {state}"
