"""Mails and letters, told in the name of whom they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.language.talk.pasted.lines import Line, Pasted, pasted
from service.language.talk.pasted.remarks import MAX_LINES, end_of_text

HEADER = re.compile(
    r"^\W{0,4}(?P<field>from|to|cc|bcc|subject|sent|date|reply-to|von|an|betreff|gesendet)\s*:\*?\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
MAILS_ONLY = frozenset({"subject", "sent", "cc", "bcc", "reply-to", "betreff", "gesendet"})
SENT_BY = frozenset({"from", "von"})
FORWARDED = re.compile(
    r"^\W*+(?:(?:begin )?forwarded message|original message|weitergeleitete nachricht)\b"
    r"|^\W*+(?:fwd?|fw|re)\s*:\s",
    re.IGNORECASE,
)
NAME = r"[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,3}"
WROTE = re.compile(
    r"(?:^|[,>] )(?P<name>" + NAME + r")?(?: ?<[^<>]*>)? (?:wrote|schrieb):\s*$|\b(?:wrote|schrieb):\s*$"
)
ON_DAY = re.compile(r"^\W*(?:On|Am) .*(?:wrote|schrieb)\b.*:\s*$")
MARKED = re.compile(r"^\s*(?P<marks>>[>\s]*|\|(?!.*\|)\s*)")
SENDER = re.compile(r"^[\"']?(?P<name>" + NAME + r")[\"']?\s*(?:[<(\[,]|$)")

GREETING = re.compile(
    r"^\W*(?:(?P<formal>dear|sehr geehrte\w*|liebe[rs]?|to whom it may concern)|hi|hello|hey|hallo"
    r"|good (?:morning|afternoon|evening))\b[^.!?]{0,40}[,:!]?\s*$",
    re.IGNORECASE,
)
FORMAL = re.compile(
    r"^\W*(?:dear (?:diary|sirs?|madam|mr|mrs|ms|dr|prof|editor|santa|abby|future|valued|customer|hiring)\b"
    r"|dear [^.!?,]{1,40},"
    r"|liebes tagebuch|to whom it may concern)",
    re.IGNORECASE,
)
"""The opening of a letter that goes on in the same line."""

CLOSING = (
    r"(?:(?:best|kind|warm|many|with|yours)(?: \w+){0,2} ?(?:regards|wishes|thanks|greetings)|regards|sincerely|yours"
    r"(?: \w+)?|respectfully|cheers|best|thanks|thank you|love|xoxo|sent from my \w+|mit freundlichen grüßen"
    r"|(?:viele|liebe|beste) grüße|gruß)"
)
PROPER = r"(?:[A-ZÀ-Þ][\w.'’-]*)(?: (?:van|von|de|of|the|and|&|[A-ZÀ-Þ][\w.'’-]*)){0,4}"
SIGNATURE = re.compile(r"^\W*(?i:" + CLOSING + r")(?:[,.!]?\s+(?P<name>" + PROPER + r"))?\W*$")
SIGNED_INLINE = re.compile(
    r"(?:^|[.!?,]\s+)(?i:(?:(?:best|kind|warm) )?regards|yours(?: \w+)?|sincerely|mit freundlichen grüßen),?\s+"
    r"(?P<name>" + PROPER + r")\W*$"
)
NAME_ONLY = re.compile(r"^\W*(?P<name>" + PROPER + r")(?:\s*[,|(].*)?\W*$")
MAX_SIGNED_CHARS = 200
SIGNED_BELOW = re.compile(r"^\s*(?:—|–|--|~)\s*(?P<name>@?[^\W\d_][\w.'’@-]*(?: [\w.'’@-]+){0,4})\W*$")


def marked(lines: Sequence[Line]) -> Iterator[Pasted]:
    """The lines behind ">" of an answered mail, in the name of whom the line "Ann wrote:" gives."""
    speakers: dict[int, str | None] = {}
    before: Line | None = None
    for line in lines:
        found = MARKED.match(line.text)
        if found is None:
            speakers, before = {}, line
            continue
        depth = found["marks"].count(">")
        text = line.text[found.end() :]
        wrote = _wrote(text) if text else None
        if wrote:
            speakers[depth] = wrote[0]
        elif depth not in speakers:
            above = _wrote(before.text) if before is not None and before.row == line.row - 1 else None
            speakers[depth] = above[0] if above else None
            if above and before is not None:
                yield from pasted([before])
        for told in pasted([Line(line.row, line.start + found.end(), line.end, text)], speakers[depth]):
            yield Pasted(line.start, line.end, None if wrote else told.quoted)


def _wrote(text: str) -> tuple[str | None] | None:
    """Who wrote, as the line above a quoted mail tells; None where the line is no such."""
    found = WROTE.search(text[:200])
    if found is None:
        return None
    return (found["name"] if ON_DAY.match(text[:200]) or text.startswith(found["name"] or "\0") else None,)


def mails(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Forwarded and pasted mails, from their header to the end of the message or a remark on them."""
    at = 0
    while at < len(lines):
        body, speaker = _header(lines, at)
        if body == at:
            at += 1
            continue
        end = end_of_text(lines, body) if body < len(lines) else body
        yield from pasted(lines[at:body])
        unsure = next((i for i in range(body + 1, end) if lines[i].apart and "?" in lines[i].text), end)
        yield from pasted(lines[body:unsure], speaker)
        yield from pasted(lines[unsure:end])
        at = end


