"""Reports what could be cleaned up in a workspace and why, with one bounded walk and a short read per section."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from service.domain.memory import Memory
from service.domain.version import begins
from service.memories.statements import memories
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.understanding import compare
from service.understanding.compare import LinkKind
from service.upkeep.statements import findings
from service.upkeep.statements.findings import Candidate, Walked
from service.upkeep.values import CleanupChange, CleanupFinding, Section, SectionReport, WalkCursor

SHOWN_CHARS = 240
COMPARED_AT_ONCE = 200
"""The most pairs of a page of duplicates whose texts are compared."""
COMPARED_CHARS = 300_000
"""The most characters of these pairs: some 0.6 s of CPU."""

CONTRADICTED: Final[Mapping[str, str]] = {
    "MAY_OUTDATE": "A newer memory may say what holds instead; both were kept in doubt.",
    "CONTRADICTS": "It is tied as contradicting a memory that began later.",
    "REVIEW": "A fact that contradicts it waits for a review: accept or reject that.",
}


async def report(
    workspace_id: UUID, section: Section, res: Resources, *, after: WalkCursor, limit: int
) -> SectionReport:
    """The findings of a section after a place, in the order of their ids. Duplicates that share a memory with an
    earlier finding of the page are left out, because joining that one changes them."""
    most = COMPARED_AT_ONCE if section == "duplicates" else limit
    async with res.db.read(workspace_id) as session:
        walked = await findings.walk(session, section, after=after, limit=most, now=res.clock())
        by_id = await _memories_of(session, walked.candidates)
    if section == "duplicates":
        return await _duplicates(walked, by_id, res, limit)
    shown = tuple(_describe(walked.candidates, by_id))
    rest = walked.candidates[-1].cursor if walked.total > len(walked.candidates) else walked.last
    return SectionReport(section, shown, walked.total, walked.last is None, rest)


async def find_chosen(
    workspace_id: UUID, section: Section, changes: Iterable[CleanupChange], res: Resources
) -> Mapping[CleanupChange, CleanupFinding]:
    """The findings of a section about the ids of these changes, by change."""
    ids = ids_of(changes)
    async with res.db.read(workspace_id) as session:
        candidates = await findings.among(session, section, ids, now=res.clock())
        by_id = await _memories_of(session, candidates)
    if section == "duplicates":
        return {finding.change: finding for finding in (await _redundant(candidates, by_id, res)).values()}
    return {finding.change: finding for finding in _describe(candidates, by_id)}


def ids_of(changes: Iterable[CleanupChange]) -> list[UUID]:
    """The ids that they remove and keep, each once, ascending."""
    return sorted({each for change in changes for each in change.ids})


async def _memories_of(session: Session, candidates: Iterable[Candidate]) -> Mapping[UUID, Memory]:
    changes = [candidate.change for candidate in candidates if candidate.change.section != "orphan_entities"]
    return await memories.get_many(session, ids_of(changes)) if changes else {}


async def _duplicates(walked: Walked, by_id: Mapping[UUID, Memory], res: Resources, limit: int) -> SectionReport:
    """The total is exact if all pairs were compared; otherwise it is the number of pairs left."""
    pairs = _affordable(walked.candidates, by_id)
    redundant = await _redundant(pairs, by_id, res)
    shown, used = list[CleanupFinding](), set[UUID]()
    for index, pair in enumerate(pairs):
        if len(shown) == limit:
            pairs = pairs[:index]
            break
        finding = redundant.get(pair.cursor)
        if finding is not None and used.isdisjoint(both := ids_of([finding.change])):
            shown.append(finding)
            used.update(both)
    if len(pairs) < walked.total:
        return SectionReport("duplicates", tuple(shown), walked.total, False, pairs[-1].cursor)
    return SectionReport("duplicates", tuple(shown), len(redundant), walked.last is None, walked.last)


def _affordable(pairs: Sequence[Candidate], by_id: Mapping[UUID, Memory]) -> Sequence[Candidate]:
    """The first pairs that are compared within COMPARED_CHARS; at least one."""
    chars = 0
    for index, pair in enumerate(pairs):
        chars += sum(len(memory.text) for memory in _both(pair, by_id))
        if chars > COMPARED_CHARS and index:
            return pairs[:index]
    return pairs


def _both(pair: Candidate, by_id: Mapping[UUID, Memory]) -> list[Memory]:
    """The memories of a pair, the one valid earlier first; fewer than two if one is gone."""
    return sorted((by_id[each] for each in pair.change.ids if each in by_id), key=began)


async def _redundant(
    pairs: Iterable[Candidate], by_id: Mapping[UUID, Memory], res: Resources
) -> Mapping[WalkCursor, CleanupFinding]:
    """The pairs whose memories say the same, by place."""
    whole = [(pair, both[0], both[1]) for pair in pairs if len(both := _both(pair, by_id)) == 2]
    texts = [(newer.text, older.text, float(pair.detail["similarity"])) for pair, older, newer in whole]
    links = await res.rules.run(lambda: [compare.relate(*each) for each in texts]) if texts else []
    redundant = {}
    for (pair, older, newer), link in zip(whole, links, strict=True):
        if link is None or link.kind is not LinkKind.SAME:
            continue
        change = CleanupChange("duplicates", newer.id, newer.version, older.id, older.version)
        reason = f"It says the same; the two are {pair.detail['similarity']:.2f} similar."
        redundant[pair.cursor] = CleanupFinding(change, reason, 1, "memories", _start(newer), _start(older))
    return redundant


def began(memory: Memory) -> tuple[datetime, datetime, UUID]:
    """Sort key: the one valid earlier comes first, then the one that arrived earlier."""
    return begins(memory.timestamp, memory.t_valid, memory.t_invalid), memory.created_at, memory.id


def _start(memory: Memory) -> str:
    return memory.text[:SHOWN_CHARS]


def _describe(candidates: Iterable[Candidate], by_id: Mapping[UUID, Memory]) -> Iterator[CleanupFinding]:
    """The findings other than duplicates, without those whose memories have been deleted in the meantime."""
    for candidate in candidates:
        change, detail = candidate.change, candidate.detail
        if change.section == "orphan_entities":
            reason = "No memory and no relation names it."
            yield CleanupFinding(change, reason, detail["bytes"], "bytes", detail["about"])
        elif set(change.ids) <= by_id.keys():
            yield _describe_memory(change, detail, by_id)


def _describe_memory(change: CleanupChange, detail: Mapping[str, Any], by_id: Mapping[UUID, Memory]) -> CleanupFinding:
    section, text = change.section, _start(by_id[change.id])
    if section == "missing_vectors":
        died = f" {detail['deaths']} died, the last of: {detail['last_error']}." if detail["deaths"] else ""
        return CleanupFinding(change, f"No job is going to make its vector.{died}", 1, "vectors", text)
    if section == "contradictions":
        review = UUID(detail["review_id"]) if detail["review_id"] else None
        kept = _start(by_id[change.kept_id]) if change.kept_id else None
        reason = CONTRADICTED[detail["type"]]
        return CleanupFinding(change, reason, 1, "memories", text, kept, review)
    if section == "low_value":
        reason = f"Importance {detail['importance_level']} of 10, relevance {detail['relevance']:.2f}: nobody uses it."
    elif detail["valid_until"]:
        reason = f"It held until {detail['valid_until'][:10]}."
    else:
        reason = f"It was not used since {detail['last_accessed'][:10]}."
    return CleanupFinding(change, reason, 1, "memories", text)
