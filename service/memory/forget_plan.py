"""What a request to forget means, before anything is removed.

Identifiers and names are compared with every text of the scope (language/forget_matching.py). Words that no text says
all of are compared by meaning, and count only where one memory is clearly nearer than the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from service.db import scopes
from service.db.engine import Session
from service.db.episodes import withdrawn
from service.db.erasure import targets
from service.db.erasure.deletion import Extent
from service.db.erasure.targets import SpokenText, StoredText
from service.db.search import nearest
from service.db.search.nearest import NearVectors
from service.domain.forgetting import ForgetPlan, ForgetScope, ForgetSentence, ForgetTarget, Matched
from service.domain.text import CleanText
from service.errors import EmbeddingError
from service.language import forget_matching, forget_query, sentences, withdrawal
from service.language.forget_matching import NEAR_MISSES, ForgetText, Matches
from service.language.forget_query import ForgetQuery
from service.language.withdrawal import Span
from service.resources import Resources

CLEAR_SIMILARITY = 0.6
"""Calibrated similarity of a query and a text from which the text may be meant."""

CLEAR_LEAD = 0.15
"""How much nearer the nearest memory must be than the next."""

NOTHING_SAID = "Nothing stored has the identifier, the name or all words of the query."
NOT_CLEAR = "No memory says all words of the query, and none is clearly nearer to it than the others."
EXPLANATIONS: dict[Matched, str] = {
    "ids": "The memories with these ids, and the sentences that they rest on.",
    "identifier": "Everything that has the identifier, whole and in any of its forms.",
    "name": "Everything that names it as a whole word, narrowed down by the other words of the query.",
    "words": "Everything that says all words of the query.",
    "meaning": "No memory says all words of the query; this one is clearly the nearest by meaning.",
}

MemoryKey = tuple[UUID, int]
SentenceKey = tuple[UUID, int, int]


@dataclass(frozen=True, slots=True)
class _Texts:
    """All texts of a scope. A sentence is known by its turn and where it stands in it."""

    memories: dict[UUID, list[StoredText]]
    turns: dict[UUID, SpokenText]
    sentences: dict[SentenceKey, str]

    @property
    def of_memories(self) -> list[ForgetText[tuple[UUID, int]]]:
        return [
            ForgetText((each.id, number), each.text)
            for texts in self.memories.values()
            for number, each in enumerate(texts)
        ]


async def by_query(
    wanted: ForgetScope, raw: str, query: CleanText, res: Resources, *, with_deleted: bool = False
) -> ForgetPlan:
    """What a query means in the scope. `raw`: as it was sent, compared first; `query`: redacted, as the texts were.
    `with_deleted`: also memories that are gone, as far as their history knows them."""
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        texts = await _read(session, wanted, with_deleted=with_deleted)
        for asked in dict.fromkeys((raw, str(query))):
            parsed, found, spoken = await res.rules.run(_matched, asked, texts)
            if found.meant or spoken.meant:
                plan = _planned(parsed, found, spoken, texts)
                return await _with_sources(session, wanted, plan)
    if parsed.identifiers or parsed.names or not parsed.terms:
        return ForgetPlan("nothing", NOTHING_SAID, near=_near(found, texts))
    return await _by_meaning(wanted, query, found, texts, res)


async def by_ids(wanted: ForgetScope, ids: Sequence[UUID], res: Resources) -> ForgetPlan:
    """The memories of the scope with these ids, with what rests on them."""
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        extent = Extent(wanted.scope, wanted.channel)
        there = {each.id: each for each in await targets.by_ids(session, extent, ids, wanted.session_id)}
        chosen = [
            ForgetTarget(each.id, each.text, "its id was given", each.version)
            for each in (there[one] for one in dict.fromkeys(ids) if one in there)
        ]
        chosen += _past_versions(there.values(), {each.id for each in chosen})
        if not chosen:
            return ForgetPlan("nothing", "There is no memory with these ids in this scope.")
        return await _with_sources(session, wanted, ForgetPlan("ids", EXPLANATIONS["ids"], tuple(chosen)))


async def _read(session: Session, wanted: ForgetScope, *, with_deleted: bool) -> _Texts:
    extent = Extent(wanted.scope, wanted.channel)
    stored = await targets.memories(session, extent, wanted.session_id)
    if with_deleted and wanted.session_id is None:
        stored += await targets.gone(session, extent)
    by_id: dict[UUID, list[StoredText]] = {}
    for each in stored:
        by_id.setdefault(each.id, []).append(each)
    spoken = {each.id: each for each in await targets.turns(session, extent, wanted.session_id)}
    hidden = await _hidden(
        session, wanted.scope.workspace_id, [each for each in spoken.values() if each.shown is not None]
    )
    return _Texts(by_id, spoken, _sentences(spoken.values(), hidden))


async def _hidden(session: Session, workspace_id: UUID, turns: Sequence[SpokenText]) -> dict[UUID, list[Span]]:
    ids = [each.id for each in turns]
    spans = await withdrawn.of_turns(session, workspace_id, ids)
    kept = await withdrawn.kept_of(session, workspace_id, ids)
    return {each: withdrawn.hidden_of(spans.get(each, []), kept.get(each, [])) for each in ids}


def _sentences(turns: Iterable[SpokenText], hidden: Mapping[UUID, list[Span]]) -> dict[SentenceKey, str]:
    """What is shown of the turns, by sentences."""
    return {
        (turn.id, left, right): turn.text[left:right]
        for turn in turns
        for start, end in sentences.split(turn.text)
        for left, right in withdrawal.without([(start, end)], hidden.get(turn.id, []))
    }


def _matched(asked: str, texts: _Texts) -> tuple[ForgetQuery, Matches[MemoryKey], Matches[SentenceKey]]:
    of_memories = texts.of_memories
    of_turns = [ForgetText(key, text) for key, text in texts.sentences.items()]
    parsed = forget_query.parse(asked, forget_matching.names_of([*of_memories, *of_turns]))
    return parsed, forget_matching.match(parsed, of_memories), forget_matching.match(parsed, of_turns)


def _planned(parsed: ForgetQuery, found: Matches[MemoryKey], spoken: Matches[SentenceKey], texts: _Texts) -> ForgetPlan:
    matched: Matched = "identifier" if parsed.identifiers else "name" if parsed.names else "words"
    meant: dict[UUID, ForgetTarget] = {}
    for (memory_id, number), reason in found.meant.items():
        each = texts.memories[memory_id][number]
        meant.setdefault(memory_id, ForgetTarget(memory_id, each.text, reason, each.version))
    for target in _past_versions((versions[0] for versions in texts.memories.values()), set(meant)):
        meant[target.id] = target
    said = []
    for (turn_id, start, end), reason in spoken.meant.items():
        turn = texts.turns[turn_id]
        words = texts.sentences[turn_id, start, end]
        said.append(ForgetSentence(turn_id, turn.conversation_id, turn.turn_index, start, end, words, reason))
    near = tuple(each for each in _near(found, texts) if each.id not in meant)
    return ForgetPlan(matched, EXPLANATIONS[matched], tuple(meant.values()), tuple(said), near)


def _past_versions(there: Iterable[StoredText], meant: set[UUID]) -> list[ForgetTarget]:
    """What goes with the memories that are meant."""
    return [
        ForgetTarget(each.id, each.text, f"is a past version of memory {each.version_of}", each.version)
        for each in there
        if each.version_of in meant and each.id not in meant
    ]


def _near(found: Matches[MemoryKey], texts: _Texts) -> tuple[ForgetTarget, ...]:
    near: dict[UUID, ForgetTarget] = {}
    for (memory_id, number), reason in found.near.items():
        each = texts.memories[memory_id][number]
        near.setdefault(memory_id, ForgetTarget(memory_id, each.text, reason, each.version))
    return tuple(near.values())[:NEAR_MISSES]


async def _by_meaning(
    wanted: ForgetScope, query: CleanText, found: Matches[MemoryKey], texts: _Texts, res: Resources
) -> ForgetPlan:
    """The memory that is clearly nearest to the query by meaning, or nothing."""
    near = _near(found, texts)
    scope = wanted.scope
    try:
        vector = await res.embedder.embed_query(scope.workspace_id, query)
    except EmbeddingError:
        return ForgetPlan("nothing", f"{NOTHING_SAID} Its meaning could not be compared.", near=near)
    where, rows = scopes.owned("v", scope, wanted.channel), scopes.owned("m", scope, wanted.channel)
    exact_rows = res.settings.exact_scope_rows
    asked = NearVectors(where, rows, vector, res.generation, NEAR_MISSES, exact_rows)
    async with res.db.snapshot(scope.workspace_id) as session:
        ranked = [
            (texts.memories[each][0], res.embedder.query_similarity(cosine))
            for each, cosine in await nearest.find(session, asked)
            if each in texts.memories
        ]
        if not _is_clear([similarity for _, similarity in ranked]):
            others = [
                ForgetTarget(each.id, each.text, f"similarity {score:.2f}", each.version) for each, score in ranked
            ]
            return ForgetPlan("nothing", NOT_CLEAR, near=near or tuple(others))
        first, similarity = ranked[0]
        target = ForgetTarget(first.id, first.text, f"nearest by meaning: similarity {similarity:.2f}", first.version)
        others = [
            ForgetTarget(each.id, each.text, f"similarity {score:.2f}", each.version) for each, score in ranked[1:]
        ]
        plan = ForgetPlan("meaning", EXPLANATIONS["meaning"], (target,), near=tuple(others))
        return await _with_sources(session, wanted, plan)


def _is_clear(similarities: Sequence[float]) -> bool:
    if not similarities or similarities[0] < CLEAR_SIMILARITY:
        return False
    return len(similarities) == 1 or similarities[0] - similarities[1] >= CLEAR_LEAD


async def _with_sources(session: Session, wanted: ForgetScope, plan: ForgetPlan) -> ForgetPlan:
    """The plan with the sentences that its memories rest on, and no other live memory does."""
    workspace_id = wanted.scope.workspace_id
    reasons = {each.id: each.reason for each in plan.memories}
    found = await targets.spans(session, workspace_id, list(reasons))
    said = {(each.turn_id, each.start, each.end): each for each in plan.sentences}
    turns = await targets.turns_by_id(session, workspace_id, {each.turn_id for each in found})
    kept = await withdrawn.kept_of(session, workspace_id, list(turns), besides=list(reasons))
    for each in found:
        turn = turns[each.turn_id]
        for start, end in withdrawal.without([each.span], kept.get(each.turn_id, [])):
            sentence = ForgetSentence(
                turn.id,
                turn.conversation_id,
                turn.turn_index,
                start,
                end,
                turn.text[start:end],
                f"memory {each.memory_id} rests on it",
                each.memory_id,
            )
            if not any(one[0] == turn.id and one[1] <= start and end <= one[2] for one in said):
                said[turn.id, start, end] = sentence
    ordered = sorted(said.values(), key=lambda each: (str(each.conversation_id), each.turn_index, each.start))
    return replace(plan, sentences=tuple(ordered))
