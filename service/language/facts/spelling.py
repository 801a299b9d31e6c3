"""Writes out messages that were typed on a phone.

"im 34 n hes 7, my moms bday is may 3, i luv cookin": left-out apostrophes and chat spellings are written out, so that
no other rule need know them. Offsets of the mended text lead back to the message as it was written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from service.language import wordlists
from service.language.facts import chat_words, tongue, typos, verbs, wordbook


@dataclass(frozen=True, slots=True)
class Mended:
    """A text and how it got longer or shorter: behind `ends[n]` in it, the original lies `shifts[n]` further."""

    text: str
    ends: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()

    def original(self, offset: int) -> int:
        """Returns the offset in the text as it was written."""
        at = bisect_right(self.ends, offset) - 1
        return offset + (self.shifts[at] if at >= 0 else 0)


_MISSING = wordlists.words("raisin cousin cabin origin margin plugin begin admin")
_ONE = "|".join(sorted((re.escape(kin) for kin in wordbook.SINGLE_KIN), key=len, reverse=True))
_FOLK = "mum|mom|mommy|dad|daddy|grandma|grandpa|granny|grandad|nan|wife|husband|hubby|boyfriend|girlfriend|bf|gf"
_BEFORE_FOLK = "|".join(
    rf"(?<=\b{word} )"
    for word in ("with", "to", "from", "for", "like", "when", "because", "if", "that", "me", "visit", "call", "tell")
)
# Laughter, fillers and faces stand where others put a stop.
_FACES = r"\b(?:lol|lmao|lmfao|rofl|haha+|hehe|ngl|tbf|smh|omg|ikr|xd)\b"
_PICTURES = r"!|[:;]-?[)(DP](?!\w)|<3|[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d]"
_TYPED = re.compile(
    rf"(?P<kin>\b(?:my|our) (?:{_ONE}))(?P<own>s)(?= [a-z])"
    rf"|(?P<folk>(?:^|(?<=[.!?,;:\n] )|(?<=\band )|(?<=\bbut )|(?<=\bso )|(?<=\bn )"
    rf"|{_BEFORE_FOLK})(?:{_FOLK}))(?=(?:['’]s)? (?!and\b)[a-z])"
    r"|(?P<theirs>\b(?:my|our) (?:son|daughter|sister|brother|niece|nephew|dog|cat|kid|bday|birthday))s"
    r"(?= (?:\w+ing|an?|the|\d+|not|allergic|obsessed|called|named|due|on)\b)"
    r"|(?P<named>\b(?:my|her|his|our|their) (?:first |last |full )?name)s(?= [a-z])"
    r"|(?P<its>\bits)(?= (?:my|our|a|an|the|not|so|just|only|been|called|named|about|me|[$€£]?\d+)\b)"
    r"|(?P<had>\bid)(?= (?:like|love|rather|prefer|say|never|want|be)\b)"
    r"|(?P<will>(?<![\w'’] )\bill)(?= (?:be|have|go|take|start|get|need|try|do|see|probably|never|let)\b)"
    rf"|(?P<near>{chat_words.NEAR})"
    r"|(?P<w>(?<=\w )w/?)(?= (?:my|a|an|the|our|\w+))"
    r"|(?P<rn>(?<![aA]n )\brn)(?=\s*(?:$|[.,!?]))"
    r"|(?P<filler>(?<=[\w']) (?:btw|tbh|lol|lmao|anyway|anyways))(?= (?:so|and|but|my|i|im|we|he|she)\b)"
    r"|(?P<aside> (?:btw|tbh)(?=,))"
    rf"|(?P<stop>(?<=\w)\s*(?:{_PICTURES})+)(?=\s+(?-i:[a-z\d]|I\b))"
    rf"|(?P<laugh>(?<=\w)\s*(?:{_FACES})+)(?=\s+(?-i:[a-z\d]|I\b))"
    r"|(?P<were>(?:^|(?<=[.!?] ))were)(?= \w{2,}ing\b)"
    r"|(?P<ing>\b[a-z]{2,}in)['’]?(?![\w'’])"
    r"|(?P<count>(?<=\d)(?:yrs?|wks|hrs|mths|mins)\b)"
    r"|(?P<denies>\b(?:he|she|it) don['’]?t\b)"
    r"|(?P<word>\b[a-z]{1,20}\b)(?!['’](?!s\b)\w|[@.]\w|[-/])",
    re.IGNORECASE | re.MULTILINE,
)
_SHORTHAND = {
    "its": "it's", "had": "I'd", "will": "I'll", "w": "with", "rn": "right now", "laugh": ",", "stop": ";",
    "filler": ",", "were": "we're",
}  # fmt: skip
_LOUD = re.compile(r"(?:^|(?<=[.!?]))[^a-z\n.!?]*\b(?:I|MY|WE)\b[^a-z\n.!?]*", re.MULTILINE)
_LOUD_LETTERS = 8


def mend(text: str) -> Mended:
    """Returns the text with chat spellings and slips of the finger written out."""
    text = _LOUD.sub(_lowered, text)
    english = tongue.is_english(text)
    pieces: list[str] = []
    ends: list[int] = []
    shifts: list[int] = []
    at, length = 0, 0
    for match in _TYPED.finditer(text):
        instead = _instead(match, english=english)
        if instead is None:
            continue
        piece = text[at : match.start()] + instead
        pieces.append(piece)
        at, length = match.end(), length + len(piece)
        ends.append(length)
        shifts.append(at - length)
    return Mended("".join([*pieces, text[at:]]), tuple(ends), tuple(shifts))


def _lowered(match: re.Match[str]) -> str:
    shouted = match.group()
    return shouted.lower() if sum(map(str.isalpha, shouted)) >= _LOUD_LETTERS else shouted


def _instead(match: re.Match[str], *, english: bool) -> str | None:
    written = match.group()
    if match["kin"]:
        return f"{match['kin']}'s"
    if match["theirs"]:
        return f"{match['theirs'].replace('bday', 'birthday')}'s"
    if match["folk"]:
        return f"my {chat_words.WORDS.get(written.lower(), written.lower())}"
    if match["named"]:
        return f"{match['named']} is"
    if match["ing"]:
        whole = verbs.form(f"{match['ing'].lower()}g")
        return f"{match['ing']}g" if whole and whole.shape == "ing" and match["ing"].lower() not in _MISSING else None
    written_out = next((instead for name, instead in _SHORTHAND.items() if match[name]), None)
    if written_out:
        return written_out
    if match["near"]:
        return chat_words.full(match.string, *match.span())
    if match["aside"]:
        return ""
    if match["count"]:
        return f" {chat_words.WORDS[written.lower()]}"
    if match["denies"]:
        return f"{written.split()[0]} doesn't"
    known = chat_words.WORDS.get(written.lower()) or (typos.meant(written) if english and written.islower() else None)
    if known is None or (written.isupper() and len(written) > 1):
        return None
    return known[0].upper() + known[1:] if written[0].isupper() else known
