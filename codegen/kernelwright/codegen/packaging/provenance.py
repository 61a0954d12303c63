"""Provenance: an in-toto statement with a SLSA v1 predicate beside everything that is built.

Formats: https://in-toto.io/Statement/v1 and https://slsa.dev/spec/v1.0/provenance. A statement holds no time, host,
user or path of a machine, so that the same inputs give the same bytes. It is not signed: it proves that a package is
complete and states its materials; the signature beside the package states who made it, see ``signing``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from kernelwright.codegen.violations import SpecError
from kernelwright.files.strict_json import parse_json

FILE = "provenance.json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILDER = "urn:x-kernelwright:builder:1"
LIBRARY_BUILD, WHEEL_BUILD = "urn:x-kernelwright:kernel-library:1", "urn:x-kernelwright:wheel:1"

# Keys of a manifest's kernels that a statement repeats.
KERNEL_KEYS = ("name", "identity", "spec")

_GENERATOR = ("kernelwright.arch", "kernelwright.codegen", "kernelwright.files")
_NOT_GENERATOR = ("_test.py", ".typed", ".pyc")


def sha256(data: bytes) -> str:
    """Return the sha256 as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def canonical(value: object) -> bytes:
    """Return the canonical JSON text of a value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def predicate(
    build_type: str, external: Mapping[str, Any], internal: Mapping[str, Any], materials: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what was requested, how it was built, and from what; ``materials`` are resource descriptors."""
    unique = {canonical(material): material for material in materials}
    return {
        "buildDefinition": {
            "buildType": build_type,
            "externalParameters": dict(external),
            "internalParameters": dict(internal),
            "resolvedDependencies": [unique[key] for key in sorted(unique)],
        },
        "runDetails": {"builder": {"id": BUILDER}},
    }


def statement_text(subjects: Mapping[str, str], made: Mapping[str, Any]) -> str:
    """Return the statement about files (name → sha256) as JSON text."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)],
        "predicateType": PREDICATE_TYPE,
        "predicate": made,
    }
    return json.dumps(statement, indent=1, sort_keys=True) + "\n"


def materials_of(raw: object) -> list[dict[str, Any]]:
    """Return resource descriptors of ``materials``: ``{"requirements": text}`` or ``{"files": {path: sha256}}``.

    Raises SpecError for anything else, and for a requirement without version and hashes.
    """
    materials: list[dict[str, Any]] = []
    for entry in raw if isinstance(raw, list) else [raw]:
        if isinstance(entry, Mapping) and set(entry) == {"requirements"} and isinstance(entry["requirements"], str):
            materials.extend(_wheels(entry["requirements"]))
        elif isinstance(entry, Mapping) and set(entry) == {"files"} and isinstance(entry["files"], Mapping):
            materials.extend(file_material(path, digest) for path, digest in sorted(entry["files"].items()))
        else:
            raise SpecError(
                "request key 'materials' must be a list of {'requirements': text} and {'files': {path: sha256}}"
            )
    return materials


def file_material(path: str, digest: str) -> dict[str, Any]:
    """Return the descriptor of a source file."""
    return {"name": path, "digest": {"sha256": digest}}


def _wheels(requirements: str) -> Iterator[dict[str, Any]]:
    """Yield package URLs of a hash-pinned requirements file (https://github.com/package-url/purl-spec, type pypi)."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    for line in requirements.replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        hashes = [word.removeprefix("--hash=sha256:") for word in words if word.startswith("--hash=sha256:")]
        try:
            requirement = Requirement(" ".join(word for word in words if not word.startswith("--")))
        except InvalidRequirement as error:
            raise SpecError(f"requirement {line!r} cannot be read: {error}") from None
        versions = [item.version for item in requirement.specifier if item.operator == "=="]
        if len(versions) != 1 or not hashes:
            raise SpecError(f"requirement {line!r} must pin one version and its sha256")
        for digest in hashes:
            yield {
                "uri": f"pkg:pypi/{canonicalize_name(requirement.name)}@{versions[0]}",
                "digest": {"sha256": digest},
            }


def generator_materials() -> list[dict[str, Any]]:
    """Return the files of this code generator: everything that may influence what it renders."""
    sources: list[tuple[str, Traversable]] = []
    for package in _GENERATOR:
        sources.extend(_files(resources.files(package), package.replace(".", "/")))
    return [file_material(path, sha256(file.read_bytes())) for path, file in sorted(sources)]


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        inner = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _files(entry, inner)
        elif not entry.name.endswith(_NOT_GENERATOR):
            yield inner, entry


def parsed(data: bytes) -> dict[str, Any]:
    """Return the JSON object of a statement or manifest. ValueError if it is not one, or has a key twice."""
    document = parse_json(data.decode())
    if not isinstance(document, dict):
        raise ValueError(f"is {type(document).__name__} in JSON; allowed: an object")
    return document


def subjects_of(statement: object) -> dict[str, str]:
    """Return file name → sha256 of a parsed statement. ValueError if it is not one of ours, or names a file twice."""
    if not isinstance(statement, Mapping) or statement.get("_type") != STATEMENT_TYPE:
        raise ValueError(f"is no statement of type {STATEMENT_TYPE}")
    if statement.get("predicateType") != PREDICATE_TYPE:
        raise ValueError(f"has predicate type {statement.get('predicateType')!r}; allowed: {PREDICATE_TYPE}")
    try:
        builder = statement["predicate"]["runDetails"]["builder"]["id"]
        named = [(entry["name"], entry["digest"]["sha256"]) for entry in statement["subject"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"lacks builder, names or digests: {error}") from None
    if builder != BUILDER:
        raise ValueError(f"was made by builder {builder!r}; allowed: {BUILDER}")
    if not all(isinstance(text, str) for pair in named for text in pair):
        raise ValueError("has a subject whose name or digest is no text")
    subjects = dict(named)
    if len(subjects) < len(named):
        raise ValueError("names a subject twice")
    return subjects


def dependencies_of(statement: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the resource descriptors of a package's materials. ValueError if they are malformed."""
    dependencies: Any = statement["predicate"].get("buildDefinition", {}).get("resolvedDependencies")
    if not isinstance(dependencies, list) or not all(
        isinstance(entry.get("digest", {}).get("sha256"), str) for entry in dependencies
    ):
        raise ValueError("lacks resolvedDependencies with sha256 digests")
    if not dependencies:
        raise ValueError(
            "names no materials (resolvedDependencies is empty): it does not say what the package is made of"
        )
    return dependencies
