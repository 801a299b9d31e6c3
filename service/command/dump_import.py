"""`loxodon import --from`: sends the dump of another memory service through the REST API, like any other client.

Ids of the source are kept, so a second import finds what the first one stored and adds nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.command import dump_readers
from service.command.dump_readers import Owner, Record
from service.command.output import Advance
from service.command.problems import CommandError
from service.command.rest import Api
from service.domain import sizes


@dataclass(slots=True)
class DumpImport:
    """Sends records. `stored`: how many memories and edges were stored or existed already; `report`: what could not be
    imported."""

    rest: Api
    stored: Counter[str] = field(default_factory=Counter)
    report: dump_readers.Report = field(default_factory=dump_readers.Report)
    waiting: list[dict[str, Any]] = field(default_factory=list)

    def send(self, record: Record) -> None:
        if not record.source:
            together = sum(sizes.weight(each["content"]) for each in [*self.waiting, record.fields])
            if len(self.waiting) >= sizes.MAX_BATCH_ITEMS or together > sizes.MAX_TEXTS:
                self.flush()
            self.waiting.append(record.fields)
            return
        self.flush()  # edges lead to memories that are there
        try:
            self.rest.send("POST", f"/v1/memories/{record.source}/relations", record.fields)
        except CommandError as exc:
            if not self.rest.answered:
                raise
            self.report.note(f"edges that were refused: {exc}", record.source)
        else:
            self.stored["edges"] += 1

    def flush(self) -> None:
        """Stores the memories that wait."""
        items, self.waiting = self.waiting, []
        if not items:
            return
        key = hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
        answer = self.rest.send("POST", "/v1/memories/batch", {"items": items}, idempotency_key=f"import-{key}")
        for item, done in zip(items, answer["results"], strict=True):
            if done["error"] is None:
                self.stored["memories"] += 1
            else:
                self.report.note(f"memories that were refused: {done['error']['detail']}", item["id"])


def bring(rest: Api, source: str, path: Path, owner: Owner, *, advance: Advance) -> DumpImport:
    """Stores everything of a dump that can be stored. Raises CommandError where the dump cannot be read, the key may
    not write, or the server does not answer; what was sent until then is stored."""
    sender = DumpImport(rest)
    rest.get("/v1/whoami")  # a wrong key is one error, not one for each record
    total = sum(1 for _ in dump_readers.read(source, path, owner, dump_readers.Report()))
    for number, record in enumerate(dump_readers.read(source, path, owner, sender.report), 1):
        sender.send(record)
        advance("records", number, total)
    sender.flush()
    return sender
