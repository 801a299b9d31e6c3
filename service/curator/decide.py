"""Is a new text another fact, the same, or a newer version of a stored one?

The language model decides where there is one, the rules otherwise and wherever its answer cannot be used: an unknown
number, an empty text, a merge that loses the new text's figures. A rejected answer is kept as evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal
from uuid import UUID

from pydantic import BaseModel

from service.curator import asking, prompts, rules
from service.domain.draft import Judgement, Neighbour
from service.domain.text import CleanText
from service.errors import LlmError
from service.language import contrast
from service.resources import Resources

RULES = "rules:1"
"""Name and version of the offline decision, kept with each decision it makes."""


BRIEF, COMPARABLE = 500, 4_000
"""Characters: longer texts leave the event loop; beyond the second number the rules keep both, a comparison of long
texts word by word would be slow and worth little."""


class Action(StrEnum):
    NONE = "none"
    UPDATE = "update"
    ADD = "add"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the new text; `target` and `text` with UPDATE, `target` with NONE."""

    action: Action
    target: Neighbour | None
    text: CleanText | None
    judgement: Judgement


class DecisionReply(BaseModel):
    """The shape the model is asked for; lenient, because small models leave nulls out."""

    action: Literal["none", "update", "add"]
    id: int | None = None
    text: str | None = None
    reason: str | None = None


async def between(
    new: CleanText, shown: Sequence[Neighbour], workspace_id: UUID, res: Resources, *, llm: bool
) -> Verdict:
    """The verdict on `new` next to `shown` (nearest first, at least one). Never raises for a failing model."""
    if not llm or res.llm is None:
        return await res.threads.run(by_rules, new, shown) if len(new) > BRIEF else by_rules(new, shown)
    question = prompts.decide(
        new, [each.text for each in shown], instruction=res.settings.custom_prompts.update_decision
    )
    prompt_sha256 = hashlib.sha256(f"{question.system}\n{question.user}".encode()).hexdigest()
    try:
        reply, raw = await asking.ask_for(res, workspace_id, question, DecisionReply)
    except LlmError as exc:
        return _instead(by_rules(new, shown), res.llm.model, f"model failed: {exc.detail}")
    evidence = Judgement(
        "llm", raw.model or res.llm.model, reply.action, reply.reason or "", _ids(shown), prompt_sha256, raw.text
    )
    return _checked(reply, new, shown, evidence)


def by_rules(new: CleanText, shown: Sequence[Neighbour]) -> Verdict:
    """The offline verdict: the first neighbour that is the same fact decides. Pure, so it also runs inside the lock."""
    for each in shown:
        if max(len(new), len(each.text)) > COMPARABLE:
            continue
        found = rules.decide_pair(new, each.text, each.similarity)
        evidence = Judgement("rules", RULES, str(found.verdict), found.reason, _ids(shown))
        if found.verdict is rules.Verdict.KEEP_BOTH:
            continue
        if found.verdict is rules.Verdict.NONE:
            return Verdict(Action.NONE, each, None, evidence)
        return Verdict(Action.UPDATE, each, CleanText(found.text or new), evidence)
    return Verdict(
        Action.ADD, None, None, Judgement("rules", RULES, "keep_both", "nothing shown is the same", _ids(shown))
    )


def _checked(reply: DecisionReply, new: CleanText, shown: Sequence[Neighbour], evidence: Judgement) -> Verdict:
    if reply.action == "add":
        return Verdict(Action.ADD, None, None, evidence)
    if reply.id is None or not 1 <= reply.id <= len(shown):
        return _rejected(by_rules(new, shown), evidence, "it names no note that was shown")
    target = shown[reply.id - 1]
    if reply.action == "none":
        return Verdict(Action.NONE, target, None, evidence)
    text = (reply.text or "").strip()
    if not text:
        return _rejected(by_rules(new, shown), evidence, "an update without a text")
    if not contrast.keeps_figures(text, new):
        return _rejected(by_rules(new, shown), evidence, "an update that loses the new text's figures")
    return Verdict(Action.UPDATE, target, CleanText(text), evidence)


def _rejected(fallback: Verdict, evidence: Judgement, why: str) -> Verdict:
    kept = replace(evidence, rejected=True, reason=f"{why}; the rules decided {fallback.judgement.verdict}")
    return replace(fallback, judgement=kept)


def _instead(fallback: Verdict, model: str, why: str) -> Verdict:
    return replace(
        fallback, judgement=replace(fallback.judgement, reason=f"{why} ({model}); {fallback.judgement.reason}")
    )


def _ids(shown: Sequence[Neighbour]) -> tuple[UUID, ...]:
    return tuple(each.id for each in shown)