def _header(lines: Sequence[Line], at: int) -> tuple[int, str | None]:
    """The index behind a mail's header that begins at `at`, with whom it comes from; `at` where none begins."""
    end, speaker = at, None
    sure = FORWARDED.match(lines[at].text) is not None
    if sure or ON_DAY.match(lines[at].text[:200]):
        wrote = _wrote(lines[at].text)
        sure, end, speaker = True, at + 1, wrote[0] if wrote else None
    while end < len(lines) and (found := HEADER.match(lines[end].text)):
        field = found["field"].lower()
        sure = sure or field in MAILS_ONLY or "@" in found["value"]
        sender = SENDER.match(found["value"]) if field in SENT_BY else None
        speaker = sender["name"] if sender else speaker
        end += 1
    return (end, speaker) if sure else (at, None)


def letters(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Letters from "Dear ..." to their signature, and lines that end with one; in the name of who signs."""
    at = 0
    while at < len(lines):
        text = lines[at].text
        inline = SIGNED_INLINE.search(text[-120:])
        below = SIGNED_BELOW.match(text) if len(text) < MAX_SIGNED_CHARS else None
        if inline:
            yield from pasted([lines[at]], inline["name"])
        elif FORMAL.match(text) and not GREETING.match(text):
            yield from pasted([lines[at]])
        elif below and at:
            first = at
            while (
                first > at - MAX_LINES
                and first
                and lines[first - 1].row == lines[first].row - 1
                and not lines[first].apart
            ):
                first -= 1
            yield from pasted([*lines[first:at]], below["name"])
            yield from pasted([lines[at]])
        elif greeting := GREETING.match(text):
            end, name = _signature(lines, at + 1)
            if end > at + 1 and (name or greeting["formal"]):
                signed = next(i for i in range(at + 1, end) if SIGNATURE.match(lines[i].text[:80]))
                yield from pasted(lines[at + 1 : signed], name)
                yield from pasted([lines[at], *lines[signed:end]])
                at = end - 1
            elif greeting["formal"]:
                end = end_of_text(lines, at + 1)
                yield from pasted(lines[at:end])
                at = end - 1
        at += 1


def _signature(lines: Sequence[Line], at: int) -> tuple[int, str | None]:
    """The index behind the signature of the letter that goes on at `at`, with who signs; `at` where there is none."""
    for end in range(at, min(at + MAX_LINES, len(lines))):
        found = SIGNATURE.match(lines[end].text[:80])
        if found is None:
            continue
        if found["name"]:
            return end + 1, found["name"]
        name = NAME_ONLY.match(lines[end + 1].text[:80]) if end + 1 < len(lines) else None
        return (end + 2, name["name"]) if name else (end + 1, None)
    return at, None
