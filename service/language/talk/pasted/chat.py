"""Chat exports, whose lines are told in the name of whom they quote, and dialogues, which nobody said."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from service.language import wordlists
from service.language.talk.pasted.lines import Block, Line, Pasted, paragraphs, pasted
from service.language.talk.pasted.remarks import DIVIDER, is_casual, is_remark
from service.language.talk.worth import WORD

CHAT_LINE = re.compile(
    r"^\s*(?:\[?(?P<when>(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s*)?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
    r"(?:\s*[ap]\.?m\.?)?)\]?\s*[-–—|]?\s*)?"
    r"(?:<(?P<nick>[\w .'-]{1,30})>|(?P<name>[^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2})"
    r"(?:\s*[\[(](?P<after>[^\])]{0,24}\d{1,2}:\d{2}[^\])]{0,8})[\])])?\s*:)\s+(?P<said>\S.*)$"
)
ROLES = wordlists.words("""
    user assistant human ai bot system model chatgpt claude gpt interviewer interviewee narrator customer agent caller
    operator host guest q a speaker man woman boy girl patient doctor teacher student client therapist judge witness
    counsel candidate applicant employer recruiter salesman seller buyer waiter waitress nurse mother father son
    daughter reporter moderator panelist chorus character player defendant prosecutor officer driver passenger
""")
"""Names of parts in a dialogue, which name nobody."""

SENDER_HIMSELF = frozenset({"me", "ich", "myself"})
PART = re.compile(r"(?:^|(?<=[.!?…\"] ))\s*\(?(?P<part>[A-Z]|[A-Z][a-z]+ [A-Z])\)?: (?=\S)")
"""A part of a dialogue that has but a letter: "A: Have you a brother? B: Yes."."""

NUMBERED_POST = re.compile(r"^\s*\(?\d{1,2}/(?:\d{1,2}|n)?\)?\s")


def chats(lines: Sequence[Line]) -> Iterator[Pasted]:
    """The lines of chat exports."""
    for paragraph in paragraphs(lines):
        matches = [CHAT_LINE.match(line.text) for line in paragraph]
        rows = [at for at, each in enumerate(matches) if each]
        if rows and _is_chat([each for each in matches if each]) and len(rows) * 2 > rows[-1] + 1 - rows[0]:
            end = _end(paragraph, rows)
            for line, match in zip(paragraph[rows[0] : end], matches[rows[0] : end], strict=True):
                yield Pasted(line.start, line.end, _said(line, match) if match else None)


def _end(paragraph: Sequence[Line], rows: Sequence[int]) -> int:
    """The index behind a chat: lines that follow belong to it where others have several lines as well."""
    long = any(behind > at + 1 for at, behind in itertools.pairwise(rows))
    end = rows[-1] + 1
    while long and end < len(paragraph) and not (is_remark(paragraph[end].text) or DIVIDER.match(paragraph[end].text)):
        if end == len(paragraph) - 1 and is_casual(paragraph[end].text):
            break
        end += 1
    return end


def _is_chat(said: Sequence[re.Match[str]]) -> bool:
    timed = sum(bool(each["when"] or each["after"] or each["nick"]) for each in said)
    names = {each["name"] or each["nick"] for each in said}
    long = sum(len(WORD.findall(each["said"])) >= 4 for each in said)
    talk = len(said) >= 3 and len(names) >= 2 and len(names) < len(said) and long * 2 >= len(said)
    parts = len(said) >= 2 and len(names) >= 2 and all(name.casefold() in ROLES for name in names if name)
    return (timed >= 1 and timed * 2 >= len(said)) or talk or parts


def _said(line: Line, match: re.Match[str]) -> Block | None:
    """What a line of a chat tells; nothing where its speaker is but a part."""
    name = match["name"] or match["nick"]
    start, end = line.start + match.start("said"), line.start + match.end("said")
    if name.casefold() in SENDER_HIMSELF:
        return Block(start, end)
    nobody = name.casefold() in ROLES or len(name) < 2 or (name.isupper() and len(name) > 3)
    return None if nobody else Block(start, end, name)


def dialogues(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Dialogues whose parts are letters, from the first part to the last one's line."""
    for paragraph in paragraphs(lines):
        parts = [{found["part"] for found in PART.finditer(line.text)} for line in paragraph]
        if len(set[str]().union(*parts)) >= 2:
            yield from pasted(line for line, each in zip(paragraph, parts, strict=True) if each)


def threads(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Numbered posts: "1/ ...", "2/ ..."."""
    posts = [line for line in lines if NUMBERED_POST.match(line.text)]
    if len(posts) >= 2:
        yield from pasted(posts)
