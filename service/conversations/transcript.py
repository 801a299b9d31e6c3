"""The transcript of a conversation: deleted sentences are left out, changed or superseded ones are marked.

Search, recall and context leave out all of them (episodes/statements/withdrawn.py), because they would be taken for
true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.domain.conversation import Turn, WithdrawnSpan
from service.domain.text import CleanText
from service.episodes.statements import withdrawn
from service.language import withdrawal
from service.postgres.engine import Session

GONE = frozenset({"deleted", "expired"})


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """A turn with its original text without deleted sentences; `withdrawn`: spans of it that no longer count."""

    turn: Turn
    withdrawn: tuple[WithdrawnSpan, ...] = ()


async def of(session: Session, turns: Sequence[Turn]) -> list[TranscriptTurn]:
    """The turns as a transcript, in their order."""
    touched = [turn.id for turn in turns if turn.whole is not None]
    if not touched:
        return [TranscriptTurn(turn) for turn in turns]
    workspace_id = turns[0].scope.workspace_id
    spans = await withdrawn.of_turns(session, workspace_id, touched)
    kept = await withdrawn.read_kept(session, workspace_id, touched)
    return [_transcribe(turn, spans.get(turn.id, []), kept.get(turn.id, [])) for turn in turns]


def _transcribe(turn: Turn, spans: Sequence[WithdrawnSpan], kept: Sequence[withdrawal.Span]) -> TranscriptTurn:
    if turn.whole is None:
        return TranscriptTurn(turn)
    removed = withdrawn.hidden_of([span for span in spans if span.reason in GONE], kept)
    marked = []
    for withdrawn_span in spans:
        if withdrawn_span.reason not in GONE:
            parts = (withdrawal.move(part, removed) for part in withdrawn.hidden_of([withdrawn_span], kept))
            marked += [replace(withdrawn_span, start=start, end=end) for start, end in parts if start < end]
    text = CleanText(withdrawal.cut(turn.whole, removed))
    return TranscriptTurn(replace(turn, text=text), tuple(marked))
