"""Which stretches of a message make one statement each?

"I'm Alice, I work at Acme and live in Rome, can you help?" has four: three statements and a question. A clause that
shares its subject with the one before says so. What is quoted, code, or a link is blanked out first, character by
character, so spans stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from service.language import wordlists
from service.language.facts import bullets, run_ons, verbs

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
_I = r"(?:I|i|we|We)(?:['’](?:m|ve|d|ll|re))?(?![\w'’])|[Ii]m\b|[Ii]ve\b"
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
_STARTS_OPEN = re.compile(
    r"^\W*(?:(?:and|but|so|also|well)\s+)?(?:when(?:ever)?|if|since|because|while|after|before|as|although"
    r"|though|until|unless|once|even|given|now that|by the time"
    r"|ever since)\b(?![^,]*\b(?:told|said)\b)",
    re.IGNORECASE,
)
_OWN_VERB = re.compile(
    rf"\b(?i:(?:my|our|the) {_GROUP}{_DO})"
    rf"|(?<!\w)(?:{_I})\s+\w|\b(?:[Ii][’'](?:m|ve|d|ll)|[Ii]m)\b|\b(?:is|are|was|were|has|have|had|does|do|did|am"
    rf"|will|lives?|works?)\b|\w(?:['’](?:s|re|ve|ll|d|m)|n['’]t)\b|\b(?:{_FINITE})\b|^\W*(?:[Ww]ait|[Nn]o|[Ss]orry|[Oo]ops"
    rf"|[Nn]ope|[Yy]es|[Yy]eah)\b.{{0,25}}$|^\W*(?:[Cc]all|[Uu]se|[Kk]eep|[Pp]lease"
    rf"|[Rr]emember|[Nn]ote|[Gg]ive|[Hh]elp|[Tt]ell|[Ss]how|[Ww]rite|[Mm]ake|[Ff]ind|[Ss]uggest|[Rr]ecommend"
    rf"|[Ee]xplain|[Pp]lan|[Bb]ook|[Ll]ist|[Cc]reate|[Ss]end|[Cc]heck|[Dd]on['’]t|[Aa]void|[Nn]ever|[Aa]lways)\b",
)
# "I work at Acme, live in Rome, and have a dog": before the last of a list there is only a comma
_LISTED = (
    r"live (?:in|at|near|on|with)|work (?:at|for|as|in|on|from|with)|study (?:at|in|law|medicine)"
    r"|(?:don['’]t|can['’]t|cannot|haven['’]t|didn['’]t) (?:know|have|want|need|like|eat|drink|drive|smoke|own|speak"
    r"|work"
    r"|live|go|do|sleep|cook|swim|watch|play|got|been)"
    r"|(?:have|own) (?:a|an|my|no|two|three|four|five)"
)
_SAME_SUBJECT = re.compile(
    rf"(?:(?P<comma>\s*,\s+)(?=(?:{_LISTED}|{_FINITE})\s)|(?:\s*,)?\s+(?:and|but|or|yet|and then|but then|then)\s+)"
    r"(?P<adverbs>(?:(?:also|now|then|currently|usually"
    r"|always|never|really|still|just|recently|sometimes|often|mostly"
    r"|even|only|finally|later|absolutely|definitely|am|have"
    r" been)\s+)*)(?P<verb>[a-z]+(?:n['’]t)?)\s+(?P<after>[$€£]?[\w'’-]+)"
)
# Verbs that are rarely nouns: "and live in Rome" goes on with the same subject, "and rain" does not.
_PLAIN = wordlists.words("""
    live have am don't can't didn't won't haven't was speak own want prefer enjoy hate teach write eat go do know
    believe think hope was will can need should would belong volunteer commute avoid read sing collect drive wear
    keep make take become grow spend try learn attend feel build bake take speak listen usually wasn't couldn't
    wouldn't doesn't hasn't isn't
