"""Enrichment of memories: entities, relations between them, associations, and a one-line summary.

By rules only, so the job takes milliseconds and needs no key; what a model found when the memory was written comes with
the job and is stored, too. The nearest memories come with it too: deduplication looked them up already. It works on the
text it read; if that has changed by the time the result is written, nothing is written, because the change queued its
own job. Every link, relation and edge of a memory that its present text no longer yields is removed.

Memories of one workspace whose jobs were claimed together share statements and a transaction, because round trips are
most of the cost of an enrichment. When that fails, the loop runs each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from service.domain.entity import LLM, RULES, EntityOwner, NamedEntity, key, title_case, type_name
from service.domain.fact import NamedRelation
from service.domain.job import Job
from service.domain.relation import Relation, RelationType
from service.graph.statements import edges, entity_links, entity_relations
from service.graph.statements.entity_links import EntityMention
from service.graph.statements.entity_relations import ExtractedRelation
from service.language import entities, relations, sentences
from service.language.relations import normalise_label
from service.memories.statements import enrichment
from service.memories.statements.enrichment import MemoryToEnrich
from service.postgres.engine import Session, use_custom_plans
from service.redaction import detection
from service.runtime.resources import Resources

SIMILAR_FROM = 0.8
"""Similarity from which a new memory is SIMILAR_TO an older one; related statements are at .6 to .8."""
MAX_SIMILAR = 5
BEFORE_WINDOW_S = 3_600.0
"""How long before another a memory may be to be connected to it by OCCURRED_BEFORE."""
KNOWN_LIMIT = 2_000  # names of one user that are recognised in lower case; the oldest, because they recur
CONFIDENCE = {LLM: 0.85, RULES: 0.9}
MAX_BATCH = 20
"""Memories in one transaction, at most: their rows stay locked for some 20 ms."""
SPEAKERS = frozenset({"user", "the user", "assistant", "i", "me", "we", "you"})
"""Speakers are not entities: the scope of the memory names them."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Found in a text: its entities, each once, the relations between them, and its first sentence."""

    named: tuple[NamedEntity, ...] = ()
    summary: str | None = None
    related: tuple[NamedRelation, ...] = ()


