"""The passages of a message: all of it, unless it is a list, a transcript, or long.

A passage is what becomes one memory. Lists, `key: value` lines and transcripts are divided at their lines; messages of
more than MAX_CHARS at paragraphs, lines and sentences. What was pasted is left out, by its structure alone: fences,
quoted lines, mail headers, logs, stack traces, diffs and code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from service.language import sentences

MAX_CHARS = 600
"""Longer messages are divided."""

_LINE = re.compile(r"[^\r\n\u2028\u2029]+")
_ITEM = re.compile(r"\s*(?:[-*\u2022\u2013+]|\d{1,2}[.)])\s+(?:\[[ xX]?\]\s+)?|\s*\[[ xX]?\]\s+")
_PAIR = re.compile(r"\s*[^\W\d_][\w /-]{0,30}:\s+\S")
_HEADING = re.compile(r"[^.!?]{2,80}:\s*\**$|\s*#{1,6}\s+[^.!?]{2,80}$|\*\*[^*]{2,80}\*\*:?$")

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "bot": "assistant"}
_STAMP = r"(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d(?::\d\d)?Z?(?: ?[APap][Mm])?\]?[\s,-]*)?"
_LABEL = re.compile(
    rf"(?m)^[^\S\r\n]*{_STAMP}\**(?P<label>(?i:user|human|assistant|ai|bot|system)|[^\W\d_a-z][\w.'-]{{1,20}}"
    r"(?: [^\W\d_a-z][\w.'-]{1,20})?)\**:\**[ \t]*(?=\S)"
)
_INLINE_LABEL = re.compile(r"(?i)(?:^|(?<=\s))(?P<label>user|human|assistant|ai)\s*:\s+")

_FENCE = re.compile(r"\s*(?:```|~~~)")
_QUOTED = re.compile(r"\s*>")
_MAIL = re.compile(r"\s*(?:From|To|Cc|Subject|Date|Sent|Von|An|Betreff|De|Para|Objet|Asunto):\s+\S")
_MACHINE = re.compile(
    r"\s*(?:\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}|\[?\d{2}:\d{2}:\d{2}[.,\]]|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG)\b[\]: ]"
    r"|Traceback \(most|File \"[^\"]+\", line \d|at [\w.$<>]+\(|Caused by:|[\w.]+(?:Error|Exception)\b\s*:"
    r"|diff --git|@@ .* @@|(?:---|\+\+\+) [ab/]|(?:def|class|function|import|from|const|let|var|return"
    r"|#include)\b.*[:;{(]\s*$"
    r"|[\w.]+\(.*\);?\s*$|\S+ = \S.*[;)\]}\"']\s*$|[{}\[\]()]+[,;]?\s*$|\"[\w-]+\"\s*:\s*\S|</?[a-zA-Z!][^>]*>"
    r"|[$%] [\w./]+)"
)
_TASK_BEFORE = re.compile(
    r"(?i)^\W*(?:(?:can|could|would|will) you |please )*(?:translate|proofread|summari[sz]e|rewrite|rephrase|paraphrase"
    r"|correct|fix|edit|shorten|polish|improve|continue|classify|convert|explain|simplify|review"
    r"|\u00fcbersetze?)\b[^\n:]{0,90}:"
)
"""A request that hands over the text after its colon."""

_FORM_CHARS = 300


@dataclass(frozen=True, slots=True)
class Passage:
    """A half-open span of a message. `heading`: the line it stands under. `label`: whom a transcript quotes, None for
    the sender of the message; `role` "assistant" where that is an assistant."""

    start: int
    end: int
    heading: str = ""
    label: str | None = None
    role: str = "user"


def passages(text: str) -> list[Passage]:
    """The passages of a message in order; none where all of it was pasted."""
    return [part for voice in _voices(text) for part in _divide(text, voice)]


def _voices(text: str) -> list[Passage]:
    """The message as one, or the lines of its transcript."""
    for pattern in (_LABEL, _INLINE_LABEL):
        labels = list(pattern.finditer(text))
        if _is_transcript(text, labels):
            return list(_speeches(text, labels))
    return [Passage(0, len(text))]


def _is_transcript(text: str, labels: Sequence[re.Match[str]]) -> bool:
    """Two voices at least: roles, or names of which one comes back or that all say sentences."""
    names = [match["label"].casefold() for match in labels]
    if len(names) < 2 or len(set(names)) < 2:
        return False
    if sum(name in _ROLES for name in names) >= 2:
        return True
    ends = [*(match.start() for match in labels[1:]), len(text)]
    sentences_ = all(re.search(r"[.!?]\W*$", text[a.end() : end].strip()) for a, end in zip(labels, ends, strict=True))
    return labels[0].re is _LABEL and labels[0].start() <= 1 and (len(set(names)) < len(names) or sentences_)


def _speeches(text: str, labels: Sequence[re.Match[str]]) -> Iterator[Passage]:
    ends = [*(match.start() for match in labels[1:]), len(text)]
    if text[: labels[0].start()].strip():
        yield Passage(0, labels[0].start())
    for label, end in zip(labels, ends, strict=True):
        name = label["label"].strip("*")
        role = _ROLES.get(name.casefold(), "system" if name.casefold() == "system" else "user")
        yield Passage(label.end(), end, label=None if name.casefold() in _ROLES else name, role=role)


def _divide(text: str, voice: Passage) -> Iterator[Passage]:
    lines = list(_own_lines(text, voice.start, voice.end))
    listed = sum(bool(_ITEM.match(line) or _PAIR.match(line)) for line in (text[a:b] for a, b in lines)) >= 2
    if not listed:
        for start, end in _runs(lines):
            yield from (replace(voice, start=a, end=b) for a, b in _short(text, start, end))
        return
    heading = ""
    for start, end in lines:
        item = _ITEM.match(text, start, end)
        if not item and _HEADING.match(text[start:end]):
            heading = text[start:end].strip(" *#")
            continue
        heading = heading if item or _PAIR.match(text[start:end]) else ""
        begin = item.end() if item else start
        yield from (replace(voice, start=a, end=b, heading=heading) for a, b in _short(text, begin, end))


def _own_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the lines that were not pasted."""
    if _TASK_BEFORE.match(text, start, end):
        return
    lines = [(line.start(), line.end()) for line in _LINE.finditer(text, start, end) if line.group().strip()]
    machine = [bool(_MACHINE.match(text[a : min(b, a + _FORM_CHARS)])) for a, b in lines]
    mail = [bool(_MAIL.match(text[a:b])) for a, b in lines]
    fenced = False
    for index, (a, b) in enumerate(lines):
        if sum(mail[index : index + 3]) >= 2:  # a head of a mail: what follows is the mail
            return
        if _FENCE.match(text[a:b]):
            fenced = not fenced
            continue
        is_machine = machine[index] and (sum(machine[max(0, index - 1) : index + 2]) >= 2 or len(lines) == 1)
        if not (fenced or is_machine or _QUOTED.match(text[a:b])):
            yield a, b


def _runs(lines: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Lines with nothing but white space between them, together."""
    begin: int | None = None
    for index, (start, end) in enumerate(lines):
        begin = start if begin is None else begin
        following = lines[index + 1][0] if index + 1 < len(lines) else None
        if following is None or following - end > 4:
            yield begin, end
            begin = None


def _short(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, trimmed; divided where it is long: at paragraphs and lines, and long lines at sentences."""
    start, end = sentences.trim(text, start, end)
    if end - start <= MAX_CHARS:
        if start < end:
            yield start, end
        return
    parts: list[tuple[int, int]] = []
    for line in _LINE.finditer(text, start, end):
        long = line.end() - line.start() > MAX_CHARS
        inside = sentences.split(line.group()) if long else [(0, line.end() - line.start())]
        parts += [(line.start() + left, line.start() + right) for left, right in inside]
    begin, last = parts[0]
    for left, right in parts[1:]:
        if right - begin > MAX_CHARS or text.count("\n", last, left) > 1:
            yield sentences.trim(text, begin, last)
            begin = left
        last = right
    yield sentences.trim(text, begin, last)
