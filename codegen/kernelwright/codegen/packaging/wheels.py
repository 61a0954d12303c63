"""Wheels: files, the metadata of a ``[project]`` table, the platform that the libraries need, and a statement.

Request of ``kernelwright wheel``: a JSON object, unknown keys are errors, paths are relative to the working directory::

    project      a TOML file with a [project] table; the files that it names are relative to the working directory
    files        {path in the wheel: path of the file}
    licenses     optional, {name below .dist-info/licenses: path}, beside those that the project names
    arch         optional: the wheel holds the kernel library of this architecture, whose manifest is among the files
    trees        optional, names of the trees that this library was compiled with: the wheel has their licences too
    materials    optional, as in a bundle request
    output       where the wheel goes

Response: ``{"wheel": file name, "sha256": 64 hex digits}``. The same request gives the same bytes everywhere: entries
are sorted, dated 1980-01-01, and stored, since what deflate makes of them depends on the machine's zlib.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipInfo

from kernelwright.codegen.inputs import checked
from kernelwright.codegen.packaging import provenance
from kernelwright.codegen.packaging.platform_tag import NO_PLATFORM, platform_tag
from kernelwright.codegen.packaging.requests import WheelManifest, WheelRequest
from kernelwright.codegen.trees import all_trees
from kernelwright.codegen.violations import SpecError, typed
from kernelwright.files.strict_json import parse_json

if TYPE_CHECKING:
    from pyproject_metadata import StandardMetadata

MAX_BYTES = 100_000_000
"""The largest file that a package index accepts by default."""

_EPOCH = "315532800"  # 1980-01-01, the first day of the ZIP format
_KEYS = ("stage", "project", "files", "licenses", "arch", "trees", "materials", "output")


def respond_wheel(raw: object) -> str:
    """Write the wheel of a request, whole or not at all, and return the response. SpecError if the request is wrong."""
    if not isinstance(raw, Mapping) or set(raw) - set(_KEYS) or not {"project", "files", "output"} <= set(raw):
        raise SpecError(f"a wheel request has the keys {', '.join(_KEYS)}; project, files and output are needed")
    checked(WheelRequest, raw, "the wheel request")
    files = {name: _read(path) for name, path in sorted(typed(raw, "files", dict, {}).items())}
    for name in files:
        folder = _checked(name, "request key 'files'").parts[0].lower()
        if folder.endswith((".dist-info", ".data")):
            raise SpecError(f"request key 'files' has {name!r}; leave it out: wheel writes {folder!r} itself")
    licenses = {name: _read(path) for name, path in typed(raw, "licenses", dict, {}).items()}
    for name in licenses:
        _checked(name, "request key 'licenses'")
    arch = typed(raw, "arch", str, None)
    manifest = _manifest(files, arch) if arch else None
    metadata, own = _metadata(Path(raw["project"]), arch, manifest, typed(raw, "trees", list, []), licenses)
    tag = f"py3-none-{platform_tag(files)}"
    wheel = {**files, **_info(metadata, tag, {**own, **licenses})}
    wheel[f"{_info_folder(metadata)}/{provenance.FILE}"] = _statement(
        metadata, tag, arch, wheel, raw.get("materials", [])
    )
    name = f"{_escaped(metadata)}-{tag}.whl"
    if len(name) > 255:  # limit of file systems
        raise SpecError(
            f"{raw['project']}: the wheel's name has {len(name)} characters; allowed: 255; shorten project.name"
        )
    digest = _write(wheel, name, Path(raw["output"]))
    return json.dumps({"wheel": name, "sha256": digest})


def _metadata(
    project: Path,
    arch: str | None,
    manifest: Mapping[str, Any] | None,
    trees: Sequence[object],
    licenses: Mapping[str, bytes],
) -> tuple[StandardMetadata, dict[str, bytes]]:
    """Return the metadata, and the licence files that the project names."""
    from pyproject_metadata import ConfigurationError, StandardMetadata

    try:
        table = tomllib.loads(_read(str(project)).decode())
        if arch and manifest:
            own = table["project"]
            own["name"] = f"{own['name']}-{arch}"
            what = own.get("description", "Kernels")
            own["description"] = f"{what} for {arch} ({manifest['device']}), ABI version {manifest['abi_version']}"
            own.update(_license_of(own.get("license"), trees))
        metadata = StandardMetadata.from_pyproject(table, ".")
    except (ConfigurationError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as error:
        raise SpecError(f"{project}: {error}") from None
    if metadata.version is None:
        raise SpecError(f"{project}: project.version is missing")
    own_files = {
        str(_checked(str(path), f"{project}: project.license-files")): path.read_bytes()
        for path in metadata.license_files or ()
    }
    metadata.license_files = [Path(name) for name in sorted({*own_files, *licenses})]
    return metadata, own_files


def _license_of(own: object, names: Sequence[object]) -> dict[str, str]:
    """Return the field ``license``: the project's own SPDX expression, if any, and those of a library's contents."""
    known = all_trees()
    if unknown := [name for name in names if name not in known]:
        raise SpecError(f"request key 'trees' names an unknown tree {unknown[0]!r}; allowed: {', '.join(known)}")
    licenses = [own if isinstance(own, str) else None, *(known[name].license for name in known if name in names)]
    every = " AND ".join(dict.fromkeys(one for one in licenses if one))
    return {"license": every} if every else {}


def _manifest(files: Mapping[str, bytes], arch: str) -> dict[str, Any]:
    for name, data in files.items():
        if PurePosixPath(name).name == "manifest.json":
            try:
                manifest: dict[str, Any] = parse_json(data)
            except ValueError as error:
                raise SpecError(f"{name} is not JSON: {error}") from None
            if checked(WheelManifest, manifest, name).arch == arch:
                return manifest
    raise SpecError(f"request key 'arch' is {arch!r}, but no manifest.json among the files is for it")


def _info(metadata: StandardMetadata, tag: str, licenses: Mapping[str, bytes]) -> dict[str, bytes]:
    folder = _info_folder(metadata)
    pure = "true" if tag.endswith(NO_PLATFORM) else "false"
    info = {
        "METADATA": bytes(metadata.as_rfc822()),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: kernelwright\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode(),
        **{f"licenses/{name}": text for name, text in licenses.items()},
    }
    groups = {"console_scripts": metadata.scripts, "gui_scripts": metadata.gui_scripts, **metadata.entrypoints}
    sections = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in sorted(entries.items()))])
        for group, entries in sorted(groups.items())
        if entries
    ]
    if sections:
        info["entry_points.txt"] = ("\n\n".join(sections) + "\n").encode()
    return {f"{folder}/{name}": data for name, data in info.items()}


def _statement(
    metadata: StandardMetadata, tag: str, arch: str | None, files: Mapping[str, bytes], materials: object
) -> bytes:
    external = {"distribution": metadata.canonical_name, "version": str(metadata.version)}
    predicate = provenance.predicate(
        provenance.WHEEL_BUILD,
        {**external, "arch": arch} if arch else external,
        {"tag": tag},
        [*provenance.materials_of(materials), *provenance.generator_materials()],
    )
    return provenance.statement_text(
        {name: provenance.sha256(data) for name, data in files.items()}, predicate
    ).encode()


def _write(files: Mapping[str, bytes], name: str, output: Path) -> str:
    from wheel.wheelfile import WheelFile

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, name)
        with _dated(_EPOCH), WheelFile(made, "w", ZIP_STORED) as wheel:
            # Metadata last, as the wheel format recommends.
            for path in sorted(files, key=lambda path: (".dist-info/" in path, path)):
                entry = ZipInfo(path, (1980, 1, 1, 0, 0, 0))
                entry.create_system, entry.external_attr = 3, (0o644 | stat.S_IFREG) << 16
                wheel.writestr(entry, files[path], ZIP_STORED)
        if made.stat().st_size > MAX_BYTES:
            raise SpecError(f"{name} has {made.stat().st_size} bytes; allowed: {MAX_BYTES}; split the kernel library")
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, output)
    return provenance.sha256(output.read_bytes())


@contextmanager
def _dated(seconds: str) -> Iterator[None]:
    """Set the date of RECORD, which the writer takes from the environment."""
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = seconds
    try:
        yield
    finally:
        if before is None:
            del os.environ["SOURCE_DATE_EPOCH"]
        else:
            os.environ["SOURCE_DATE_EPOCH"] = before


def _info_folder(metadata: StandardMetadata) -> str:
    return f"{_escaped(metadata)}.dist-info"


def _escaped(metadata: StandardMetadata) -> str:
    return f"{metadata.canonical_name.replace('-', '_')}-{metadata.version}"


def _checked(name: object, where: str) -> PurePosixPath:
    """``name`` as a path that stays below a wheel's folder on every system; SpecError, with ``where``, otherwise."""
    path = PurePosixPath(str(name))
    plain = isinstance(name, str) and name.isprintable() and str(path) == name and not set(name) & set("\\:")
    if not plain or path.is_absolute() or not path.parts or ".." in path.parts:
        raise SpecError(
            f"{where} has {name!r}; allowed: printable relative paths inside the wheel, without .. \\ and :"
        )
    return path


def _read(path: object) -> bytes:
    try:
        return Path(str(path)).read_bytes()
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}") from None
