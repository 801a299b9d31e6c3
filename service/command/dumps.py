"""`loxodon import --from`: reads the dump of another memory service as records of ours, and sends them to the
REST API.

mem0      what get_all answers, as JSON or JSON lines; or the rows of its pgvector table as JSON lines
automem   the folder that backup_automem.py makes, one of its files, or a list of memories as JSON

Each reader yields its records in the order to send them. Files may be compressed with gzip. Ids of the source are kept,
so a second import finds what the first one stored and adds nothing. docs/moving.md says what becomes of which field.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from service.command.rest import Api, Refused
from service.command.terminal import Advance, CommandError
from service.domain import moments, sizes
from service.domain.kinds import MemoryType
from service.domain.relation import AUTHORABLE, RelationType
from service.http.schemas import RESERVED_METADATA

Fields = dict[str, Any]

MEMORY_TYPES = frozenset(map(str, MemoryType))
EDGE_TYPES = frozenset(map(str, (*AUTHORABLE, RelationType.SIMILAR_TO)))
"""Edges between memories that a caller may make and that others know too."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a dump holds: a memory, or an edge between memories, as the `fields` of a request. `place`: where in the
    file; `source`: the id of the memory where an edge begins."""

    fields: Fields
    place: str
    source: str = ""


@dataclass(slots=True)
class Report:
    """The records that could not be imported, counted by reason, with some of the ids. `refused`: a sentence for each
    that is broken, or that the server refused; `place`: of the record that is being read."""

    lost: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    place: str = ""

    def note(self, reason: str, id: object = None) -> None:
        self.lost[reason] += 1
        if id is not None and len(self.examples.setdefault(reason, [])) < 5:
            self.examples[reason].append(str(id))

    @contextmanager
    def reading(self, place: str) -> Iterator[None]:
        """Within the block a record of another form is refused, and does not stop the others."""
        self.place = place
        try:
            yield
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            self.refused.append(f"{place}: has another form ({exc})")


def read(source: str, path: Path, owner: Fields, report: Report) -> Iterator[Record]:
    """The records of a dump; those that name nobody get the ids of `owner`. Raises CommandError for a source or a file
    that cannot be read."""
    if source not in READERS:
        raise CommandError(f"--from: {source!r} is not one of {', '.join(READERS)}.")
    if not path.exists():
        raise CommandError(f"{path} does not exist.")
    with report.reading(path.name):
        yield from READERS[source](path, owner, report)


# -- mem0

MEM0_FIELDS = ("app_id", "actor_id", "role", "immutable")
"""Those that are kept in the metadata."""


def _mem0(path: Path, owner: Fields, report: Report) -> Iterator[Record]:
    for place, row in _objects(path, ("results", "memories"), report):
        with report.reading(place):
            fields = row
            if payload := _parse(row.get("payload")):  # a row of its table
                named = {"data", "hash", "user_id", "agent_id", "run_id", "created_at", "updated_at", "metadata"}
                extra = {name: value for name, value in payload.items() if name not in named and value is not None}
                fields = {**payload, "memory": payload.get("data"), "metadata": {**extra, **_metadata(payload)}}
                report.note("vectors of the table: made again by this service's embedder")
            yield from _memory(
                owner,
                report,
                id=row.get("id"),
                content=fields.get("memory") or fields.get("text"),
                whose=fields,
                metadata={**_metadata(fields), **{name: fields[name] for name in MEM0_FIELDS if fields.get(name)}},
                tags=fields.get("categories") or [],
                timestamp=fields.get("created_at"),
                updated_at=fields.get("updated_at"),
                expires_at=fields.get("expiration_date"),
            )


# -- AutoMem


def _automem(path: Path, owner: Fields, report: Report) -> Iterator[Record]:
    backup = _latest(path)
    document = _document(backup)
    if not isinstance(document, dict) or "nodes" not in document:
        yield from _automem_points(backup, owner, report)
        return
    ids: dict[Any, str] = {}
    for place, node in _number("node", document["nodes"]):
        with report.reading(place):
            if "Memory" not in node.get("labels", ()):
                report.note("nodes that are no memories: entities and patterns are found again")
                continue
            for made in _automem_memory(node["properties"], owner, report):
                ids[node["id"]] = made.fields["id"]
                yield made
    for place, each in _number("relationship", document.get("relationships") or ()):
        with report.reading(place):
            source, target = ids.get(each["source_id"]), ids.get(each["target_id"])
            if source is None or target is None or source == target:
                report.note("relations to what is not a memory here")
            elif each["type"] not in EDGE_TYPES:
                report.note(f"relations of the type {each['type']}")
            else:
                properties = {
                    name: value for name, value in (each.get("properties") or {}).items() if value is not None
                }
                strength = properties.pop("strength", None)
                strong = {"strength": min(max(float(strength), 0.0), 1.0)} if isinstance(strength, int | float) else {}
                fields = {"target_id": target, "type": each["type"], "properties": properties, **strong}
                yield Record(fields, place, source)


def _automem_points(path: Path, owner: Fields, report: Report) -> Iterator[Record]:
    report.note("relations: they are in the file of the graph (falkordb), which is not there")
    for place, each in _objects(path, ("points", "memories", "results"), report):
        with report.reading(place):
            payload = each.get("payload") or each.get("memory")
            fields = payload if isinstance(payload, dict) else each
            yield from _automem_memory({"id": each.get("id") or each.get("memory_id"), **fields}, owner, report)


def _automem_memory(fields: Fields, owner: Fields, report: Report) -> Iterator[Record]:
    if fields.get("archived"):
        report.note("archived memories", fields.get("id"))
        return
    kind = fields.get("type")
    if kind not in MEMORY_TYPES:
        report.note(f"the type {kind}: the memory is classified again", fields.get("id"))
        kind = None
    begins, ends = _time(fields.get("t_valid")), _time(fields.get("t_invalid"))
    if begins and ends and begins >= ends:
        report.note("t_valid of memories that end before they begin", fields.get("id"))
        begins = None
    for name in ("relevance_score", "access_count", "summary"):
        if fields.get(name):
            report.note(f"{name}: computed again here")
    yield from _memory(
        owner,
        report,
        id=fields.get("id"),
        content=fields.get("content"),
        whose=fields,
        metadata=_metadata(fields),
        tags=fields.get("tags") or [],
        timestamp=fields.get("timestamp"),
        updated_at=fields.get("updated_at"),
        last_accessed=fields.get("last_accessed"),
        t_valid=begins,
        t_invalid=ends,
        type=kind,
        type_confidence=fields.get("confidence") if kind else None,
        importance=fields.get("importance"),
    )


# -- what all of them need

NO_TEXT = "memories without a text"
NOBODY = "records without an owner: name one with --user or --agent"
TIMES = ("timestamp", "updated_at", "last_accessed", "expires_at", "t_valid", "t_invalid")


def _memory(
    owner: Fields, report: Report, *, id: Any, content: Any, whose: Mapping[str, Any], metadata: Fields, **more: Any
) -> Iterator[Record]:
    """A store request for one memory, stored verbatim; none without a text or an owner."""
    ids = {name: str(whose[name]) for name in ("user_id", "agent_id", "run_id") if whose.get(name)} or owner
    if not isinstance(content, str) or not content.strip():
        report.note(NO_TEXT, id)
        return
    if not ids:
        report.note(NOBODY, id)
        return
    kept = {f"foreign_{name}" if name in RESERVED_METADATA else name: value for name, value in metadata.items()}
    if kept.keys() != metadata.keys():
        report.note("names of metadata that are fields here: kept as foreign_...", id)
    fields: Fields = {"id": _uuid(id or [content, ids]), "content": content, "dedup": False, "metadata": kept, **ids}
    if id is not None and fields["id"] != str(id).lower():
        kept.setdefault("foreign_id", str(id))
    for name, value in more.items():
        shown = _time(value) if name in TIMES else value
        if value and shown is None:
            report.note(f"{name}: not a time", id)
        elif shown not in (None, []):
            fields[name] = shown
    if {"updated_at", "last_accessed"} & fields.keys():
        fields["allow_system_fields"] = True
    yield Record(fields, report.place)


def _uuid(id: Any) -> str:
    """The id itself if it is a UUID, else one that is always the same for it."""
    try:
        return str(UUID(str(id)))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"loxodon:import:{id}"))


def _time(value: Any) -> str | None:
    """ISO 8601 with a zone, UTC by default; None for anything else."""
    try:
        return moments.parse(value).isoformat()
    except ValueError:
        return None


def _metadata(fields: Mapping[str, Any]) -> Fields:
    """The metadata of a record; raises TypeError for what is no object."""
    given = fields.get("metadata") or {}
    if not (metadata := _parse(given)) and given not in ({}, "{}"):
        raise TypeError("metadata: must be an object")
    return metadata


def _parse(value: Any) -> Fields:
    """An object, which some keep as a string of JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (RecursionError, ValueError):
            return {}
    return value if isinstance(value, dict) else {}


