"""Cuts a message into stretches that make one statement each.

"I'm Alice, I work at Acme and live in Rome, can you help?" has four: three statements and a question. A clause that
shares its subject with the one before says so. What is quoted, code, or a link is blanked out first, character by
character, so spans stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from service.language.facts import bullets, coordination, pronouns, run_ons, verbs

MAX_CHARS = 20_000  # of one message; what people say of themselves stands at the head of what they paste
MAX_SENTENCES = 200
MAX_SENTENCE_CHARS = 600  # nobody speaks longer without a stop; what pasted text goes on with is left out


@dataclass(frozen=True, slots=True)
class Clause:
    """A half-open span of the message. `subject` is what to read in front of it, "" where it has its own."""

    text: str
    start: int
    end: int
    subject: str = ""
    question: bool = False
    sentence: str = ""


_QUIET = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]+`|https?://\S+|^\s*>.*$|“[^”\n]{1,300}”|(?<![\w])\"[^\"\n]{1,300}\"(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_SPOKEN = re.compile(r"\b(?:i|i'm|my|me|we|you|ignore|delete|forget)\b", re.IGNORECASE)
_I = coordination.SPEAKER
_FINITE = "|".join(verbs.finite())
_POSSESSED = (
    rf"(?:my|our) (?:[\w-]+ ){{1,4}}?(?:is|are|was|were|has|have|had|will|does|doesn['’]t|isn['’]t|can['’]t"
    rf"|{_FINITE}|\w+ed)\b|(?:my|our) (?:[\w-]+ )?[\w-]+['’]s (?:\w+ing|an?|the|not|in|at|on|from|always|never|also)\b"
)
_GROUP = r"(?:[\w-]+ ){0,2}?(?:\w+s|children|people) (?:(?:all|both|also|never|always) )?"
_DO = rf"(?:{'|'.join(verbs.bases())})\b"
_MANY = rf"(?:my|our) {_GROUP}{_DO}"
_NAMED = rf"the (?:[\w-]+ ){{1,3}}?(?:is|are|was|were|has|have|will|{_FINITE})\b"
_OTHERS = r"(?:he|she|they|it)(?:['’](?:s|re|ve|ll|d))?\b"
_ASKING = (
    r"(?:(?:so|and|but|then|also|now) )?(?:what(?:['’]s)?|where|who|how|which|why|when should|can you|could you"
    r"|can i|could i|do you|would you|will you"
    r"|should i|is there|are there|is it|any \w+|please|do i"
    r"|got any|have you|am i)\b"
)
_NEW_SUBJECT = re.compile(
    rf"(?:\s*[,;]\s*|\s+)(?:and|but|so|plus|then|yet|and (?:so|then|now|also|yet|because of that)|but (?:now"
    rf"|then|also)|though|although|while|whereas)\s*,?\s+"
    rf"(?=(?:also |now |then |currently |actually |really |recently |today |lately |sometimes |these days,? "
    rf"|nowadays,? |right now,? |at the moment,? |last (?:week|month|year),? |in \d{{4}},? )*(?:{_I}"
    rf"|{_POSSESSED}|{_MANY}|{_NAMED}|{_OTHERS}|[a-z]+ (?:is|are) (?:my|our)\b|(?:most|many|some|all) {_GROUP}{_DO}"
    rf"|(?:people|everyone|everybody|friends) (?:calls?|says?)\b))"
    rf"|(?:\s*,\s*|\s+)but\s+(?=(?:since|when|after|now that|until|before|because) (?:I|we|my|our)\b)"
    rf"|\s*,\s+(?=(?:also |now |currently |actually |recently )*(?:{_I}|{_POSSESSED}|(?:he|she|they"
    rf"|it)(?:['’](?:s|re|ve|ll|d))?\b))"
    rf"|\s*[;]\s*|\s+[—–-]+\s+|\s*—\s*|\s*\.\.\.+\s*|\s*…\s*|\s+\(|\)\s*,?\s*"
)
_TO_QUESTION = re.compile(rf"\s*[,;]\s*(?={_ASKING})|\s+(?:so|and|but)\s+(?={_ASKING})", re.IGNORECASE)
_OWN_VERB = re.compile(
    rf"\b(?i:(?:my|our|the) {_GROUP}{_DO})"
    rf"|(?<!\w)(?:{_I})\s+\w|\b(?:[Ii][’'](?:m|ve|d|ll)|[Ii]m)\b|\b(?:is|are|was|were|has|have|had|does|do|did|am"
    rf"|will|lives?|works?)\b|\w(?:['’](?:s|re|ve|ll|d|m)|n['’]t)\b|\b(?:{_FINITE})\b|^\W*(?:[Bb]een"
    rf"|[Nn]ot) \w+ing\b|^\W*(?:[Ww]ait|[Nn]o|[Ss]orry|[Oo]ops"
    rf"|[Nn]ope|[Yy]es|[Yy]eah)\b.{{0,25}}$|^\W*(?:[Cc]all|[Uu]se|[Kk]eep|[Pp]lease"
    rf"|[Rr]emember|[Nn]ote|[Gg]ive|[Hh]elp|[Tt]ell|[Ss]how|[Ww]rite|[Mm]ake|[Ff]ind|[Ss]uggest|[Rr]ecommend"
    rf"|[Ee]xplain|[Pp]lan|[Bb]ook|[Ll]ist|[Cc]reate|[Ss]end|[Cc]heck|[Dd]on['’]t|[Aa]void|[Nn]ever|[Aa]lways)\b",
)
_TAG = re.compile(
    r",?\s*\b(?:right|correct|remember|you know|isn['’]t it|don['’]t (?:i|you)|didn['’]t i|aren['’]t i|haven['’]t"
    r" i|ok|okay)\s*\?+\s*$",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    r"^\W*(?:(?:so|and|but|hey|hi|ok|okay|well|also|hello|oh|please|then|btw|by the way|actually)[\s,]+)*"
    r"(?:what(?! I (?:\w+ )?(?:love|like|enjoy|hate|dislike|need|want|miss|prefer|fear)\b[^?]*$)"
    r"|whats|who|whom|whose|where|how|why|which|when (?:is|are|was|will|do|does|did|should|can)"
    r"|(?:do|does|did|is|are|was|were|am|can|could|would|will|shall|should|may|have|has|had|isn['’]t|aren['’]t"
    r"|don['’]t|doesn['’]t|didn['’]t|can['’]t|couldn['’]t|won['’]t|wouldn['’]t)"
    r"\s+(?:i|you|we|they|he|she|it|there|this|that|the|my|your|these|those|anyone|someone|an?)\b|any (?:idea"
    r"|tips|suggestions?|recommendations?|advice|thoughts))\b",
    re.IGNORECASE,
)


_WHO = re.compile(rf"who(?:['’]s|\s+(?:is|has|was|had|also|just|{_FINITE}))\b")


def quiet(text: str) -> str:
    """Returns the text, cut to MAX_CHARS, with quotations, code and links replaced by blanks of the same length."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if found[0] in '"“' and not _SPOKEN.search(found):
            return found
        return re.sub(r"[^\n]", " ", found)

    return _QUIET.sub(blank, text[:MAX_CHARS])


