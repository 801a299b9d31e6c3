"""What of a message its sender says, and what was pasted into it.

A message is read line by line. Mails, chat exports, logs, stack traces, diffs, code, tables, verse and texts that are
handed over to be worked on are no words of the sender. Of a chat export the lines are attributed to whom they quote.
Recognised by form, and by the sentence that announces them; not by what they tell of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.language.talk.worth import FIRST_PERSON, WORD


@dataclass(frozen=True, slots=True)
class Block:
    """A half-open span of a message in one voice. `speaker`: who is quoted, None for the sender."""

    start: int
    end: int
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


MAX_PROSE_WORDS = 120
"""A paragraph of so many words in which nobody says I, we or my is a text, not talk."""

MIN_VERSES, MAX_VERSE_CHARS = 4, 64

LINE = re.compile(r"[^\r\n\u2028\u2029]+")
FENCE = re.compile(r"^\s*(?:```|~~~)")
MAIL_HEADER = re.compile(
    r"^\W*(?:from|to|cc|bcc|subject|sent|date|reply-to|von|an|betreff|gesendet)\s*:\*?\s+\S", re.IGNORECASE
)
FORWARDED = re.compile(
    r"^\W*(?:-{2,}\s*)?(?:(?:begin )?forwarded message|original message|weitergeleitete nachricht)\b|\bwrote:\s*$"
    r"|\bschrieb:\s*$"
    r"|^\W*(?:fwd?|fw|re)\s*:\s",
    re.IGNORECASE,
)
GREETING = re.compile(
    r"^\W*(?:dear|hi|hello|hey|good (?:morning|afternoon|evening))\b[^.!?]{0,40}[,:]\s*$|^\W*to whom it may concern",
    re.IGNORECASE,
)
SIGNATURE = re.compile(
    r"^\W*(?:(?:best|kind|warm|many)(?: \w+)? ?(?:regards|wishes|thanks)|regards|sincerely|yours(?: \w+)?|cheers|best|"
    r"thanks|thank you|love|sent from my \w+)\W*$",
    re.IGNORECASE,
)
QUOTED = re.compile(r"^\s*(?:>|\|(?!.*\|))")
CHAT_LINE = re.compile(
    r"^\s*(?:\[?(?P<when>(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s*)?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
    r"(?:\s*[ap]\.?m\.?)?)\]?\s*[-–—|]?\s*)?"
    r"(?:<(?P<nick>[\w .'-]{1,30})>|(?P<name>[^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2})"
    r"(?:\s*[\[(](?P<after>[^\])]{0,24}\d{1,2}:\d{2}[^\])]{0,8})[\])])?\s*:)\s+(?P<said>\S.*)$"
)
LOG_LINE = re.compile(
    r"^\s*(?:\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}|\[?\d{2}/\w{3}/\d{4}:\d{2}|\w{3} +\d{1,2} \d{2}:\d{2}:\d{2}"
    r"|\[?\d{2}:\d{2}:\d{2}[.,\]]"
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b[\]: ]|E\d{4}|\d{1,3}(?:\.\d{1,3}){3} - )"
)
TRACE = re.compile(
    r"^\s*(?:Traceback \(most recent|File \"[^\"]+\", line \d+|at [\w.$<>]+\(|Caused by:|goroutine \d+|panic:"
    r"|[\w.]+(?:Error|Exception)\b\s*(?::|$)|\^+$|npm ERR!|\s*\d+ \|)"
)
DIFF = re.compile(r"^(?:diff --git|index [0-9a-f]{6,}|@@ .* @@|--- [ab/]|\+\+\+ [ab/])")
CHANGED = re.compile(r"^[+-]")
"""A changed line, in a paragraph that has a line of `DIFF`."""

CODE = re.compile(
    r"^\s*(?:def \w+\(|class \w+[(:{]|import [\w.]+$|from [\w.]+ import |(?:const|let|var) \w+\s*=|function\s*\w*\("
    r"|return\b.*;?$"
    r"|#include|public |private |package [\w.]+;|SELECT\b.+\bFROM\b|INSERT INTO|UPDATE \w+ SET|CREATE (?:TABLE"
    r"|INDEX)|WHERE\b"
    r"|[$#>%] ?\S+|\w+@[\w-]+:.*\$|<\/?[a-zA-Z][^>]*>\s*$|[{}\[\]()]+[,;]?\s*$|\"[\w-]+\"\s*:\s*.+,?$|.*[;{}]\s*$"
    r"|if .*:$|for .*:$"
    r"|elif .*:$|else:$|try:$|except.*:$|\w+\(.*\)\s*$|\w+ = .+$|@\w+|//|/\*|\*/|<!--)"
)
ANNOUNCED = re.compile(
    r"(?:\b(?:here(?:'s| is| are| goes)|this is|these are|read|translate|proofread|summari[sz]e|rewrite|rephrase"
    r"|paraphrase|check|fix"
    r"|review|edit|correct|shorten|polish|improve|analy[sz]e|explain|continue|format|convert|classify|look at|see"
    r"|got|found|sent|posted"
    r"|says|said|wrote|reads|writes|goes|forwarded|pasted?|quote[sd]?|copied|from)\b[^.!?\n]{0,90}|\b(?:my|the|this"
    r"|an?|following|below)\s"
    r"[^.!?\n]{0,60})\b(?:story|article|essay|poem|text|paragraph|e-?mail|mail|letter|draft|post|speech|lyrics|song"
    r"|chorus|verse"
    r"|chapter|novel|scene|script|dialogue|contract|clause|minutes|transcript|review|ad|advert(?:isement)?|recipe"
    r"|definition|entry"
    r"|tweets?|thread|sentences?|passage|message|note|log|logs|error|output|code|diff|snippet|json|csv|table|caption"
    r"|bio|cv|resume"
    r"|abstract|report|press release|listing|description|quote|excerpt|exercise|conversation|chat|fairy tale|joke"
    r"|prompt|memo"
    r"|announcement|newsletter|news|notice|flyer|statement|terms|policy|documentation|docs|readme|changelog"
    r"|horoscope|saying|proverb)\b"
    r"[^:.!?\n]{0,60}:\s*(?=\S|$)",
    re.IGNORECASE,
)
"""A sentence that hands over a text after its colon."""

TASK = re.compile(
    r"^\W*(?:(?:can|could|would|will) you |please |kindly |now )*(?:translate|proofread|summari[sz]e|rewrite"
    r"|rephrase|paraphrase|correct"
    r"|fix(?: the)?|edit|shorten|polish|improve|continue|classify|convert|reformat|spell-?check)\b[^:\n]{0,90}:\s*",
    re.IGNORECASE,
)
ROLE_PLAY = re.compile(
    r"\b(?:role-?play|pretend|imagine (?:you|we|i|that|a)|act as|you are now|you're now|let's play|play the (?:role"
    r"|part)|in character"
    r"|write (?:me )?(?:a|an|the|some|another)\b[^.\n]{0,40}\b(?:story|poem|scene|song|novel|chapter|dialogue"
    r"|fan ?fiction|script|tale"
    r"|sketch|limerick|haiku|monologue|lyrics|fable|play|screenplay|verse)|continue (?:the|this|my) (?:story|tale"
    r"|scene)|once upon a time"
    r"|for (?:my|the|a) (?:novel|story|character|book|screenplay|d&d|campaign)|my (?:character|protagonist)"
    r"|hypothetical(?:ly)?"
    r"|let's say|say (?:i|we)\b|suppose)\b",
    re.IGNORECASE,
)
"""From such a sentence on, a message is fiction."""


def spoken(text: str) -> list[Block]:
    """The blocks of a message that are somebody's own words, in order; what was pasted or made up is left out."""
    blocks: list[Block] = []
    for paragraph in _paragraphs(list(_handed_over(text))):
        blocks.extend(_blocks(paragraph))
    return _without_fiction(text, blocks)


