"""Verbs behind "and" or a comma that share the subject of the verb before them.

"I work at Acme and live in Rome" says two things of the speaker; "I love rock and roll" one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.language import wordlists
from service.language.facts import verbs

SPEAKER = r"(?:I|i|we|We)(?:['’](?:m|ve|d|ll|re))?(?![\w'’])|[Ii]m\b|[Ii]ve\b"
"""The speaker as a subject; a pattern."""
_FINITE = "|".join(verbs.finite())
STARTS_OPEN = re.compile(
    r"^\W*(?:(?:and|but|so|also|well)\s+)?(?:when(?:ever)?|if|since|because|while|after|before|as|although"
    r"|though|until|unless|once|even|given|now that|by the time"
    r"|ever since)\b(?![^,]*\b(?:told|said)\b)",
    re.IGNORECASE,
)
"""A subordinate clause, whose main clause is still to come: no statement by itself."""
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


def parts(piece: str) -> Iterator[tuple[int, int, str]]:
    """Yields the half-open spans of the statements in a piece, each with the subject to read in front of it: "I work at
    Acme and live in Rome" is cut before "live", which shares the "I"."""
    subject, begin = "", 0
    if not _subject(piece):
        yield 0, len(piece), ""
        return
    for match in _SAME_SUBJECT.finditer(piece):
        if match.start() >= begin and _goes_on(piece[begin : match.start()], match, cut=begin > 0):
            yield begin, match.start(), subject
            subject = _subject(piece)
            begin = match.start("adverbs") if match.group("adverbs") else match.start("verb")
    yield begin, len(piece), subject


_OPENS_WITH_I = re.compile(rf"^(?:[^.]{{0,40}}?[\s,]|\W*)(?:{SPEAKER})", re.IGNORECASE)
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
        return goes_on and not _governed(before) and not STARTS_OPEN.match(before)
    past = known is not None and (known.shape == "past" or word == "quit")
    if _governed(before) and not (past or word.endswith("n't") or word == "am"):
        return False
    if word in _WITH and not match.group().lstrip(" ,").startswith("but"):
        return after in _WITH[word].split()
    if (
        word in ("quit", "been")
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