def _latest(path: Path) -> Path:
    """The newest backup of AutoMem's graph below a folder, else that of its vectors; the file itself if it is one."""
    paths = sorted(path.glob("**/falkordb_*.json*")) or sorted(path.glob("**/qdrant_*.json*"))
    if path.is_dir() and not paths:
        raise CommandError(f"{path} has no backup of AutoMem: no file falkordb_*.json or qdrant_*.json.")
    return paths[-1] if path.is_dir() else path


def _text(path: Path) -> Iterable[str]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig") as file:
            yield from file
    except (OSError, EOFError, UnicodeDecodeError) as exc:
        raise CommandError(f"{path} cannot be read: {exc}.") from exc


def _document(path: Path) -> Any:
    try:
        return json.loads("".join(_text(path)))
    except (RecursionError, ValueError) as exc:
        raise CommandError(f"{path} is not valid JSON: {exc}.") from exc


def _objects(path: Path, lists: tuple[str, ...], report: Report) -> Iterator[tuple[str, Any]]:
    """The members of a JSON document (a list, or the lists with these names), or the values of JSON lines, each with
    its place."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder: name a file.")
    head = [line.strip() for line in islice(filter(str.strip, _text(path)), 2)]
    first = _parse(head[0]) if head else {}
    are_lines = bool(first) or [line[0] for line in head] == ["{", "{"]  # the first may be the broken one
    if are_lines and not set(lists) & first.keys():
        for place, line in _number("line", _text(path)):
            if line.strip():
                try:
                    yield place, json.loads(line)
                except (RecursionError, ValueError):
                    report.refused.append(f"{place}: is not valid JSON")
    else:
        document = _document(path)
        if isinstance(document, dict):
            document = [each for name in lists for each in document.get(name) or []]
        if not isinstance(document, list):
            raise CommandError(f"{path} holds no list of objects, nor one under {' or '.join(lists)}.")
        yield from _number("record", document)


def _number(what: str, rows: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each row with its place, such as "line 3"."""
    return ((f"{what} {number}", row) for number, row in enumerate(rows, 1))


