"""What a sender says about a text that he has pasted, and where that text ends.

"Is this bio too short?", "turn into a table", "got this in chat": such a line is the sender's own, and points at
another text in the message. What it points at is pasted, even where its form does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from service.language.talk.pasted.lines import Line, Pasted, pasted

TEXT_NOUN = (
    r"(?:story|article|essay|poem|texts?|paragraph|e-?mails?|mail|letter|draft|post|speech|lyrics|song|chorus|verse"
    r"|chapter|novel|scene|script|dialog(?:ue)?|contract|clause|minutes|transcript|review|ad|advert(?:isement)?|recipe"
    r"|definition|entry|tweets?|thread|sentences?|passage|messages?|notes?|logs?|error|output|code|diff|snippet|json"
    r"|csv|table|caption|bio|cv|resume|abstract|report|press release|listing|description|quote|excerpt|exercise"
    r"|conversation|chat|fairy tale|joke|prompt|memo|announcement|newsletter|news|notice|flyer|statement|terms|policy"
    r"|documentation|docs|readme|changelog|horoscope|saying|proverb|homework|obituary|eulogy|vows|voicemail|testimony"
    r"|leaflet|blurb|riddle|clue|inscription|epitaph|motto|slogan|whatsapp|sms|dm|auto-?reply|journal|diary|prayer|toast|worksheet|satz|gedicht|brief|nachricht)"
)
"""Kinds of text that people paste."""

POINTED_AT = (
    r"(?:" + TEXT_NOUN + r"|applications?|magazine|card|spam|scam|phishing|fixture|wording|headline|translation|summary"
    r"|profile|comment|reply|answer|pitch|invoice|receipt|paste|copypasta|screenshot|reading|column|lines|words|page"
    r"|brochure|questionnaire|survey|quiz)"
)
"""What else a remark may call a text."""

TEXT_WORK = (
    r"(?:translate|proof-?read|sum+ari[sz]e|sum up|rewrite|rephrase|reword|paraphrase|correct|fix|edit|shorten|polish"
    r"|improve|continue|finish|classify|convert|format|reformat|spell-?check|tidy(?: up)?|clean(?: up)?|mark|grade"
    r"|turn|make|transcribe|tl;?dr|simplify|condense|explain|analy[sz]e|review|check|rate|score|redact|anonymi[sz]e"
    r"|parse|extract|subtitle|caption|caption|put|read|critique|annotate|transpose|expand|adapt|decode|decipher"
    r"|debug|refactor|übersetze?|korrigiere?|fasse|kürze)"
)
"""What is done with a text that somebody pasted."""

ASKING = (
    r"^\W*(?:(?:ok|so|and|now|hey|hi|lol|pls|plz|please|kindly|just|can|could|would|will|you|u|bitte|someone)\W+){0,5}"
)
WORK_ON_IT = re.compile(
    ASKING + TEXT_WORK + r"\b(?:\W*$|\s*[.,!?;]|\s+(?:this|that|it|these|those|them|the above|pls|plz|please|to|into|in"
    r"|for|as|down|up|her|him|bitte)\b|\s+(?:this|my|the|our|these|their) (?:grammar|spelling|english|german"
    r"|french|spanish|punctuation|wording|phrasing|writing)\b|\s+(?:the following|(?:this|the) \w+ below)\b)",
    re.IGNORECASE,
)
"""An order to work on a text, which names none."""

REPLY_TO_IT = re.compile(
    ASKING + r"(?:answer|reply|respond)(?: to)? (?:her|him|them|this|it|politely)\b", re.IGNORECASE
)
HELD_OUT = re.compile(r"^\W*(?:\^|↑|<-)")
POINTING = re.compile(
    r"(?:^|[.!?]\s++)\W*+(?:[\w'’-]++\W++){0,6}?(?:this|that|these|those)(?:['’]?s| is| was| are| were)?"
    r"(?: [\w'’/-]+){0,6}? " + POINTED_AT + r"\b"
    r"|\b(?:got|found|saw|received|copied|pasted|read|wrote|sent me|posted) (?:this|these)\b"
    r"|\b(?:what (?:does|do|is|did)|what) [\w ]{0,24}\b(?:this|that|these)(?: \w+)?(?: mean| say| in| from)"
    r"|\b(?:what|which) \w+ is (?:this|that)\b"
    r"|\b(?:is|was) (?:this|that) (?:from|real|legit|fake|genuine|correct english|correct german)\b"
    r"|\bthis (?:is|was) (?:from|by)\b",
    re.IGNORECASE,
)
"""A remark that names the text it points at."""

DEICTIC = re.compile(r"^\W*+(?:[\w'’]++\W++){0,7}?(?:this|that['’]?s?|these|those)\b", re.IGNORECASE)
TO_KEEP = re.compile(
    r"\b(?:remember|keep|save|store|memori[sz]e|note down|take note|don['’]?t forget)\b", re.IGNORECASE
)
"""An order to remember what stands beside it, which is the sender's own."""

OF_THIRD = re.compile(r"^\W*(?:he|she|they)\b", re.IGNORECASE)
DIVIDER = re.compile(r"^\s*(?:[-_=~–—]{2,}|\^+|[-–—#*]+\s*$)\s*")
SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*(?:\s|$)")
TITLE_WORD = re.compile(r"\b[A-ZÀ-Þ0-9][\w'’-]*")
ANY_WORD = re.compile(r"\w[\w'’-]*")
MAX_LINES = 200
"""Lines of a pasted text that are looked at from its beginning on, and before the end of the message."""

