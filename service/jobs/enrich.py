"""What does a memory name, what does it tell of that, which memories stand beside it, and what is it in one line?

Rules only, so the job costs milliseconds and needs no key; what a model found when the memory was written comes with
the job and is stored beside. The nearest memories come with it too: deduplication looked them up already. It works on
the text it read; when that changed before the result is written, nothing is written: whoever changed it queued a job
of its own. Every link, relation and edge of a memory that the same text no longer gives goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from service.db import edges, enrichment, entity_edges
from service.db import entities as table
from service.db.engine import Session, plan_by_values
from service.db.enrichment import Subject
from service.db.entity_edges import Said
from service.domain.entity import LLM, RULES, Named, Owner, display_name, key, type_name
from service.domain.fact import Related
from service.domain.job import Job
from service.domain.relation import Relation, RelationType
from service.language import entities, pii, relations, summary
from service.language.relation_labels import normalise
from service.resources import Resources

EXTRACTED_BY = RULES
KNOWN_LIMIT = 2_000  # names of one user that are recognised in lower case; the oldest, because they recur
LLM_CONFIDENCE, RULES_CONFIDENCE = 0.85, 0.9
NOBODY = frozenset({"user", "the user", "assistant", "i", "me", "we", "you"})
"""Who speaks is no entity: the memory's own scope says who that is."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a text says: its entities, each once, what it tells of them, and its first sentence."""

    named: tuple[Named, ...]
    summary: str | None
    related: tuple[Related, ...] = ()


async def run(job: Job, res: Resources) -> None:
    """Writes entities, links, relations, associations, summary and enriched_at of one memory. A memory that is gone is
    done."""
    if job.memory_id is None:
        return
    if job.attempts > 1:  # the first attempt is counted with its result, or by the second
        async with res.db.begin(job.workspace_id) as session:
            await enrichment.count_attempt(session, job.workspace_id, job.memory_id, job.attempts)
    window_s = res.settings.occurred_before_window_s
    async with res.db.read(job.workspace_id, by_key=True) as session:
        subject = await enrichment.subject(session, job.workspace_id, job.memory_id, window_s=window_s)
        if subject is None:
            return
        known = await table.known(session, _owner(job.workspace_id, subject), limit=KNOWN_LIMIT)
        graph = subject.graph_enabled if subject.graph_enabled is not None else res.settings.graph_enabled
        near = await _near(session, job, subject, res) if graph else {}
    findings = await res.threads.run(find, subject.text, known)
    told = await res.threads.run(by_model, job.payload) if "entities" in job.payload else Findings((), None)
    await _write(job, res, subject, findings, told, near, graph=graph)


def find(text: str, known: dict[str, Named]) -> Findings:
    """Entities under the name they are known by, and the summary; None for a text without a sentence."""
    types = {each: named.type for each, named in known.items()}
    named: dict[str, Named] = {}
    names: dict[str, str] = {}
    spans = entities.find(text, known=types)
    for entity in spans:
        found = known.get(key(entity.name), Named(entity.name, entity.type))
        named.setdefault(key(found.name), found)
        names[entity.name] = found.name
    related = tuple(
        Related(names[each.source], each.relation, names[each.target]) for each in relations.find(text, spans)
    )
    return Findings(tuple(named.values()), summary.first_sentence(text) or None, related)


def by_model(payload: Mapping[str, object]) -> Findings:
    """What a model found in the text, its names redacted; speakers, and relations of what it did not name, are left
    out (R8.04)."""
    clean, _ = pii.redact_json({"entities": payload.get("entities"), "relations": payload.get("relations")})
    assert isinstance(clean, dict)
    named: dict[str, Named] = {}
    for name, kind in clean["entities"] or ():
        if key(name) not in NOBODY and "[REDACTED" not in name:
            named.setdefault(key(name), Named(display_name(name), type_name(kind)))
    related = tuple(
        Related(source, label, target)
        for source, label, target in clean["relations"] or ()
        if key(source) in named and key(target) in named and key(source) != key(target)
    )
    return Findings(tuple(named.values()), None, related)