def of_message(text: str) -> Iterator[Clause]:
    """Yields the clauses of a message in order; `text` must have passed `quiet`."""
    for start, whole, heading in islice(bullets.lines(text), MAX_SENTENCES):
        end = min(whole, start + MAX_SENTENCE_CHARS)
        sentence = text[start:end]
        if heading:
            yield Clause(sentence, start, end, heading, sentence=sentence)
            continue
        for clause in of_sentence(sentence, start):
            yield replace(clause, sentence=sentence)


def of_sentence(sentence: str, offset: int = 0) -> Iterator[Clause]:
    """Yields the clauses of one sentence; `offset` is where the sentence begins in its message."""
    asks = sentence.rstrip(" \"')”").endswith("?") and not _TAG.search(sentence)
    bounds = list(_pieces(sentence, _to_questions(sentence)))
    for number, (start, end) in enumerate(bounds):
        piece = sentence[start:end]
        which = number > 0 and _WHO.match(piece) is not None  # "my niece, who's nine"
        question = (_INVERTED.match(piece) is not None and not which) or (asks and number == len(bounds) - 1)
        if question:
            yield Clause(piece, offset + start, offset + end, question=True)
        else:
            for begin, stop, subject in coordination.parts(piece):
                at = offset + start
                yield Clause(piece[begin:stop], at + begin, at + stop, subject)


def is_question(text: str) -> bool:
    """Returns whether a sentence asks: by its mark, its first word, or its word order."""
    return (text.rstrip(" \"')”").endswith("?") and not _TAG.search(text)) or _INVERTED.match(text) is not None


def _to_questions(sentence: str) -> set[int]:
    return {match.start() for match in _TO_QUESTION.finditer(sentence)}


def _pieces(sentence: str, questions: set[int]) -> Iterator[tuple[int, int]]:
    """Cuts where another subject follows, unless what stands before is no statement by itself ("When I was ten, I")."""
    begin = 0
    asks = sentence.rstrip(" \"')”").endswith("?")
    ran_on = set(run_ons.starts(sentence))
    cuts = sorted(
        [
            *((m.start(), m.end(), False) for m in _NEW_SUBJECT.finditer(sentence)),
            *((m.start(), m.end(), True) for m in _TO_QUESTION.finditer(sentence) if m.start() in questions),
            *((start, end, False) for start, end in ran_on),
        ]
    )
    for start, end, _asks in cuts:
        before = sentence[begin:start]
        ran = begin > 0 and (start, end) in ran_on  # "... been doing it 12 years love it"
        stands = _OWN_VERB.search(before) or ran or sentence[start:].lstrip().startswith(")")
        if _WHO.match(sentence[end:]) and not (asks or _ends_in_company(before)):
            continue
        if start < begin or not before.strip() or coordination.STARTS_OPEN.match(before) or not stands:
            continue
        yield begin, start
        begin = end
    if sentence[begin:].strip():
        yield begin, len(sentence)


def _ends_in_company(before: str) -> bool:
    """Whether the last words name a relative or an animal, of whom "who" then tells."""
    about = pronouns.spoken_of(before)
    return about is not None and before.rstrip(" ,").endswith(about.phrase.removeprefix("my "))
