"""An export on disk: a folder of compressed JSON lines, and a manifest that is written last.

    <folder>/manifest.json        format, version, workspace, embedder, and of each table: columns, rows, SHA-256
    <folder>/<table>.jsonl.gz     a row per line, in the order of the primary key

Without the manifest a folder is an export that was interrupted. docs/moving.md describes the format.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from service.command.terminal import CommandError
from service.kit.settings import Settings

FORMAT, VERSION = "loxodon-export", 1
MANIFEST = "manifest.json"
SUFFIX = ".jsonl.gz"
LEVEL = 3
"""The level of gzip: a fifth larger than 9 and five times as fast; vectors are most of an export and hardly shrink."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What the manifest says of a table. `sha256`: of its lines before they are compressed."""

    name: str
    columns: list[str]
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export holds. `id` tells it from every other export; `revision`: of the schema it was read from."""

    id: str
    created_at: str
    service_version: str
    revision: int
    workspace: dict[str, Any]
    embedder: dict[str, Any]
    with_vectors: bool
    tables: list[TableEntry]

    @property
    def workspace_id(self) -> UUID:
        return UUID(self.workspace["id"])

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    def table(self, name: str) -> TableEntry | None:
        return next((each for each in self.tables if each.name == name), None)


class Writer:
    """Writes the lines of one table. Use `add` for each, then `end`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = open(folder / f"{name}{SUFFIX}", "wb", opener=_private)  # noqa: SIM115 - until `end`
        self._packed = gzip.GzipFile("", "wb", LEVEL, self._file, mtime=0)  # no name, no time: equal rows, equal files
        self._hash = hashlib.sha256()
        self.rows = 0

    def add(self, line: str) -> None:
        encoded = line.encode() + b"\n"
        self._hash.update(encoded)
        self._packed.write(encoded)
        self.rows += 1

    def end(self) -> str:
        """The hash of all lines; the file is on disk."""
        self._packed.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._hash.hexdigest()

    def close(self) -> None:
        """Gives up what is not on disk."""
        with suppress(OSError):
            self._packed.close()
        with suppress(OSError):
            self._file.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def begin(folder: Path) -> None:
    """Makes the folder, or clears what an interrupted export left in it. Raises CommandError for any other folder."""
    if (folder / MANIFEST).exists():
        raise CommandError(f"{folder} holds a finished export. Name a folder that does not exist yet.")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # regardless of the umask: every memory is in there
    left = list(folder.iterdir())
    if any(not path.name.endswith((SUFFIX, ".new")) for path in left):
        raise CommandError(f"{folder} holds other files. Name a folder that does not exist yet.")
    for each in left:
        each.unlink()


def finish(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest under another name and renames it: it is there whole, or not at all."""
    fresh = folder / f"{MANIFEST}.new"
    with open(fresh, "w", opener=_private) as file:
        json.dump({"format": FORMAT, "version": VERSION, **asdict(manifest)}, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(folder / MANIFEST)


def read(folder: Path) -> Manifest:
    """The manifest of a finished export. Raises CommandError for anything else."""
    if folder.is_file():
        raise CommandError(f"{folder} is a file: name the folder of an export, or give --from for another service.")
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError:
        if folder.is_dir() and any(folder.glob(f"*{SUFFIX}")):
            raise CommandError(f"The export in {folder} is incomplete: it was interrupted. Export again.") from None
        raise CommandError(f"There is no export in {folder}: it has no {MANIFEST}.") from None
    except (OSError, ValueError) as exc:
        raise CommandError(f"{folder / MANIFEST} cannot be read: {exc}.") from exc
    if not isinstance(manifest, dict) or manifest.pop("format", None) != FORMAT:
        raise CommandError(f"{folder / MANIFEST} is not the manifest of an export of Loxodon.")
    version = manifest.pop("version", None)
    if version != VERSION:
        raise CommandError(f"The export in {folder} has version {version} of the format; this Loxodon reads {VERSION}.")
    try:
        entries = [TableEntry(**each) for each in manifest.pop("tables")]
        whole = Manifest(**manifest, tables=entries)
        Settings.check_overrides(whole.workspace["settings"])
        return whole
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise CommandError(f"{folder / MANIFEST} is damaged: {exc}. Export again.") from exc


def lines(folder: Path, name: str) -> Iterator[str]:
    """The rows of a table, without the ends of their lines."""
    with gzip.open(folder / f"{name}{SUFFIX}", "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def verify(folder: Path, manifest: Manifest) -> None:
    """Reads every file. Raises CommandError for one that is missing, cut off or changed."""
    for entry in manifest.tables:
        digest, rows = hashlib.sha256(), 0
        try:
            for line in lines(folder, entry.name):
                digest.update(line.encode() + b"\n")
                rows += 1
        except (OSError, EOFError, UnicodeDecodeError) as exc:
            raise CommandError(f"{folder / (entry.name + SUFFIX)} is damaged: {exc}. Export again.") from exc
        if (rows, digest.hexdigest()) != (entry.rows, entry.sha256):
            raise CommandError(
                f"{folder / (entry.name + SUFFIX)} is not what was exported: it has {rows} of {entry.rows} rows, or "
                "they were changed. Export again."
            )
