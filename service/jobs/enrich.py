"""What does a memory name, what does it tell of that, which memories stand beside it, and what is it in one line?

Rules only, so the job costs milliseconds and needs no key; what a model found when the memory was written comes with
the job and is stored beside. The nearest memories come with it too: deduplication looked them up already. It works on
the text it read; when that changed before the result is written, nothing is written: whoever changed it queued a job
of its own. Every link, relation and edge of a memory that the same text no longer gives goes.

Memories of one workspace whose jobs were claimed together take the same statements in one transaction: most of what an
enrichment costs is round trips. When that fails, the loop has each done by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from service.db.engine import Session, plan_by_values
from service.db.graph import edges, entity_relations
from service.db.graph import entity_links as table
from service.db.graph.entity_links import Mention
from service.db.graph.entity_relations import Said
from service.db.memories import enrichment
from service.db.memories.enrichment import Enriched, Subject
from service.domain.entity import LLM, RULES, EntityOwner, NamedEntity, key
from service.domain.job import Job
from service.domain.relation import Relation, RelationType
from service.jobs import findings
from service.jobs.findings import Findings
from service.language.relation_labels import normalise
from service.resources import Resources

KNOWN_LIMIT = 2_000  # names of one user that are recognised in lower case; the oldest, because they recur
LLM_CONFIDENCE, RULES_CONFIDENCE = 0.85, 0.9
TOGETHER = 20
"""Memories in one transaction at most: their rows stay locked for some 20 ms."""


@dataclass(frozen=True, slots=True)
class Read:
    """A memory as it was read, with what surrounds it. `near`: the memories it is SIMILAR_TO with the similarity."""

    job: Job
    subject: Subject
    graph: bool
    near: Mapping[UUID, float]

    @property
    def owner(self) -> EntityOwner:
        return EntityOwner(self.job.workspace_id, self.subject.user_id, self.subject.channel)


@dataclass(frozen=True, slots=True)
class Voice:
    """What one reader, the rules or a model, found in a memory, and how sure that is (0..1)."""

    read: Read
    by: str
    confidence: float
    found: Findings

    @property
    def name(self) -> tuple[UUID, str]:
        return self.read.subject.id, self.by


async def run(job: Job, res: Resources) -> None:
    """Writes entities, links, relations, associations, summary and enriched_at of one memory. A memory that is gone is
    done."""
    await run_together([job], res)


async def run_together(jobs: Sequence[Job], res: Resources) -> None:
    """The same for the memories of several jobs of one workspace; of a memory with two jobs one after the other."""
    now, later = _one_each(jobs)
    if now:
        await _enrich(now, res)
    if later:
        await run_together(later, res)


def _one_each(jobs: Sequence[Job]) -> tuple[dict[UUID, Job], list[Job]]:
    first: dict[UUID, Job] = {}
    others = []
    for job in jobs:
        if job.memory_id is not None and first.setdefault(job.memory_id, job) is not job:
            others.append(job)
    return first, others


async def _enrich(jobs: Mapping[UUID, Job], res: Resources) -> None:
    workspace_id = next(iter(jobs.values())).workspace_id
    for memory_id, job in jobs.items():
        if job.attempts > 1:  # the first attempt is counted with its result, or by the second
            async with res.db.begin(workspace_id) as session:
                await enrichment.count_attempt(session, workspace_id, memory_id, job.attempts)
    async with res.db.read(workspace_id, by_key=True) as session:
        found = await _read(session, workspace_id, jobs, res)
        owners = list(dict.fromkeys(each.owner for each in found))
        known = await table.known(session, workspace_id, owners, limit=KNOWN_LIMIT) if owners else {}
        found = await _with_near(session, found, res)
    if found:
        await _write(workspace_id, await res.threads.run(listen, found, known), res)


async def _read(session: Session, workspace_id: UUID, jobs: Mapping[UUID, Job], res: Resources) -> list[Read]:
    settings = res.settings
    there = await enrichment.subjects(session, workspace_id, list(jobs), window_s=settings.occurred_before_window_s)
    found = []
    for memory_id, job in jobs.items():
        if (subject := there.get(memory_id)) is not None:
            graph = settings.graph_enabled if subject.graph_enabled is None else subject.graph_enabled
            found.append(Read(job, subject, graph, {}))
    return found


def listen(reads: Sequence[Read], known: Mapping[EntityOwner, dict[str, NamedEntity]]) -> list[Voice]:
    """What the model and the rules say of each memory, in this order. A name that one memory brings is known to the
    next, as if they came one after the other."""
    voices = []
    for read in reads:
        names = known[read.owner]
        model, rules = findings.by_model(read.job.payload), findings.find(read.subject.text, names)
        for each in (*model.named, *rules.named):
            names.setdefault(key(each.name), each)
        if model.named or read.subject.version > 1:  # else no model spoke of it, nor of an earlier text
            voices.append(Voice(read, LLM, LLM_CONFIDENCE, model))
        voices.append(Voice(read, RULES, RULES_CONFIDENCE, rules))
    return voices


async def _with_near(session: Session, reads: Sequence[Read], res: Resources) -> list[Read]:
    """With the memories each is SIMILAR_TO, the nearest first. A turn of a conversation has none: it resembles the
    turns around it."""
    most, least = res.settings.similar_to_k, res.settings.similar_to_min
    found, by_values = [], False
    for read in reads:
        near: Sequence[tuple[UUID, float]] = ()
        came = read.job.payload.get("near")
        if not most or not read.graph:
            pass
        elif isinstance(came, list) and read.job.payload.get("hash") == read.subject.hash:
            near = [(UUID(each), similarity) for each, similarity in came]
        elif not read.subject.is_turn:
            if not by_values:
                await plan_by_values(session)
                by_values = True
            near = await _nearest(session, read, res)
        close = sorted((each for each in near if each[1] >= least), key=lambda each: -each[1])
        found.append(Read(read.job, read.subject, read.graph, dict(close[:most])))
    return found


async def _nearest(session: Session, read: Read, res: Resources) -> list[tuple[UUID, float]]:
    return await enrichment.neighbours(
        session,
        read.job.workspace_id,
        read.subject,
        generation=res.generation,
        similarity=res.embedder.similarity,
        limit=res.settings.similar_to_k,
        exact_rows=res.settings.exact_scope_rows,
        now=res.clock(),
    )


async def _write(workspace_id: UUID, voices: Sequence[Voice], res: Resources) -> None:
    rules = [voice for voice in voices if voice.by == RULES]
    drawn = {voice.read.subject.id: _associations(voice.read, res) for voice in rules}
    ends = {end for each in drawn.values() for edge in each for end in (edge.source_id, edge.target_id)}
    results = [
        Enriched(voice.read.subject.id, voice.read.subject.hash, voice.found.summary, voice.read.job.attempts)
        for voice in rules
    ]
    async with res.db.begin(workspace_id, by_key=True) as session:
        there = await enrichment.enrich(session, workspace_id, results, ends=ends, now=res.clock())
        kept = [voice for voice in voices if there.get(voice.read.subject.id) == voice.read.subject.hash]
        if not kept:
            return
        ids = await _name(session, workspace_id, kept)
        await _say(session, workspace_id, kept, ids, res)
        await _draw(session, workspace_id, kept, drawn, set(there))


async def _name(session: Session, workspace_id: UUID, voices: Sequence[Voice]) -> dict[tuple[UUID, str], UUID]:
    mentions = [
        Mention(voice.read.subject.id, voice.read.owner, named, voice.by, voice.read.subject.timestamp)
        for voice in voices
        for named in voice.found.named
    ]
    await table.add(session, workspace_id, mentions)
    return await table.link(session, workspace_id, mentions, read=[voice.name for voice in voices])


async def _say(
    session: Session,
    workspace_id: UUID,
    voices: Sequence[Voice],
    ids: Mapping[tuple[UUID, str], UUID],
    res: Resources,
) -> None:
    """What the texts tell of their entities; these are linked to them, and locked before an edge between them is
    touched."""
    telling = [each for each in voices if each.read.graph and (each.found.related or each.read.subject.version > 1)]
    if not telling:
        return
    said = {one: None for voice in telling for one in _said(voice, ids)}
    ends = sorted({end for one in said for end in (one.source_id, one.target_id)})
    there = await entity_relations.lock_ends(session, workspace_id, ends) if ends else {}
    kept = [one for one in said if one.source_id in there and one.target_id in there]
    former = {voice.read.subject.id for voice in telling if voice.read.subject.version > 1}
    if former:  # what an earlier text said may go with it
        await entity_relations.lock_said(session, workspace_id, sorted(former))
    now = res.clock()
    await entity_relations.say(session, workspace_id, kept, read=[voice.name for voice in telling], now=now)
    if kept:
        await entity_relations.hold_as_told(session, workspace_id, sorted({one.memory_id for one in kept}), now=now)


def _said(voice: Voice, ids: Mapping[tuple[UUID, str], UUID]) -> list[Said]:
    """Each relation once, under the label it has first."""
    memory_id = voice.read.subject.id
    said: dict[tuple[UUID, str, UUID], Said] = {}
    for each in voice.found.related:
        source, target = ids.get((memory_id, key(each.source))), ids.get((memory_id, key(each.target)))
        kind = normalise(each.relation)
        if source and target and source != target and kind:
            one = Said(memory_id, source, kind, each.relation, target, voice.by, voice.confidence)
            said.setdefault((source, kind, target), one)
    return list(said.values())


async def _draw(
    session: Session,
    workspace_id: UUID,
    voices: Sequence[Voice],
    drawn: Mapping[UUID, Sequence[Relation]],
    there: set[UUID],
) -> None:
    subjects = [voice.read.subject for voice in voices if voice.by == RULES and voice.read.graph]
    touched = [each.id for each in subjects if drawn[each.id] or each.version > 1]
    found = [edge for each in touched for edge in drawn[each] if {edge.source_id, edge.target_id} <= there]
    if touched:
        await edges.draw(session, workspace_id, touched, found, extracted_by=RULES)


def _associations(read: Read, res: Resources) -> list[Relation]:
    """SIMILAR_TO the near ones, as strong as they are similar, and one OCCURRED_BEFORE from the memory just before, the
    stronger the closer in time (R8.13)."""
    if not read.graph:
        return []
    subject = read.subject
    found = [
        Relation(subject.id, RelationType.SIMILAR_TO, other, round(similarity, 4))
        for other, similarity in read.near.items()
        if other != subject.id
    ]
    before = subject.before
    if before is not None:
        gap_s = (subject.timestamp - before.timestamp).total_seconds()
        closeness = 1 - gap_s / res.settings.occurred_before_window_s
        found.append(Relation(before.id, RelationType.OCCURRED_BEFORE, subject.id, round(max(closeness, 0.1), 4)))
    return found