def _lines(text: str) -> Iterator[_Line]:
    for found in LINE.finditer(text):
        yield _Line(found.start(), found.end(), found.group())


def _handed_over(text: str) -> Iterator[_Line]:
    """The lines up to a text that is handed over: a forwarded mail, what a task or an announcement brings with it."""
    fenced = mail = False
    headers = 0
    for line in _lines(text):
        if FENCE.match(line.text):
            fenced = not fenced
            continue
        headers = headers + 1 if MAIL_HEADER.match(line.text) else 0
        mail = mail or headers >= 2 or FORWARDED.search(line.text) is not None
        if mail:
            return
        if fenced or QUOTED.match(line.text):
            continue
        brought = TASK.match(line.text) or ANNOUNCED.search(line.text)
        if brought and not _is_short(text[brought.end() :], line.text):
            if brought.start():
                yield _Line(line.start, line.start + brought.start(), line.text[: brought.start()])
            return
        yield line


def _is_short(rest: str, line: str) -> bool:
    """Whether what follows a colon is no text of its own: a value ("my note: buy milk")."""
    return len(WORD.findall(rest)) <= 3 and "\n" not in rest.strip() and bool(line)


def _paragraphs(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Runs of lines without an empty one between them."""
    run: list[_Line] = []
    for line in lines:
        if not line.text.strip():
            continue
        if run and line.start - run[-1].end > 2:
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _blocks(lines: Sequence[_Line]) -> list[Block]:
    """The spoken lines of a paragraph."""
    chat = _chat(lines)
    if chat is not None:
        return chat
    if _is_verse(lines) or _is_letter(lines):
        return []
    patch = any(DIFF.match(line.text) for line in lines)
    prose = [line for line in lines if not _is_machine_text(line.text) and not (patch and CHANGED.match(line.text))]
    if len(prose) < len(lines) and len(lines) - len(prose) >= len(prose):
        return []
    if _is_table(prose) or _is_document(prose):
        return []
    return [Block(line.start, line.end) for line in prose]


def _is_machine_text(line: str) -> bool:
    return any(form.match(line) for form in (LOG_LINE, TRACE, DIFF, CODE))


def _chat(lines: Sequence[_Line]) -> list[Block] | None:
    """The lines of a chat export, attributed; None when it is none."""
    found = [CHAT_LINE.match(line.text) for line in lines]
    said = [each for each in found if each]
    timed = sum(bool(each["when"] or each["after"] or each["nick"]) for each in said)
    names = {each["name"] or each["nick"] for each in said}
    long = sum(len(WORD.findall(each["said"])) >= 4 for each in said)
    talk = len(said) >= 3 and len(names) >= 2 and len(names) < len(said) and long * 2 >= len(said)
    if len(said) * 2 <= len(lines) or not ((timed >= 1 and timed * 2 >= len(said)) or talk):
        return None
    return [
        Block(line.start + each.start("said"), line.start + each.end("said"), each["name"] or each["nick"])
        for line, each in zip(lines, found, strict=True)
        if each
    ]


def _is_verse(lines: Sequence[_Line]) -> bool:
    """Short lines that end without a stop, and are no list: lyrics, a poem."""
    texts = [line.text.strip() for line in lines]
    if len(texts) < MIN_VERSES or any(len(each) > MAX_VERSE_CHARS for each in texts):
        return False
    open_ends = sum(each[-1] not in ".!?:;" for each in texts)
    listed = sum((not each[0].isalpha() and each[0] not in "\"'“‘(") or ":" in each for each in texts)
    return open_ends * 3 >= len(texts) * 2 and listed * 4 < len(texts) and all(len(WORD.findall(t)) > 1 for t in texts)


def _is_letter(lines: Sequence[_Line]) -> bool:
    """Whether a paragraph begins with the greeting line of a letter and ends with its signature."""
    return len(lines) > 1 and GREETING.match(lines[0].text) is not None and any(SIGNATURE.match(x.text) for x in lines)


def _is_table(lines: Sequence[_Line]) -> bool:
    for mark in ("|", "\t", ";", ","):
        counts = [line.text.count(mark) for line in lines]
        even = len(lines) >= 3 and min(counts, default=0) >= 2 and max(counts) == min(counts)
        if even and not any(line.text.rstrip().endswith((".", "!")) for line in lines):
            return True
    return False


def _is_document(lines: Sequence[_Line]) -> bool:
    text = " ".join(line.text for line in lines)
    return FIRST_PERSON.search(text) is None and len(WORD.findall(text)) >= MAX_PROSE_WORDS


def _without_fiction(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks before the first sentence that announces fiction; a block that has one goes as a whole."""
    kept: list[Block] = []
    for block in blocks:
        if block.speaker is None and ROLE_PLAY.search(text[block.start : block.end]):
            break
        kept.append(block)
    return kept