@dataclass(frozen=True, slots=True)
class EnrichmentInput:
    """A memory as it was read, with its surroundings. `similar`: the memories it is SIMILAR_TO, with the similarity."""

    job: Job
    subject: MemoryToEnrich
    similar: Mapping[UUID, float] = field(default_factory=dict)

    @property
    def owner(self) -> EntityOwner:
        return EntityOwner(self.job.workspace_id, self.subject.scope.user_id, self.subject.scope.channel)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What the rules or a model found in a memory (`by`)."""

    entry: EnrichmentInput
    by: str
    found: Findings

    @property
    def subject(self) -> MemoryToEnrich:
        return self.entry.subject

    @property
    def name(self) -> tuple[UUID, str]:
        return self.subject.id, self.by


async def run(job: Job, res: Resources) -> None:
    """Writes entities, links, relations, associations, summary and enriched_at of one memory. For a deleted memory
    there is nothing to do."""
    await run_together([job], res)


async def run_together(jobs: Sequence[Job], res: Resources) -> None:
    """Enriches the memories of several jobs of one workspace; jobs of one memory run one after the other."""
    later = [(job.memory_id, job) for job in jobs if job.memory_id is not None]
    while later:
        now: dict[UUID, Job] = {}
        later = [(memory_id, job) for memory_id, job in later if now.setdefault(memory_id, job) is not job]
        await _enrich(now, res)


async def _enrich(jobs: Mapping[UUID, Job], res: Resources) -> None:
    workspace_id = next(iter(jobs.values())).workspace_id
    for memory_id, job in jobs.items():
        if job.attempts > 1:  # the first attempt is counted with its result or by the second attempt
            async with res.db.begin(workspace_id) as session:
                await enrichment.count_attempt(session, memory_id, job.attempts)
    async with res.db.read(workspace_id, generic_plans=True) as session:
        graph = res.settings.jobs.graph_enabled
        subjects = await enrichment.read_inputs(session, list(jobs), window_s=BEFORE_WINDOW_S, graph=graph)
        inputs = [EnrichmentInput(job, subjects[each]) for each, job in jobs.items() if each in subjects]
        owners = list(dict.fromkeys(item.owner for item in inputs))
        known = await entity_links.read_known(session, owners, limit=KNOWN_LIMIT) if owners else {}
        inputs = await _with_similar(session, inputs, res)
    if inputs:
        await _write(workspace_id, await res.rules.run(extract, inputs, known), res)


def extract(
    entries: Sequence[EnrichmentInput], known: Mapping[EntityOwner, dict[str, NamedEntity]]
) -> list[Extraction]:
    """What the model and the rules find in each memory, in this order. A name found in one memory is known for the
    next, as if they came one after the other."""
    extractions = []
    for entry in entries:
        names = known[entry.owner]
        model, rules = _find_by_model(entry.job.payload), find_by_rules(entry.subject.text, names)
        for entity in (*model.named, *rules.named):
            names.setdefault(key(entity.name), entity)
        if model.named or entry.subject.version > 1:  # else no model has read it or an earlier text
            extractions.append(Extraction(entry, LLM, model))
        extractions.append(Extraction(entry, RULES, rules))
    return extractions


async def _with_similar(session: Session, entries: Sequence[EnrichmentInput], res: Resources) -> list[EnrichmentInput]:
    """The inputs with the memories each is SIMILAR_TO, nearest first. A turn of a conversation has none, because it
    resembles the turns around it."""
    inputs, by_values = [], False
    for entry in entries:
        neighbours: Sequence[tuple[UUID, float]] = ()
        given = entry.job.payload.get("neighbours")
        if not entry.subject.graph:
            pass
        elif isinstance(given, list) and entry.job.payload.get("hash") == entry.subject.hash:
            neighbours = [(UUID(each), similarity) for each, similarity in given]
        elif not entry.subject.is_turn:
            if not by_values:
                await use_custom_plans(session)
                by_values = True
            neighbours = await enrichment.find_neighbours(
                session,
                entry.subject,
                generation=res.generation,
                similarity=res.embedder.similarity,
                limit=MAX_SIMILAR,
                now=res.clock(),
            )
        close = sorted((each for each in neighbours if each[1] >= SIMILAR_FROM), key=lambda each: -each[1])
        inputs.append(replace(entry, similar=dict(close[:MAX_SIMILAR])))
    return inputs


async def _write(workspace_id: UUID, extractions: Sequence[Extraction], res: Resources) -> None:
    rules = [extraction for extraction in extractions if extraction.by == RULES]
    drawn = {extraction.subject.id: _associations(extraction.entry) for extraction in rules}
    ends = {end for each in drawn.values() for edge in each for end in (edge.source_id, edge.target_id)}
    results = {each.subject: (each.found.summary, each.entry.job.attempts) for each in rules}
    async with res.db.begin(workspace_id, generic_plans=True, background=True) as session:
        hashes = await enrichment.enrich(session, results, ends=ends, now=res.clock())
        kept = [each for each in extractions if hashes.get(each.subject.id) == each.subject.hash]
        if not kept:
            return
        ids = await _write_entities(session, kept)
        await _write_relations(session, kept, ids, res)
        await _write_associations(session, kept, drawn, set(hashes))


async def _write_entities(session: Session, extractions: Sequence[Extraction]) -> dict[tuple[UUID, str], UUID]:
    mentions = [
        EntityMention(extraction.subject.id, extraction.entry.owner, named, extraction.by, extraction.subject.timestamp)
        for extraction in extractions
        for named in extraction.found.named
    ]
    await entity_links.add(session, mentions)
    return await entity_links.link(session, mentions, read=[extraction.name for extraction in extractions])


async def _write_relations(
    session: Session, extractions: Sequence[Extraction], ids: Mapping[tuple[UUID, str], UUID], res: Resources
) -> None:
    """Relations between entities that the texts state. Both ends are linked to the memory already, and locked before an
    edge between them is touched."""
    stated = [each for each in extractions if each.subject.graph and (each.found.related or each.subject.version > 1)]
    if not stated:
        return
    relations = {one: None for extraction in stated for one in _relations_of(extraction, ids)}
    ends = sorted({end for one in relations for end in (one.source_id, one.target_id)})
    existing = await entity_relations.lock_ends(session, ends) if ends else {}
    kept = [one for one in relations if one.source_id in existing and one.target_id in existing]
    former = {extraction.subject.id for extraction in stated if extraction.subject.version > 1}
    if former:  # what an earlier text stated may be removed with it
        await entity_relations.lock_evidenced(session, sorted(former))
    now = res.clock()
    await entity_relations.store_extracted(session, kept, read=[extraction.name for extraction in stated], now=now)
    if kept:
        await entity_relations.update_validity(session, sorted({one.memory_id for one in kept}), now=now)


def _relations_of(extraction: Extraction, ids: Mapping[tuple[UUID, str], UUID]) -> list[ExtractedRelation]:
    """Each relation once, under the label it has first."""
    memory_id = extraction.subject.id
    relations: dict[tuple[UUID, str, UUID], ExtractedRelation] = {}
    for relation in extraction.found.related:
        source, target = ids.get((memory_id, key(relation.source))), ids.get((memory_id, key(relation.target)))
        kind = normalise_label(relation.relation)
        if source and target and source != target and kind:
            one = ExtractedRelation(
                memory_id, source, kind, relation.relation, target, extraction.by, CONFIDENCE[extraction.by]
            )
            relations.setdefault((source, kind, target), one)
    return list(relations.values())


async def _write_associations(
    session: Session, extractions: Sequence[Extraction], drawn: Mapping[UUID, Sequence[Relation]], existing: set[UUID]
) -> None:
    subjects = [extraction.subject for extraction in extractions if extraction.by == RULES and extraction.subject.graph]
    touched = [subject.id for subject in subjects if drawn[subject.id] or subject.version > 1]
    kept = [edge for each in touched for edge in drawn[each] if {edge.source_id, edge.target_id} <= existing]
    if touched:
        await edges.draw(session, touched, kept)


def _associations(entry: EnrichmentInput) -> list[Relation]:
    """SIMILAR_TO each of `similar`, as strong as the similarity, and one OCCURRED_BEFORE from the preceding memory,
    stronger the closer it is in time."""
    subject = entry.subject
    if not subject.graph:
        return []
    associations = [
        Relation(subject.id, RelationType.SIMILAR_TO, similar_id, round(similarity, 4))
        for similar_id, similarity in entry.similar.items()
        if similar_id != subject.id
    ]
    if subject.before is not None:
        preceding, at = subject.before
        closeness = round(max(1 - (subject.timestamp - at).total_seconds() / BEFORE_WINDOW_S, 0.1), 4)
        associations.append(Relation(preceding, RelationType.OCCURRED_BEFORE, subject.id, closeness))
    return associations


def find_by_rules(text: str, known: Mapping[str, NamedEntity]) -> Findings:
    """Entities under the name they are known by, and the summary; None for a text without a sentence."""
    text = text[:100_000]  # 20,000 names of a longer one took 20 s of Postgres
    types = {each: named.type for each, named in known.items()}
    named: dict[str, NamedEntity] = {}
    names: dict[str, str] = {}
    spans = entities.find(text, known=types)
    for entity in spans:
        found = known.get(key(entity.name), NamedEntity(entity.name, entity.type))
        named.setdefault(key(found.name), found)
        names[entity.name] = found.name
    related = tuple(
        NamedRelation(names[relation.source], relation.relation, names[relation.target])
        for relation in relations.find_relations(text, spans)
    )
    return Findings(tuple(named.values()), sentences.first_sentence(text) or None, related)


def _find_by_model(payload: Mapping[str, object]) -> Findings:
    """What a model found in the text, its names redacted; speakers, and relations of entities that it did not name, are
    left out."""
    if "entities" not in payload:
        return Findings()
    clean, _ = detection.redact_json({"entities": payload.get("entities"), "relations": payload.get("relations")})
    assert isinstance(clean, dict)
    named: dict[str, NamedEntity] = {}
    for name, kind, *about in clean["entities"] or ():
        if key(name) not in SPEAKERS and "[REDACTED" not in name:
            named.setdefault(key(name), NamedEntity(title_case(name), type_name(kind), next(iter(about), None)))
    related = tuple(
        NamedRelation(source, label, target)
        for source, label, target in clean["relations"] or ()
        if key(source) in named and key(target) in named and key(source) != key(target)
    )
    return Findings(tuple(named.values()), None, related)
