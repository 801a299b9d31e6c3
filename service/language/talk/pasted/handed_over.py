"""Texts that a sentence announces or that come with a task: "Here's my poem: ...", "Translate: ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.language.talk.pasted.lines import Line, Pasted
from service.language.talk.pasted.quotations import quotations
from service.language.talk.pasted.remarks import MAX_LINES, TEXT_NOUN, TO_KEEP, end_of_text
from service.language.talk.worth import FIRST_PERSON, WORD

MAX_ANNOUNCEMENT = 2000
"""Characters of a line in which a text is announced."""

ANNOUNCED = re.compile(
    r"(?:\b(?:here(?:'s| is| are| goes)|this is|these are|read|translate|proofread|summari[sz]e|rewrite|rephrase"
    r"|paraphrase|check|fix|review|edit|correct|shorten|polish|improve|analy[sz]e|explain|continue|format|convert"
    r"|classify|look at|see|got|found|sent|posted|says|said|wrote|reads|writes|goes|forwarded|pasted?|quote[sd]?|copied"
    r"|from)\b[^.!?\n]{0,90}|\b(?<!for )(?<!about )(?<!on )(?<!regarding )(?<!concerning )"
    r"(?:my|the|this|an?|following|below)\s[^.!?\n]{0,60})\b" + TEXT_NOUN + r"\b"
    r"[^:.!?\n]{0,60}:\s*(?=\S|$)"
    r"|^\W*(?:[\w'’-]+ ){0,3}" + TEXT_NOUN + r"(?: \([^)\n]*\)|,? (?:from|by|of) [^:.\n]{1,40})?:\s*$"
    r"|^\W*(?:[\w'’-]+ ){0,3}" + TEXT_NOUN + r"(?: \([^)\n]*\)| (?:from|by) [^:.\n]{1,40}):\s*(?=\S)"
    r"|^\W*(?!for |about |on |regarding |re |as |in |(?:notes?|news|message|policy|report)\s*:)[^:.!?\n]{0,50}\b"
    + TEXT_NOUN
    + r"\b[^:.!?\n]{0,40}:\s+(?=[^\n]*\b(?i:I|my|we|I'[a-z]+)\b)",
    re.IGNORECASE,
)
"""A sentence that hands over a text after its colon."""

TASK = re.compile(
    r"^\W*(?:(?:can|could|would|will) you |please |kindly |now |bitte )*(?:translate|proofread|summari[sz]e|rewrite"
    r"|rephrase|paraphrase|correct|fix(?: the)?|edit|shorten|polish|improve|continue|classify|convert|reformat"
    r"|spell-?check|mark|grade|tidy(?: up)?|make (?:this|it)|turn (?:this|it)|fasse?|übersetz|fill in"
    r"|complete|finish|explain|simplify|übersetze?|korrigiere?)\b[^:\n]{0,90}:\s*",
    re.IGNORECASE,
)
SENT_THIS = re.compile(
    r"\b(?:(?:sent|wrote|written|got|found|saw|posted|said|says|reads?|received|texted|made|typed)\b"
    r"[^.!?\n]{0,40}\b(?:this|these|the following)|(?:this|these) (?:is|are|was|were) (?:what|the|how))\b"
    r"[^:\n]{0,80}:\s*$",
    re.IGNORECASE,
)
"""A line of the sender's own that brings a text below it: "My boss sent this:"."""

THIRD_PERSON = re.compile(r"\b(?:he|she|they|his|her|their|him|them)\b", re.IGNORECASE)
"""Behind a text in quotation marks: those whom its announcement named."""


def handed_over(text: str, lines: Sequence[Line]) -> Iterator[Pasted]:
    """The announced texts: to their closing quotation mark, else to a remark on them or the end."""
    closing = dict(quotations(text))
    at = 0
    while at < len(lines):
        line = lines[at]
        if ":" not in line.text[:MAX_ANNOUNCEMENT]:
            at += 1
            continue
        own = SENT_THIS.search(line.text[-300:])
        brought = own or TASK.match(line.text) or ANNOUNCED.search(line.text, 0, MAX_ANNOUNCEMENT)
        if not brought or TO_KEEP.search(line.text[: brought.end()]):
            at += 1
            continue
        offset = max(0, len(line.text) - 300) if own else 0
        start = line.start + (len(line.text.rstrip(": ")) if own else brought.start())
        opened = line.start + offset + brought.end()
        opened += len(text[opened : opened + 200]) - len(text[opened : opened + 200].lstrip())
        end = _end_of(lines, at, opened, closing)
        if not own and _is_short(text[opened : min(lines[-1].end, opened + MAX_ANNOUNCEMENT)]):
            at += 1
            continue
        yield Pasted(start, end)
        while at < len(lines) and lines[at].end <= end:
            at += 1
        if at < len(lines) and lines[at].start < end:
            at += 1


def _end_of(lines: Sequence[Line], at: int, opened: int, closing: dict[int, int]) -> int:
    """Where the text that begins at `opened` ends, announced by `lines[at]`."""
    if opened in closing:
        line = next((each for each in lines[at : at + MAX_LINES] if each.end >= closing[opened]), lines[at])
        rest = line.text[closing[opened] - line.start :]
        return line.end if THIRD_PERSON.search(rest) and not FIRST_PERSON.search(rest) else closing[opened]
    return lines[end_of_text(lines, at + 1) - 1].end


def _is_short(rest: str) -> bool:
    """Whether what follows a colon is no text of its own: a value ("my note: buy milk")."""
    return len(WORD.findall(rest[:400])) <= 3 and "\n" not in rest.strip()
