"""Deduplication: drops a text that is known already, and decides about one that is similar to a known one.

An equal text is a duplicate at once. Otherwise the nearest live memories of exactly the same scope and channel are
compared: a similarity of 0.98 or more makes a duplicate unless the two differ in a number, a date, a negation or a name
(docs/decisions/011-similarity.md); everything else takes a decision, by the model from 0.70 on, else by the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.domain.decision import Action, Decision, Edit, Neighbour
from service.domain.draft import Dedup, DedupAction, Draft, EmbeddingStatus, MergedText
from service.domain.errors import EmbeddingError, PiiRejected
from service.domain.text import content_hash
from service.kit.settings import Settings
from service.language.lexemes import stemmed_words
from service.memories.statements import deduplication, near_many
from service.memories.statements.deduplication import Neighbours
from service.postgres.engine import Session
from service.runtime.pii import clean
from service.runtime.resources import Resources
from service.understanding import decisions
from service.understanding.compare import differs
from service.understanding.judge import judge

NEW = Dedup(DedupAction.STORED_NEW)


async def compare(draft: Draft, res: Resources) -> Draft:
    """The draft with the neighbours it saw; with the result if it takes no decision."""
    if not draft.options.dedup:
        return replace(draft, dedup=NEW)
    async with res.db.read(draft.scope.workspace_id, generic_plans=True) as session:
        found = await find_neighbours(session, draft, res)
    seen = found.neighbours
    settings = res.settings
    dedup = await res.rules.run_if_long(len(draft.clean), without_decision, draft, seen, settings.dedup_exact)
    return replace(draft, seen=seen, dedup=dedup)


async def find_neighbours(session: Session, draft: Draft, res: Resources, *, limit: int | None = None) -> Neighbours:
    """An equal memory, else the `limit` nearest ones, as many as the setting `dedup_candidates` says when None."""
    return await deduplication.find_neighbours(
        session,
        draft,
        generation=res.generation,
        similarity=res.embedder.similarity,
        limit=limit or res.settings.dedup_candidates,
        exact_rows=res.settings.exact_scope_rows,
    )


async def find_neighbours_of_many(session: Session, drafts: Sequence[Draft], res: Resources) -> list[Neighbours] | None:
    """The same of each draft, all of one scope; None where the scope is too large for one statement."""
    return await near_many.find_neighbours_of_many(
        session,
        drafts,
        generation=res.generation,
        similarity=res.embedder.similarity,
        limit=res.settings.dedup_candidates,
        exact_rows=res.settings.exact_scope_rows,
    )


async def defer_to_write(draft: Draft, res: Resources) -> Draft:
    """For records: only an equal text counts, and the write itself looks for it, so nothing is read here."""
    return replace(draft, dedup=NEW)


def without_decision(draft: Draft, seen: Sequence[Neighbour], exact: float) -> Dedup | None:
    """The result that needs no decision, or None. `seen`: nearest first."""
    equal = next((each for each in seen if each.hash == draft.hash), None)
    if equal is not None:
        return Dedup(DedupAction.DUPLICATE_EXACT, equal.id, 1.0)
    if not seen or draft.embedding_status is not EmbeddingStatus.STORED:
        return replace(NEW, similarity=seen[0].similarity if seen else None)
    first = seen[0]
    if first.similarity >= exact and is_same(draft.clean, first.text):
        return Dedup(DedupAction.DUPLICATE_EXACT, first.id, first.similarity)
    return None


def is_same(new: str, old: str) -> bool:
    """Whether two similar texts say the same: the same stems, figures, names and denials."""
    return stemmed_words(new) == stemmed_words(old) and not differs(new, old)


async def decide(draft: Draft, res: Resources) -> Draft:
    """The draft with a decision; a model is asked only about texts that are near.

    A merged text is redacted and embedded anew; if that fails both texts are kept.
    """
    if draft.dedup is not None:
        return draft
    near = draft.seen[0].similarity >= res.settings.dedup_near
    ask, workspace_id = draft.options.use_llm and near, draft.scope.workspace_id
    decision = await decisions.decide(draft.statement, draft.seen, workspace_id, res, llm=ask)
    decided, written = with_decision(draft, decision), decision.edits[0].text
    if written is None or written == draft.clean or decided.is_duplicate:
        return decided
    try:
        text, _ = await clean(written, "content", res)
        vector = (await res.embedder.embed(draft.scope.workspace_id, [text]))[0]
    except (EmbeddingError, PiiRejected):
        kept = "merge_failed: the merged text could not be embedded, both texts were kept."
        both = with_decision(draft, replace(decision, edits=(Edit(Action.ADD),)))
        return replace(both, warnings=(*draft.warnings, kept))
    return replace(decided, merged=MergedText(text, content_hash(text), vector))


def decide_by_rules(draft: Draft, seen: tuple[Neighbour, ...], limits: Settings) -> Draft:
    """The draft as the rules decide it next to `seen`; pure, so it also runs inside the scope lock."""
    fresh = replace(draft, seen=seen, merged=None, evidence=None, decision=None)
    found = without_decision(fresh, seen, limits.dedup_exact)
    return replace(fresh, dedup=found) if found is not None else with_decision(fresh, judge(fresh.statement, seen))


def decide_each_by_rules(drafts: Sequence[Draft], limits: Settings) -> list[Draft]:
    """The same for several drafts, each next to what it has seen, unless it is decided already."""
    return [each if each.dedup else decide_by_rules(each, each.seen, limits) for each in drafts]


def with_decision(draft: Draft, decision: Decision) -> Draft:
    """The draft under a decision, of which a single text takes the first edit."""
    edit = decision.edits[0]
    target = edit.target
    draft = replace(draft, evidence=decision.evidence, decision=decision)
    if target is None or edit.earlier or edit.action is Action.DELETE:
        nearest = draft.seen[0].similarity if draft.seen else None
        return replace(draft, dedup=Dedup(DedupAction.STORED_NEW, None, nearest))
    # an update that changes nothing would only make other writers decide again
    same = edit.action is Action.NONE or edit.text == target.text
    action = DedupAction.DUPLICATE_EXACT if same else DedupAction.UPDATED_EXISTING
    return replace(draft, dedup=Dedup(action, target.id, target.similarity))
