"""Synonyms and opposites.

Small hand-written tables of what people say of themselves and of their systems; opposites only where one excludes the
other for the same subject (tea and coffee, black and white do not). Both work on stems, so a row covers
all inflections of its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from service.language.lexemes import lexemes


def _stem(word: str) -> str:
    return lexemes(word)[0]


_SYNONYMS = """
    big large huge; small little tiny; begin start commence; end finish conclude; buy purchase; child kid; movie film;
    car automobile; doctor physician; quick fast rapid; glad happy; reply respond answer; help assist; fix repair;
    road street; mom mother mum mam mummy; dad father daddy; grandma grandmother nan gran granny; grandpa grandfather
    grandad; photo picture; choose select pick; show display; error failure; job work; enjoy love like adore; hate
    dislike despise loathe detest; favorite favourite; color colour; talk speak; need require; use utilize utilise;
    near close; house home; company firm; meeting mtg; database db; configuration config; repository repo; postgres
    postgresql; kubernetes k8s; javascript js; typescript ts; application app; documentation docs; tv television;
    phone telephone mobile cellphone; bike bicycle; plane airplane; sick ill; sad unhappy; afraid scared terrified
    frightened; cilantro coriander; vacation holiday; sofa couch; flat apartment; maths math; eggplant aubergine;
    zucchini courgette; vet veterinarian; lawyer attorney; university uni; run jog; boss manager; coworker colleague;
    spouse partner; reside live dwell; mail email; drop fall; increase rise; pup puppy; girlfriend gf; boyfriend bf;
    birthday bday; terrible awful; gray grey; permit allow let; hurt injure wound; photo picture image; elderly old;
    lady woman women; man men; blast explosion; quake earthquake; arrest detain; dead die died kill; strong powerful;
    program programme; uk britain; smoke smoker; allergic allergy allergies; purse bag handbag; chief chair head; shop
    store; street road; sidewalk pavement; rock stone; cook prepare; kid children; hit strike
"""
IRREGULAR_PASTS = """
    go went gone; run ran; buy bought; eat ate eaten; drink drank; drive drove driven; ride rode ridden; swim swam; sing
    sang; speak spoke spoken; write wrote written; win won; lose lost; make made; get got; take took taken; give gave
    given;
    sell sold; build built; meet met; leave left; find found; teach taught; think thought; feel felt; keep kept; hold
    held;
    pay paid; send sent; begin began begun; come came; become became; see saw seen; say said; tell told; know knew
    known;
    grow grew grown; fly flew flown; sleep slept; wake woke; wear wore worn; choose chose chosen; break broke broken;
    forget forgot; lead led; spend spent; fall fell; catch caught; bring brought; sit sat; stand stood; understand
    understood
"""
"""Verbs with the pasts that no stemmer knows."""
_OPPOSITES = """
    love like enjoy adore prefer / hate dislike avoid despise loathe detest; enable / disable; allow permit / forbid
    ban block deny; accept approve agree / reject decline refuse disagree; increase rise raise grow / decrease drop
    fall reduce shrink; start begin open / stop end close; win / lose; hot warm / cold cool; fast quick / slow; old /
    new young; early / late; cheap / expensive; good great / bad terrible; happy / sad; high / low; include / exclude;
    more / less; full / empty; on / off; in / out; before / after; with / without; always / never; public / private;
    sync / async; synchronous / asynchronous; married / divorced single; alive / dead; pass / fail; present / absent;
    safe / dangerous; strong / weak; hard / easy soft; vegetarian vegan / meat carnivore; remote / onsite; hire /
    fire; upgrade / downgrade; succeed / fail; true / false; arrive / depart leave; over / under; above / below; wet /
    dry; clean / dirty; loud / quiet; healthy / sick; possible / impossible; able / unable; available / unavailable;
    stable / unstable
