"""Subject, verb and complement of a sentence, and whether a newer value ends an older one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.language import wordlists
from service.language.lexemes import lexemes
from service.language.opposites import PASTS

_SPEAKER = frozenset({"user", "i", "i'm", "i've", "i'd", "client", "we", "we're", "we've", "my", "our"})
_NO_SUBJECT = _SPEAKER | wordlists.words("""
    no not never nobody someone somebody anyone anybody everyone everybody now currently today recently lately
    usually often always also still again really actually since generally normally sometimes typically please just
    longer finally soon probably maybe both all even ever yet officially happily newly permanently
    temporarily eventually simply truly definitely almost nearly exclusively only much so very too up
""")
_WORD = re.compile(r"[^\W_](?:[^\W_]|[-.'’](?=[^\W_]))*")

AUXILIARIES = wordlists.words("""
    is are was were am be been has have had does do did will would can could should may might must isn't aren't
    wasn't weren't hasn't haven't doesn't don't didn't won't can't cannot shouldn't couldn't wouldn't i'm i've
""")
_BE = frozenset({"is", "are", "was", "were", "isn't", "aren't", "wasn't", "weren't"})
_PREPOSITIONS = frozenset({"at", "in", "on", "for", "of", "from", "with"})
_DETERMINERS = wordlists.words("a an the my your his her its our their this that")
_VERBS = frozenset(
    stem
    for word in wordlists.words("""
        accept add adopt agree allow answer arrive ask attend avoid bake become begin believe belong book break
        bring build buy call cancel care carry change check choose clean climb close collect come commute complete
        configure contain cook cost crash create cut dance decide deliver deploy describe develop die discover
        dislike drink drive drop earn eat enable end enjoy enter exercise expect explain fail fall feel fight fill
        find finish fix fly follow forget get give go graduate grow handle hate have hear help hike hire hold hope
        host hurt invite join jump keep kill know lack laugh launch lead learn leave lie like listen live look lose
        love maintain make manage marry mean meet migrate miss move need offer open order own paint pay perform plan
        play practice prefer prepare produce provide publish pull push put quit raise reach read realize receive
        recommend refuse rely remember remove rent replace report represent require reside return review ride rise
        run save say see seem sell send serve set share ship show sing sit sleep smoke speak spend stand start stay
        stop store struggle study suffer suggest support swim switch take talk teach tell think throw travel treat
        try turn understand update upgrade use visit volunteer wait wake walk want wash watch wear went win work
        worry write adore detest opt chose bought met saw spoke took drove wrote gave told thought felt left lost
        made goes going consider call name rank rate register found relocate transfer return transition
        recover hire ride wear retire resign commute enroll coach head chair owe charge expire renew weigh measure
        contain
        host donate save allow limit lease purchase adopt identify belong vote support date upgrade kept held paid
        sold sent spent sang swam ran ate drank came became began lay fell flew grew knew rode
        sat slept stood taught threw understood woke wore won
    """)
    for stem in lexemes(word)
)
# What one can have several of: a further value joins the earlier ones.
_PAST = wordlists.words("""
    went ran met had bought saw spoke took drove wrote gave told made paid sold sent spent sang swam ate drank came
    fell flew rode won lost found did was were got said
""")


@dataclass(frozen=True, slots=True)
class AttributeClause:
    """A first, rough parse. `subject`: stems before the verb, without articles and without words for the speaker;
    `owners`: those of them that end in 's; `verb`: its stem, "" when none is recognised;
    `past`: an event told; `at`: the character where the verb begins."""

    subject: tuple[str, ...]
    owners: frozenset[str]
    verb: str
    past: bool
    at: int


def clause(text: str) -> AttributeClause:
    """Returns the subject and the verb of the first sentence part; a text that opens with a verb speaks of the user.

    "There is no man" and "nobody" speak of the same as "a man" and "somebody": denial is not part of the subject.
    """
    found = list(_WORD.finditer(text))
    words = [match.group().casefold().replace("’", "'") for match in found]
    if words[:1] == ["there"] and words[1:2] and words[1] in AUXILIARIES:
        found, words = found[2:], words[2:]
    subject: list[str] = []
    owners: set[str] = set()
    for match, before, word, after in zip(found, ["", *words], words, [*words[1:], ""], strict=False):
        stems = lexemes(word)
        if _is_verb(before, word, after):
            verb = "be" if word in AUXILIARIES or not stems else stems[0]
            past = word in _PAST or word in PASTS or word.endswith("ed")
            return AttributeClause(tuple(subject), frozenset(owners), verb, past, match.start())
        if word.removesuffix("'s") not in _NO_SUBJECT:
            subject += stems
            owners.update(stems if word.endswith("'s") else ())
    return AttributeClause(tuple(subject), frozenset(owners), "", past=False, at=len(text))


def _is_verb(before: str, word: str, after: str) -> bool:
    if word in AUXILIARIES or word in ("get", "gets", "got") or (word in PASTS and before):
        return True
    if before.endswith(("'s", "s'")):
        return False
    # "the project lead is", "her plan works", "the laptop at work": what looks like a verb there is a noun
    if before in _DETERMINERS or before in _PREPOSITIONS or after in _BE:
        return False
    stems = lexemes(word)
    return (bool(stems) and stems[0] in _VERBS) or (before != "" and word.endswith(("ing", "ed")))


def is_verb(word: str) -> bool:
    """Whether a word is one of the common verbs, or ends like the past of one."""
    stems = lexemes(word)
    return word in _PAST or (bool(stems) and (stems[0] in _VERBS or word.endswith("ed")))


# An attribute that has one value at a time. A group in the pattern names what it is an attribute of.
_SINGLE: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"\b(?:{pattern})", re.IGNORECASE))
    for name, pattern in (
        ("employer", r"(?:works?|working) (?:for|at)\b|employed (?:by|at)|joined\b|(?:new )?job (?:at|with)|hired by"),
        ("occupation", r"works? as\b|working as\b|occupation is|job title is|profession is"),
        ("home", r"lives? (?:in|at)\b|living in|moved to|relocated to|is based in|resid(?:es?|ing) in|home is in"),
        ("name", r"name is\b|name's\b|is named\b|goes by\b"),
        ("age", r"\d+ years old|turned \d+|age is"),
        ("birthday", r"birthday is|was born (?:on|in)"),
        ("diet", r"vegetarian|vegan|pescatarian|eat(?:s|ing)? meat|omnivore"),
        ("marriage", r"(?:is|got|am|'m) (?:now )?(?:single|married|divorced|engaged|widowed|separated)"),
        ("school", r"studies at|studying at|attends|enrolled (?:at|in)"),
        ("contact", r"(phone|e-?mail|address|number)(?: number| address)? is"),
        ("favourite", r"favou?rite (\w+)"),
        ("main", r"(?:primary|main|default|current|preferred) (\w+)"),
        ("owner", r"(?:is )?(?:led|owned|managed|maintained|run) by"),
        ("version", r"(?:is )?(?:running|runs) (?:on )?version|version is|version of (\w+)"),
    )
)