READERS: Mapping[str, Callable[[Path, Fields, Report], Iterator[Record]]] = {
    "mem0": _mem0,
    "automem": _automem,
}


@dataclass(slots=True)
class DumpImport:
    """Sends records. `stored`: how many memories and edges were stored or existed already; `report`: what could not be
    imported."""

    rest: Api
    stored: Counter[str] = field(default_factory=Counter)
    report: Report = field(default_factory=Report)
    waiting: list[Record] = field(default_factory=list)

    def send(self, record: Record) -> None:
        if not record.source:
            self.waiting.append(record)
            if len(self.waiting) == sizes.MAX_BATCH_ITEMS:
                self.flush()
            return
        self.flush()  # edges lead to memories that are there
        try:
            self.rest.send("POST", f"/v1/memories/{record.source}/relations", record.fields)
            self.stored["edges"] += 1
        except Refused as exc:
            self.report.refused.append(f"{record.place}: {exc}")

    def flush(self) -> None:
        """Stores the memories that wait."""
        records, self.waiting = self.waiting, []
        if records:
            self._store(records)

    def _store(self, records: list[Record]) -> None:
        """Stores memories in one batch; if it is refused, in two halves, down to the single one that is refused."""
        items = [record.fields for record in records]
        key = hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
        try:
            answer = self.rest.send("POST", "/v1/memories/batch", {"items": items}, idempotency_key=f"import-{key}")
        except Refused as exc:
            if len(records) == 1:
                self.report.refused.append(f"{records[0].place}: {str(exc).removeprefix('items[0].')}")
            else:
                self._store(records[: len(records) // 2])
                self._store(records[len(records) // 2 :])
            return
        for record, done in zip(records, answer["results"], strict=True):
            if done["error"] is None:
                self.stored["memories"] += 1
            else:
                self.report.refused.append(f"{record.place}: {done['error']['detail']}")


def bring(rest: Api, source: str, path: Path, owner: Fields, *, advance: Advance) -> DumpImport:
    """Stores everything of a dump that can be stored. Raises CommandError where the dump cannot be read, the key may
    not write, or the server does not answer; what was sent until then is stored."""
    sender = DumpImport(rest)
    rest.get("/v1/whoami")  # a wrong key is one error, not one for each record
    first = Report()
    total = sum(1 for _ in read(source, path, owner, first))
    if not total and first.refused:
        raise CommandError(f"{path} is not a dump of {source}: {first.refused[0]}.")
    if not total and (empty := first.lost[NO_TEXT]):
        raise CommandError(f"{path} is not a dump of {source}: none of its {empty} records has a text.")
    for number, record in enumerate(read(source, path, owner, sender.report), 1):
        sender.send(record)
        advance("records", number, total)
    sender.flush()
    return sender