MAX_TITLE_WORDS = 9
MIN_REMARK_WORDS = 4
GOES_ON = re.compile(
    r"^\W*(?:and|also|but|so|oh|then|plus|btw|ps|p\.s|thanks|thank|thx|ty|cheers|or|because)\b", re.IGNORECASE
)
"""How a line goes on with the one before, by the same hand."""


def works_on_text(text: str) -> bool:
    """Whether a line orders something to be done with a text that it does not name."""
    return WORK_ON_IT.match(text) is not None or REPLY_TO_IT.match(text) is not None


def is_remark(text: str) -> bool:
    """Whether a line speaks of a text that stands elsewhere in the message."""
    if TO_KEEP.search(text[:300]):
        return False
    return works_on_text(text) or POINTING.search(text[:300]) is not None or HELD_OUT.match(text) is not None


def is_casual(text: str) -> bool:
    """Whether a line begins in lower case, as people write in passing."""
    first = next((char for char in text[:40] if char.isalpha()), "")
    return first.islower()


def is_title(text: str) -> bool:
    """Whether a line is a short one in capitalised words, without a stop: what stands over a text."""
    words = ANY_WORD.findall(text[:200])
    capital = len(TITLE_WORD.findall(text[:200]))
    return 1 < len(words) <= MAX_TITLE_WORDS and not re.search(r"[.!?:,;]\s*$", text) and capital * 3 >= len(words) * 2


def end_of_text(lines: Sequence[Line], at: int) -> int:
    """The index of the line at which a pasted text ends that goes on at `at`: the sender's own words follow.

    He is heard again behind a dividing line, or in a remark that is the last line or begins the last paragraph.
    """
    behind = range(max(at, len(lines) - MAX_LINES), len(lines))
    last = next((i for i in reversed(behind) if lines[i].apart), len(lines) - 1)
    for i in chain(range(at, min(at + MAX_LINES, behind.start)), behind):
        mark = DIVIDER.match(lines[i].text)
        if mark and (mark.end() < len(lines[i].text) or i + 1 < len(lines)):
            return i
        if i in (last, len(lines) - 1) and (resumes(lines[i].text) or (i and _changes_hand(lines[i - 1], lines[i]))):
            return i
    return len(lines)


def _changes_hand(before: Line, line: Line) -> bool:
    """Whether a casual line stands behind a finished one that begins in upper case."""
    finished = line.apart or SENTENCE_END.search(before.text[-3:]) is not None
    return finished and not is_casual(before.text) and is_casual(line.text) and not _goes_on(line.text)


def _goes_on(text: str) -> bool:
    """Whether a line is too short to tell whose it is, or joins on to the one before."""
    return GOES_ON.match(text) is not None or len(ANY_WORD.findall(text[:80])) < MIN_REMARK_WORDS


def dividers(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Dividing lines, and the marks before a remark: "--- shorten please", "^ that is from my boss"."""
    for line in lines:
        if mark := DIVIDER.match(line.text):
            yield Pasted(line.start, line.start + mark.end())


def resumes(text: str) -> bool:
    """Whether a last line is the sender's own again: a remark, or a casual line that asks or points."""
    about = "?" in text and OF_THIRD.match(text) is not None
    return is_remark(text) or about or (is_casual(text) and ("?" in text or DEICTIC.match(text) is not None))


def remarked_on(rows: int, lines: Sequence[Line]) -> Iterator[Pasted]:
    """The lines before the last remark on them; those behind it where it comes first and orders work on a text.

    `rows`: how many lines the message has. Where something pasted was found right behind a remark, it means that.
    """
    weighed = {len(lines) - 1, max((at for at, line in enumerate(lines) if line.apart), default=0)}
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        sure = is_remark(line.text)
        behind = lines[at + 1].row if at + 1 < len(lines) else rows
        if behind > line.row + 1 or not (sure or at in weighed):
            continue
        first = at
        while first > 0 and lines[first - 1].row in (lines[first].row, lines[first].row - 1):
            first -= 1
        before = [each for each in lines[first:at] if each.row < line.row]
        if before and (sure or _is_of_other_hand(before, line)):
            yield from pasted(before)
            return
        if at == 0 and works_on_text(line.text) and len(lines) > 1 and lines[1].row == 1:
            yield from pasted(lines[1 : end_of_text(lines, 1)])
            return


def _is_of_other_hand(before: Sequence[Line], remark: Line) -> bool:
    """Whether lines are written otherwise than a remark: printed text before a casual line, a title, a quotation."""
    pointing = is_casual(remark.text) or DEICTIC.match(remark.text) is not None
    if not pointing or TO_KEEP.search(remark.text[:300]):
        return False
    marked = before[0].text.lstrip()[:1] in "\"“„«»‘'*" or (len(before) > 2 and is_title(before[0].text))
    if marked and ("?" in remark.text or is_casual(remark.text)):
        return True
    if _goes_on(remark.text):
        return False
    formal = all(not is_casual(line.text) for line in before)
    return is_casual(remark.text) and formal and any(SENTENCE_END.search(line.text) for line in before)