async def _near(session: Session, job: Job, subject: Subject, res: Resources) -> dict[UUID, float]:
    """The memories it is SIMILAR_TO with the similarity, the nearest first. A turn of a conversation has none: it
    resembles the turns around it."""
    most, least = res.settings.similar_to_k, res.settings.similar_to_min
    if not most:
        return {}
    found: Sequence[tuple[UUID, float]]
    came = job.payload.get("near")
    if isinstance(came, list) and job.payload.get("hash") == subject.hash:
        found = [(UUID(each), similarity) for each, similarity in came]
    elif subject.is_turn:
        return {}
    else:
        await plan_by_values(session)
        found = await enrichment.neighbours(
            session,
            job.workspace_id,
            subject,
            generation=res.generation,
            similarity=res.embedder.similarity,
            limit=most,
            exact_rows=res.settings.exact_scope_rows,
            now=res.clock(),
        )
    close = sorted((each for each in found if each[1] >= least), key=lambda each: -each[1])
    return dict(close[:most])


async def _write(
    job: Job,
    res: Resources,
    subject: Subject,
    findings: Findings,
    told: Findings,
    near: Mapping[UUID, float],
    *,
    graph: bool,
) -> None:
    owner, workspace_id = _owner(job.workspace_id, subject), job.workspace_id
    drawn = _associations(subject, near, res) if graph else []
    async with res.db.begin(workspace_id, by_key=True) as session:
        ends = [subject.id, *(each.source_id if each.target_id == subject.id else each.target_id for each in drawn)]
        there = await enrichment.lock_unchanged(session, workspace_id, subject, ends)
        if subject.id not in there:
            return
        for found, by, sure in ((told, LLM, LLM_CONFIDENCE), (findings, RULES, RULES_CONFIDENCE)):
            if by == LLM and not found.named and subject.version == 1:
                continue  # no model spoke of it, and no earlier text was there to speak of
            await table.add(session, owner, found.named, extracted_by=by, first_seen=subject.timestamp)
            ids = await table.link(session, owner, subject.id, found.named, extracted_by=by)
            if graph and (found.related or subject.version > 1):
                await _say(session, workspace_id, subject, found.related, ids, res, by=by, confidence=sure)
        if graph and (drawn or subject.version > 1):
            kept = [each for each in drawn if {each.source_id, each.target_id} <= there]
            await edges.draw(session, workspace_id, subject.id, kept, extracted_by=RULES)
        await enrichment.mark_enriched(
            session,
            workspace_id,
            subject.id,
            summary=findings.summary,
            attempts=job.attempts,
            now=res.clock(),
        )


async def _say(
    session: Session,
    workspace_id: UUID,
    subject: Subject,
    related: Sequence[Related],
    ids: Mapping[str, UUID],
    res: Resources,
    *,
    by: str,
    confidence: float,
) -> None:
    """What the text tells of its entities; both are linked to it, and locked before an edge between them is touched."""
    said: dict[tuple[UUID, str, UUID], Said] = {}
    for each in related:
        source, target, kind = ids.get(key(each.source)), ids.get(key(each.target)), normalise(each.relation)
        if source and target and source != target and kind:
            said.setdefault((source, kind, target), Said(source, kind, each.relation, target))
    ends = {end for one in said.values() for end in (one.source_id, one.target_id)}
    there = await entity_edges.lock_ends(session, workspace_id, sorted(ends)) if ends else {}
    kept = [one for one in said.values() if one.source_id in there and one.target_id in there]
    now = res.clock()
    await entity_edges.say(session, workspace_id, subject.id, kept, extracted_by=by, confidence=confidence, now=now)
    if kept:
        await entity_edges.hold_as_told(session, workspace_id, subject.id, now=now)


def _associations(subject: Subject, near: Mapping[UUID, float], res: Resources) -> list[Relation]:
    """SIMILAR_TO the near ones, as strong as they are similar, and one OCCURRED_BEFORE from the memory just before, the
    stronger the closer in time (R8.13)."""
    found = [
        Relation(subject.id, RelationType.SIMILAR_TO, other, round(similarity, 4))
        for other, similarity in near.items()
        if other != subject.id
    ]
    before = subject.before
    if before is not None:
        gap_s = (subject.timestamp - before.timestamp).total_seconds()
        closeness = 1 - gap_s / res.settings.occurred_before_window_s
        found.append(Relation(before.id, RelationType.OCCURRED_BEFORE, subject.id, round(max(closeness, 0.1), 4)))
    return found


def _owner(workspace_id: UUID, subject: Subject) -> Owner:
    return Owner(workspace_id, subject.user_id, subject.channel)
