"""What of a message its sender says, and what was pasted into it.

A message is read line by line. Mails, chat exports, logs, stack traces, diffs, code, tables, verse, notices and texts
that are handed over to be worked on are no words of the sender. Mails, letters and chat exports are told in the name
of whom they quote. Recognised by form, and by the sentence that announces them or remarks on them; not by what they
tell of. See `pasted` for each kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from service.language.talk.pasted import chat, handed_over, machine, mail, quotations, remarks, verse
from service.language.talk.pasted.lines import Block, Line, Pasted, lines_of, without

__all__ = ["Block", "spoken"]

ROLE_PLAY = re.compile(
    r"\b(?:role-?play|pretend|(?<!can )(?<!could )(?<!you )(?<!only )imagine (?:you|we|i|that|a)"
    r"|act as|you are now|you're now|let's play|play the (?:role"
    r"|part)|in character"
    r"|write (?:me )?(?:a|an|the|some|another)\b[^.\n]{0,40}\b(?:story|poem|scene|song|novel|chapter|dialogue"
    r"|fan ?fiction|script|tale"
    r"|sketch|limerick|haiku|monologue|lyrics|fable|play|screenplay|verse)|continue (?:the|this|my) (?:story|tale"
    r"|scene)|once upon a time"
    r"|for (?:my|the|a) (?:novel|story|character|book|screenplay|d&d|campaign)|my (?:character|protagonist)"
    r"|hypothetical(?:ly)?"
    r"|let's say|(?<!to )(?<!can )(?<!could )(?<!'d )(?<!and )say (?:i|we)\b|suppose)\b",
    re.IGNORECASE,
)
"""From such a sentence on, a message is fiction."""


def spoken(text: str) -> list[Block]:
    """The blocks of a message that are somebody's own words, in order; what was pasted or made up is left out."""
    left = lines_of(text)
    recognisers: tuple[Callable[[Sequence[Line]], Iterable[Pasted]], ...] = (
        machine.fenced,
        mail.marked,
        mail.mails,
        chat.chats,
        chat.dialogues,
        machine.machine_text,
        mail.letters,
        partial(handed_over.handed_over, text),
        chat.threads,
        verse.verses,
        partial(remarks.remarked_on, len(left)),
        remarks.dividers,
        partial(quotations.quoted, text),
    )
    told: list[Block] = []
    for recognise in recognisers:
        found = list(recognise(left))
        told.extend(each.quoted for each in found if each.quoted)
        left = without(left, found)
    told.extend(Block(line.start, line.end) for line in left)
    return _without_fiction(text, sorted(told, key=lambda block: block.start))


def _without_fiction(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks before the first sentence that announces fiction; a block that has one goes as a whole."""
    kept: list[Block] = []
    for block in blocks:
        if block.speaker is None and ROLE_PLAY.search(text[block.start : block.end]):
            break
        kept.append(block)
    return kept
