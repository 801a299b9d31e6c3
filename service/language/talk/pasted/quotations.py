"""Stretches in quotation marks: somebody else's words, unless the sentence around them says whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.language import wordlists
from service.language.talk.pasted.lines import Block, Line, Pasted
from service.language.talk.worth import FIRST_PERSON, WORD

MIN_QUOTED_WORDS = 4
"""Words from which a stretch in quotation marks is no mere name or term."""

MAX_SINGLE_CHARS = 400
"""Characters of a stretch in single marks, which may as well be apostrophes."""

MAX_SENTENCE_CHARS = 400
"""Characters of a sentence that are looked at on either side of a quotation."""

MARK = re.compile("[\"“”„«»‘’']")
CLOSING = {'"': '"', "“": '”"', "„": '“”"', "«": "»", "»": "«", "‘": "’'", "'": "'’"}
SINGLE = "‘'"
SAYING = (
    r"(?:said|says?|saying|tells?|told|wrote|writes|writing|ask(?:s|ed|ing)?|text(?:s|ed)|repl(?:y|ies|ied)|answer(?:s|ed)"
    r"|shout(?:s|ed)|yell(?:s|ed)|whisper(?:s|ed)|states?|stated|claim(?:s|ed)|goes|was like|were like|is like"
    r"|call(?:s|ed)"
    r"|explain(?:s|ed)|insist(?:s|ed)|announced?|mutter(?:s|ed)|quip(?:s|ped)|sagte|sagt|schrieb|fragte|meinte)"
)
SAID_BEFORE = re.compile(r"\b" + SAYING + r"\b[^.!?\"“”„]{0,60}$", re.IGNORECASE)
SAID_BEHIND = re.compile(r"^[\s,]*(?!who\b|what\b)(?:[^\W\d_][\w.'’-]* ){0,4}?" + SAYING + r"\b", re.IGNORECASE)
STOP = re.compile(r"[.!?…]+[\"'”’)]*\s+")
ENDS = re.compile(r"[.!?…]\W*$")
SIGNED = re.compile(r"^\s*(?:[-–—~]+|\(|,? by )\s*[^\n?!]{1,60}$")
SMALL = wordlists.words("a an and as at by for from in into is of on or the to with und der die das von")


def quotations(text: str) -> Iterator[tuple[int, int]]:
    """The half-open spans in quotation marks, marks included, of so many words that somebody speaks in them."""
    opened = -1
    for found in MARK.finditer(text):
        at, mark = found.start(), found.group()
        opens = mark in CLOSING and (at == 0 or not (text[at - 1].isalnum() or text[at - 1] in ".,!?"))
        opens = opens and not text[at + 1 : at + 2].isspace()
        if opened >= 0 and mark in CLOSING[text[opened]] and _closes(text, at):
            if _is_speech(text, opened, at):
                yield opened, at + 1
                opened = -1
            elif text[opened] not in SINGLE or at - opened > MAX_SINGLE_CHARS:
                opened = -1
        elif opens and (opened < 0 or mark not in SINGLE):
            opened = at


def _closes(text: str, at: int) -> bool:
    return not text[at - 1].isspace() and not text[at + 1 : at + 2].isalnum()


def _is_speech(text: str, start: int, end: int) -> bool:
    """Whether a stretch is more than a name, a title or a term."""
    if text[start] in SINGLE and (end - start > MAX_SINGLE_CHARS or "\n" in text[start:end]):
        return False
    words = WORD.findall(text[start:end])
    named = all(word[0].isupper() or word[0].isdigit() or word in SMALL for word in words)
    return len(words) >= MIN_QUOTED_WORDS and not named


def quoted(text: str, lines: Sequence[Line]) -> Iterator[Pasted]:
    """The stretches in quotation marks with the sentences that hold them.

    A sentence that says whose words they are is told as a whole, and one that only uses them is left as it is. So is
    a message that is nothing but one quotation.
    """
    spans = list(quotations(text))
    if spans and not text[: spans[0][0]].strip() and not text[spans[-1][1] :].strip() and len(spans) == 1:
        return
    at, last = 0, 0
    for start, end in spans:
        while at < len(lines) and lines[at].end <= start:
            at += 1
        if at == len(lines):
            return
        line = lines[at]
        if line.start > start:
            continue
        closing = next((each for each in lines[at : at + 200] if each.end >= end), line)
        begin = max(line.start, last, start - MAX_SENTENCE_CHARS)
        before = text[begin:start]
        stops = [found.end() for found in STOP.finditer(before)]
        left = begin + (stops[-1] if stops else 0)
        behind = text[end : min(closing.end, end + MAX_SENTENCE_CHARS)]
        yield from _one(text, left, start, end, behind)
        last = end


def _one(text: str, left: int, start: int, end: int, behind: str) -> Iterator[Pasted]:
    """A quotation whose sentence begins at `left`, with the rest of its line behind it."""
    lead = text[left:start]
    inside = text[start + 1 : end - 1]
    stop = STOP.search(behind)
    ended = ENDS.search(inside) is not None and not behind[:2].strip().startswith((",", ";"))
    after = "" if ended and not SAID_BEHIND.match(behind[:120]) else behind[: stop.end() if stop else len(behind)]
    if SAID_BEFORE.search(lead[-120:]) or SAID_BEHIND.match(behind[:120]):
        whole = end + len(after.rstrip())
        yield Pasted(left, whole, Block(left, whole, whole=True))
        return
    embedded = lead.strip() and not lead.rstrip().endswith((":", "-", "–", "—"))
    if (
        embedded
        and not after.rstrip().endswith("?")
        and FIRST_PERSON.search(inside) is None
        and not STOP.search(inside)
    ):
        return
    signed = SIGNED.match(behind)
    yield Pasted(left, end + (len(behind) if signed else len(after)))
