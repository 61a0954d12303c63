"""``kernelwright verify``: is a package what its statement says, who signed it, and are its materials at hand?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from kernelwright.codegen.packaging import provenance
from kernelwright.codegen.packaging.signing import signature_problem
from kernelwright.codegen.violations import SpecError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MANIFEST = "manifest.json"
# Where the files that statements name stand: in a checkout, in an installed distribution, in a source archive.
_ROOTS = ("", "arch", "codegen", "bindings", "simulator", "rules", "dispatcher_cpp", "kernelwright/native")

Files = Mapping[str, Callable[[], bytes]]


@dataclass(frozen=True)
class Verdict:
    """A package and what is wrong with it; nothing, if it is what its statement says."""

    package: str
    subjects: int
    problems: tuple[str, ...]


def verify(path: Path, material_folders: Sequence[Path] = (), keys: Sequence[Ed25519PublicKey] = ()) -> list[Verdict]:
    """Check every package at or below ``path``: wheels, and folders with a library, its manifest and its statement.

    With ``material_folders``, every file that a statement says went in must be there: toolchain wheels by their
    digest, sources by path and digest. With ``keys``, one of them must have signed every package, and every shared
    library must belong to one. Raises SpecError if there is no package, or no such folder.
    """
    if not path.exists():
        raise SpecError(f"{path} is not there; give a wheel, or a folder with wheels or libraries")
    for folder in material_folders:
        if not folder.is_dir():
            raise SpecError(f"{folder} is no folder; give one with toolchain wheels, or a checkout")
    known = _Materials(material_folders) if material_folders else None
    verdicts = [_signed(wheel, _verify_wheel(wheel, known), keys) for wheel in packaged_wheels(path)]
    for folder in packaged_folders(path):
        files = {entry.name: entry.read_bytes for entry in sorted(folder.iterdir()) if entry.is_file()}
        verdicts.append(_signed(folder, _verdict(str(folder), files, _library_problems, known), keys))
    if not verdicts:
        raise SpecError(f"{path} holds no package: no wheel and no folder with {MANIFEST}")
    return [*verdicts, *(_strays(path) if keys else ())]


def _signed(package: Path, verdict: Verdict, keys: Sequence[Ed25519PublicKey]) -> Verdict:
    problem = signature_problem(package, keys) if keys else None
    return Verdict(verdict.package, verdict.subjects, (*verdict.problems, problem)) if problem else verdict


def _strays(path: Path) -> Iterator[Verdict]:
    """Shared libraries that no statement names, so that no signature covers them."""
    folders = packaged_folders(path)
    named = {folder / name for folder in folders for name in _named_by_statement(folder)}
    for library in sorted(path.rglob("*") if path.is_dir() else (path.parent.glob("*") if folders else ())):
        if library.is_file() and (library.suffix == ".so" or ".so." in library.name) and library not in named:
            yield Verdict(str(library), 0, ("is not signed: no statement names it",))


def _named_by_statement(folder: Path) -> Iterable[str]:
    try:
        return provenance.subjects_of(json.loads((folder / provenance.FILE).read_bytes()))
    except (OSError, ValueError, RecursionError):
        return ()


def packaged_wheels(path: Path) -> list[Path]:
    """The wheels at or below a path."""
    if path.is_file():
        return [path] if path.suffix == ".whl" else []
    return sorted(wheel for wheel in path.rglob("*.whl") if wheel.is_file())


def packaged_folders(path: Path) -> list[Path]:
    """The folders of libraries at or below a path; of a library or manifest, the one that it is in."""
    if path.is_file():
        return [] if path.suffix == ".whl" else [path.parent]
    return sorted({found.parent for name in (MANIFEST, provenance.FILE) for found in path.rglob(name)})


def _verify_wheel(path: Path, known: _Materials | None) -> Verdict:
    from wheel.wheelfile import WheelError, WheelFile

    try:
        with WheelFile(path) as wheel:  # reading compares every file with its digest in RECORD
            names = wheel.namelist()
            files: Files = {name: lambda name=name: wheel.read(name) for name in names}  # type: ignore[misc]
            problems = [f"{name} is in it twice" for name in sorted({name for name in names if names.count(name) > 1})]
            info = wheel.dist_info_path
            own = {name: read for name, read in files.items() if name != wheel.record_path}
            statement = own.pop(f"{info}/{provenance.FILE}", None)
            whole = {**own, **({provenance.FILE: statement} if statement else {})}
            verdict = _verdict(str(path), whole, _covers_everything, known)
            for folder in sorted({str(PurePosixPath(name).parent) for name in own if name.endswith(f"/{MANIFEST}")}):
                inner = {name.removeprefix(f"{folder}/"): own[name] for name in own if name.startswith(f"{folder}/")}
                problems.extend(f"{folder}: {text}" for text in _checked(inner, _library_problems, known)[1])
            return Verdict(verdict.package, verdict.subjects, (*problems, *verdict.problems))
    except (WheelError, BadZipFile, KeyError, OSError) as error:
        return Verdict(str(path), 0, (f"cannot be read: {error}",))


_Check = Callable[[Files, Mapping[str, Any], Mapping[str, str]], Iterator[str]]


def _verdict(package: str, files: Files, check: _Check, known: _Materials | None) -> Verdict:
    return Verdict(package, *_checked(files, check, known))


def _checked(files: Files, check: _Check, known: _Materials | None) -> tuple[int, tuple[str, ...]]:
    """How many files the statement names, and what is wrong."""
    if provenance.FILE not in files:
        return 0, (f"carries no {provenance.FILE}",)
    try:
        statement = json.loads(files[provenance.FILE]())
        subjects = provenance.subjects_of(statement)
        dependencies = provenance.dependencies_of(statement)
        problems = [*_subject_problems(files, subjects), *check(files, statement, subjects)]
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        return 0, (f"{provenance.FILE} {error}",)
    return len(subjects), (*problems, *(known.missing(dependencies) if known else ()))


def _subject_problems(files: Files, subjects: Mapping[str, str]) -> Iterator[str]:
    for name, digest in subjects.items():
        if name not in files:
            yield f"{name} is missing"
        elif (found := provenance.sha256(files[name]())) != digest:
            yield f"{name} has sha256 {found}, its statement says {digest}"


def _covers_everything(files: Files, statement: Mapping[str, Any], subjects: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(set(files) - set(subjects) - {provenance.FILE}):
        yield f"{name} is not named by the statement"


def _library_problems(files: Files, statement: Mapping[str, Any], subjects: Mapping[str, str]) -> Iterator[str]:
    if MANIFEST not in files:
        yield f"{MANIFEST} is missing"
        return
    manifest = json.loads(files[MANIFEST]())
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


class _Materials:
    """Files at hand, looked up by digest (wheels) or by path (sources)."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder / root for folder in folders for root in _ROOTS]
        wheels = [wheel for folder in folders for wheel in folder.rglob("*.whl") if wheel.is_file()]
        self._wheels = {provenance.sha256(wheel.read_bytes()) for wheel in wheels}
        self._where = ", ".join(map(str, folders))

    def missing(self, dependencies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """One sentence for each dependency that is not there with its digest."""
        for entry in dependencies:
            digest, name = entry["digest"]["sha256"], entry.get("name")
            if name is None:
                if digest not in self._wheels:
                    yield f"{entry.get('uri')} with sha256 {digest} is not in {self._where}"
                continue
            found = [folder / name for folder in self._folders if (folder / name).is_file()]
            if not any(provenance.sha256(path.read_bytes()) == digest for path in found):
                state = f"is another file in {self._where}" if found else f"is not in {self._where}"
                yield f"{name} with sha256 {digest} {state}"