"""

_LEVEL = (
    (re.compile(r"\b(?:two|2) times\b", re.IGNORECASE), "twice"),
    (re.compile(r"\b(?:one|1) time (?=an?\b|per\b)", re.IGNORECASE), "once "),
    (re.compile(r"\b(?:can't|cannot|can not) (?:stand|bear|tolerate|abide|stomach)\b", re.IGNORECASE), "hates"),
    (re.compile(r"\bwould (?:rather|sooner) (?:get|have|be|use|take|do|drink|eat)?\b", re.IGNORECASE), "prefers"),
    (
        re.compile(r"\b(?:is|are) (?:fond of|keen on|crazy about|into|a (?:big |huge )?fan of)\b", re.IGNORECASE),
        "likes",
    ),
    (re.compile(r"\bon (?:my|his|her|their) own\b|\bby (?:my|him|her|them)sel(?:f|ves)\b", re.IGNORECASE), "alone"),
    (re.compile(r"\b(?:does not|doesn't|do not|don't) know how to\b", re.IGNORECASE), "cannot"),
    (re.compile(r"\bis expecting (?=twins|triplets|a (?:baby|child|boy|girl))", re.IGNORECASE), "is pregnant with "),
    (re.compile(r"\bonce an? (?=(?:day|week|month|year)\b)", re.IGNORECASE), "every "),
    (
        re.compile(r"\bgoes to (\w+) by (?=(?:bus|train|tram|car|bike|metro|bicycle)\b)", re.IGNORECASE),
        r"takes to \1 the ",
    ),
    (re.compile(r"\bcycles to (\w+)|\bcommutes by bike\b", re.IGNORECASE), "takes the bike to work"),
    (re.compile(r"\bowns\b", re.IGNORECASE), "has"),
    (re.compile(r"\b(?:does not|doesn't|do not|don't) like\b", re.IGNORECASE), "dislikes"),
    (re.compile(r"\bcalled (?=[A-Z])"), "named "),
    (re.compile(r"\b(?:NYC|New York City)\b"), "New York"),
    (re.compile(r"\b(?:U\.S\.A?\.?|USA)(?=\W|$)"), "US"),
    (re.compile(r"\b(?:U\.K\.|(?:Great )?Britain)(?=\W|$)"), "UK"),
    (re.compile(r"\bU\.N\."), "UN"),
    (re.compile(r"\b(\d+(?:\.\d+)?) ?(?:bn|billion|b)\b", re.IGNORECASE), r"\1 billion"),
    (re.compile(r"\b(?:wakes?|gets?|is) up (?:at|around)\b", re.IGNORECASE), "rises at"),
)

_CANON = {
    _stem(word): _stem(group.split()[0]) for group in _SYNONYMS.split(";") for word in group.split() if lexemes(word)
}
_CANON |= {
    _stem(word): _CANON.get(_stem(group.split()[0]), _stem(group.split()[0]))
    for group in IRREGULAR_PASTS.split(";")
    for word in group.split()[1:]
    if lexemes(word)
}
PASTS = frozenset(word for group in IRREGULAR_PASTS.split(";") for word in group.split()[1:])


def _pairs() -> Iterable[frozenset[str]]:
    for row in _OPPOSITES.split(";"):
        left, right = ([_stem(word) for word in side.split() if lexemes(word)] for side in row.split("/"))
        yield from (frozenset((one, other)) for one in left for other in right)


_OPPOSED = frozenset(_pairs())


def levelled(text: str) -> str:
    """Returns the text with phrases of several words in the words that say the same: "two times", "can't stand"."""
    for phrase, word in _LEVEL:
        text = phrase.sub(word, text)
    return text


def canonical(stems: Iterable[str]) -> tuple[str, ...]:
    """Returns the stems with each synonym replaced by the first of its group, order kept."""
    return tuple(_CANON.get(stem, stem) for stem in stems)


def opposed(a: Sequence[str], b: Sequence[str]) -> bool:
    """Returns whether a stem only in `a` is the opposite of one only in `b`."""
    only_a, only_b = set(a) - set(b), set(b) - set(a)
    return any(frozenset((one, other)) in _OPPOSED for one in only_a for other in only_b)
