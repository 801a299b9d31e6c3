"""What does a memory name, and what is it in one line?

Rules only, so the job costs milliseconds and needs no key. It works on the text it read; when that changed before the
result is written, nothing is written: whoever changed it queued a job of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from service.db import enrichment
from service.db import entities as table
from service.db.enrichment import Subject
from service.db.entities import Named, Owner
from service.domain.job import Job
from service.language import entities, summary
from service.resources import Resources

EXTRACTED_BY = "rules"
KNOWN_LIMIT = 2_000  # names of one user that are recognised in lower case; the oldest, because they recur


@dataclass(frozen=True, slots=True)
class Findings:
    """What a text says: its entities, each once, and its first sentence."""

    named: tuple[Named, ...]
    summary: str | None


async def run(job: Job, res: Resources) -> None:
    """Writes entities, links, summary and enriched_at of one memory. A memory that is gone is done."""
    if job.memory_id is None:
        return
    if job.attempts > 1:  # the first attempt is counted with its result, or by the second
        async with res.db.begin(job.workspace_id) as session:
            await enrichment.count_attempt(session, job.workspace_id, job.memory_id, job.attempts)
    async with res.db.read(job.workspace_id) as session:
        subject = await enrichment.subject(session, job.workspace_id, job.memory_id)
        if subject is None:
            return
        known = await table.known(session, _owner(job.workspace_id, subject), limit=KNOWN_LIMIT)
    findings = await res.threads.run(find, subject.text, known)
    await _write(job, res, subject, findings)


def find(text: str, known: dict[str, Named]) -> Findings:
    """Entities under the name they are known by, and the summary; None for a text without a sentence."""
    types = {key: named.type for key, named in known.items()}
    named: dict[str, Named] = {}
    for entity in entities.find(text, known=types):
        found = known.get(table.key(entity.name), Named(entity.name, entity.type))
        named.setdefault(table.key(found.name), found)
    return Findings(tuple(named.values()), summary.first_sentence(text) or None)


async def _write(job: Job, res: Resources, subject: Subject, findings: Findings) -> None:
    owner = _owner(job.workspace_id, subject)
    async with res.db.begin(job.workspace_id) as session:
        if not await enrichment.lock_unchanged(session, job.workspace_id, subject):
            return
        await table.add(session, owner, findings.named, extracted_by=EXTRACTED_BY, first_seen=subject.timestamp)
        await table.link(session, owner, subject.id, findings.named, extracted_by=EXTRACTED_BY)
        await enrichment.mark_enriched(
            session,
            job.workspace_id,
            subject.id,
            summary=findings.summary,
            attempts=job.attempts,
            now=res.clock(),
        )


def _owner(workspace_id: UUID, subject: Subject) -> Owner:
    return Owner(workspace_id, subject.user_id, subject.channel)