""")
# These need the right word behind them: "and work at ...", but not "family and work".
_WITH = {
    "work": "at for as in on from with part full remotely mostly",
    "play": "the guitar piano violin drums bass tennis football soccer basketball chess games video in for a golf"
    " volleyball cello",
    "run": "a my every the marathons three two five on in",
    "study": "at in computer law medicine biology history math mathematics physics for economics",
    "love": "to my the a cooking hiking reading playing spicy all running dogs cats",
    "like": "to my the a",
    "use": "a the my it python react linux vim",
    "cook": "for every most dinner at",
    "drink": "a my only two coffee tea lots",
    "travel": "to a for every",
    "plan": "to on",
    "practice": "yoga every the daily",
    "practise": "yoga every the daily",
    "train": "for every",
    "dance": "in at every salsa",
    "sleep": "in at only about",
    "walk": "my the to every",
    "look": "after for forward",
    "care": "about for",
    "deploy": "with to on",
    "swim": "in on at every",
    "manage": "a the my",
    "lead": "a the",
}
_GOVERNED = re.compile(
    r"(?:\b(?:to|will|would|can|could|should|must|might|may|won['’]t|can['’]t|gonna|wanna)|['’](?:ll"
    r"|d))\s+(?:\w+ly\s+)?([a-z]+)"
)
# "cook and bake for my kids": what follows belongs to both
_BARE_VERB = re.compile(
    r"(?:^|\s)(?:[Ii]|[Ww]e)(?:['’]ve)? (?:\w+ly |always |often |never |also |mostly |both )?[a-z]+$"
)
_HABITUAL = re.compile(r"\b[Ii] (?:\w+ly |always |often |never |also )?(?!like|love|enjoy|hate|prefer)[a-z]+\b")
_PARTICLES = frozenset({"up", "down", "out", "off", "back", "around"})
_DETERMINERS = frozenset({"the", "a", "an", "my", "our", "his", "her", "their"})
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
            yield from _shared(piece, offset + start)


def is_question(text: str) -> bool:
    """Returns whether a sentence asks: by its mark, its first word, or its word order."""
    return (text.rstrip(" \"')”").endswith("?") and not _TAG.search(text)) or _INVERTED.match(text) is not None


def _to_questions(sentence: str) -> set[int]:
    return {match.start() for match in _TO_QUESTION.finditer(sentence)}


def _pieces(sentence: str, questions: set[int]) -> Iterator[tuple[int, int]]:
    """Cuts where another subject follows, unless what stands before is no statement by itself ("When I was ten, I")."""
    begin = 0
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
        if start < begin or not before.strip() or _STARTS_OPEN.match(before) or not stands:
            continue
        yield begin, start
        begin = end
    if sentence[begin:].strip():
        yield begin, len(sentence)


def _shared(piece: str, offset: int) -> Iterator[Clause]:
    """Cuts "I work at Acme and live in Rome" before "live", which shares the "I"."""
    subject, begin = "", 0
    if not _subject(piece):
        yield Clause(piece, offset, offset + len(piece))
        return
    for match in _SAME_SUBJECT.finditer(piece):
        if match.start() >= begin and _goes_on(piece[begin : match.start()], match, cut=begin > 0):
            yield Clause(piece[begin : match.start()], offset + begin, offset + match.start(), subject)
            subject = _subject(piece)
            begin = match.start("adverbs") if match.group("adverbs") else match.start("verb")
    yield Clause(piece[begin:], offset + begin, offset + len(piece), subject)


_OPENS_WITH_I = re.compile(rf"^(?:[^.]{{0,40}}?[\s,]|\W*)(?:{_I})", re.IGNORECASE)
_OPENS_WITHOUT = re.compile(
    r"^\W*(?:(?:just|recently|finally|also|only|already|so|yeah|well)\s+)*(?P<verb>[a-z]+)\s", re.IGNORECASE
)
_OPENS_WITH_OTHERS = re.compile(
    r"^\W*((?:my|our) (?:[\w-]+ ){0,2}?[\w-]+|he|she|they|who)(?=['’]s|\s+(?:is|was|has|had|will|\w+s|\w+ed|went|got"
    r"|moved)\b)",
    re.IGNORECASE,
)


def _subject(piece: str) -> str:
    """What the verbs of a piece share as their subject."""
    if _OPENS_WITH_I.match(piece):
        return "I"
    others = _OPENS_WITH_OTHERS.match(piece)
    if others:
        return others.group(1)
    bare = _OPENS_WITHOUT.match(piece)  # "just moved here, don't know anyone"
    known = verbs.form(bare["verb"].lower()) if bare else None
    return "I" if known and known.shape == "past" else ""


def _goes_on(before: str, match: re.Match[str], *, cut: bool) -> bool:
    """Whether the word behind "and" is a verb of the same subject."""
    word, after = match.group("verb").replace("’", "'"), match.group("after").lower()
    if _BARE_VERB.search(before):
        return False
    known = verbs.form(word)
    if match.group("comma"):
        listed = _LIST_VERB.match(match.string, match.start("verb")) is not None
        goes_on = listed or _in_step(before, match, cut=cut)
        return goes_on and not _governed(before) and not _STARTS_OPEN.match(before)
    past = known is not None and (known.shape == "past" or word == "quit")
    if _governed(before) and not (past or word.endswith("n't") or word == "am"):
        return False
    if word in _WITH and not match.group().lstrip(" ,").startswith("but"):
        return after in _WITH[word].split()
    if (
        word == "quit"
        or word in _WITH
        or word in _PLAIN
        or (match.group("adverbs") and known is not None and known.shape == "base")
    ):
        return True
    if known is not None and known.shape == "base" and after in _DETERMINERS:
        return True
    habitual = _HABITUAL.search(before)
    if known is not None and known.shape == "base" and habitual and (after in _PARTICLES or after[:1].isdigit()):
        return True
    if known and known.shape == "third" and re.search(r"\b(?:is|has)\b|\w['’]s\b", before):
        return True
    if known is None or known.shape not in ("past", "third"):
        return match.group("adverbs").strip().startswith(("am", "have been"))
    if _governed(before):
        return "used to" in before.lower()
    words = re.findall(r"[a-z]+", before.lower())
    told = [verbs.form(each) for each in words]
    if known.shape == "past" and re.search(r"\b(?:was|were)\b", before.lower()):
        last = verbs.form(words[-1])  # "was born and raised", but "was born in Lima and moved"
        return words[-1] != "born" and (last is None or last.shape not in ("past", "participle"))
    excluded = ("do", "be") if known.shape == "past" else ("do",)
    return any(each and each.shape == known.shape and each.lemma not in excluded for each in told)


def _in_step(before: str, match: re.Match[str], *, cut: bool) -> bool:
    """Whether behind a comma a verb stands in the tense of the one before: "was born in Asmara, grew up in Milan".

    `cut`: another such verb stood before.
    """
    word, after = match["verb"], match["after"]
    known = verbs.form(word)
    if known is None or not (after in _DETERMINERS | _PARTICLES or after[:1].isupper() or _PLACED.match(after)):
        return False
    told = {each.shape for each in map(verbs.form, re.findall(r"[a-z]+", before.lower())) if each}
    if known.shape == "third":
        return "third" in told or re.search(r"\b(?:is|has)\b", before) is not None
    has_object = after in _DETERMINERS or after[:1].isupper()  # "a car, made in Italy" is made
    return "past" in told and (cut or has_object or not verbs.is_participle(word))


_PLACED = re.compile(r"(?:in|at|on|to|for|from|with|as|my|[$€£]?\d)")
_LIST_VERB = re.compile(_LISTED)


def _governed(before: str) -> bool:
    """Whether an infinitive stands there, which the next verb may go on with: "I want to live and work ..."."""
    words = [match.group(1) for match in _GOVERNED.finditer(before)]
    return any(known is not None and known.shape == "base" for known in map(verbs.form, words))
