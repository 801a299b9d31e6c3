"""Pronouns that hang: whether a sentence points to something that it does not name.

The rule knows nouns only by their form: a name, a word behind a determiner, or a topic word. It never says what a
pronoun means; whoever finds one hanging quotes the sentence before it as well.
"""

from __future__ import annotations

import re

from service.language import wordlists
from service.language.common_words import FUNCTION_WORDS
from service.language.talk.words import EMPTY

PRONOUNS = wordlists.words("such it its they them their theirs he him his she her hers this that these those there")
PERSONAL = wordlists.words("they them their theirs he him his she her hers its")
DETERMINERS = wordlists.words(
    "a an the my your our his her its their this these those some any every each no another one two"
)
PREPOSITIONS = wordlists.words("about at by for from in into like of on with to near after before")
NOUN_IN_FRONT = DETERMINERS | PREPOSITIONS
EXPLETIVE = re.compile(
    r"\bit(?:'s| is| was| has been| will be|'ll be| would be|'d be) (?:\w+ ){0,3}?(?:to|that|how|when|what|if|time)\b"
    r"|\bit(?:'s| is| was| has been| will be| gets| got) (?:so |very |really |too |still )?(?:rain|snow|cold|hot"
    r"|sunny|late"
    r"|early|dark|windy)\w*"
    r"|\bit (?:rain|snow)(?:s|ed)\b|^\W*they say\b"
    r"|\bit (?:take|took)s? \b|\bthere(?:'s|'re| is| are| was| were| will| has| have"
    r"| had| might| may)\b"
    r"|\b(?:so|such|think|know|believe|hope|said|say|says|sure|happy|glad|means?|meant|realized?|feel|felt|is|was"
    r"|all|now|except|given|like|how|learned|learnt|told|heard|found|(?<=\w)ly) that(?= (?:i|we|my|our|he|she|it"
    r"|they|the|a|you|people|everyone)\b)"
    r"|\b(?:this|these|that|those) (?:year|month|week|weekend|morning|evening|afternoon|time|summer|winter|spring"
    r"|autumn"
    r"|fall|day|days|way)\b"
    r"|\b(?:out|up|back|here|over|right|hi|hey|hello|in|get|go|been) there\b",
    re.IGNORECASE,
)
"""What is spelt like a pronoun and means nothing: "it rains", "there is", the conjunction "that"."""

CONTINUES = re.compile(
    r"^\W*(?:now\b|(?:I|we|he|she|it|they)(?:'m| am|'re| are|'s| is) now\b"
    r"|(?:makes?|made|means|meant|sounds|looks|feels|felt|seems|turns|helps|shows|proves|keeps|is|was|has|had|took)\b)|"
    r"^\W*(?:(?:and|but|so|or|because|'?cause|then|also|plus|which|who|not|even|especially|such|same|both|either"
    r"|neither|instead"
    r"|otherwise|therefore|that's why|that way|afterwards|besides)\b|no,|yes,)",
    re.IGNORECASE,
)
FRAGMENT = re.compile(
    r"\W*(?:for|with|from|in|at|to|on|by|about|near|since|until|because|only|half|every|\d)\b", re.IGNORECASE
)
"""How an answer begins that is no sentence."""

MAX_ANNOUNCEMENT = 4
NOW_LAST = re.compile(r"\bnow\W*$", re.IGNORECASE)
VERBAL = ("ed", "ing", "ly")
MARKS = ".,;:!?–—-"
BORDERS = wordlists.words("""
    and but or so because 'cause cause when while since as if which who where though although until after before that
""")
TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d[\w.:]*|[.,;:!?–—-]")


def hangs(sentence: str) -> bool:
    """Whether a pronoun of the sentence has no noun before it that it could mean: anywhere in the sentence for a person
    or an owner, in an earlier clause for a thing."""
    text = EXPLETIVE.sub(" ", sentence.replace("’", "'"))
    tokens = [".", *TOKEN.findall(text), "."]
    noun = thing = False
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        stem = token.lower().partition("'")[0]
        standing = stem in ("one", "ones") and after in MARKS and before.lower() not in DETERMINERS
        joining = stem == "that" and after not in MARKS and "'" not in token and before not in MARKS
        if (stem in PRONOUNS or standing) and not joining and not (noun if stem in PERSONAL else thing):
            return True
        if token.lower() in BORDERS or token in MARKS:
            thing = thing or noun
        elif stem.isalpha() and len(stem) > 2:
            named = token[0].isupper() and before not in MARKS and stem not in FUNCTION_WORDS
            governed = before.lower() in NOUN_IN_FRONT and stem not in FUNCTION_WORDS
            topic = stem not in EMPTY and not stem.endswith(VERBAL)
            noun = noun or named or governed or topic
    return False


def says_what_is_now(announced: str, text: str) -> bool:
    """Whether a text tells what a short announcement of a change led to: "I switched jobs", "I'm at Globex now"."""
    return len(announced.split()) <= MAX_ANNOUNCEMENT and NOW_LAST.search(text) is not None


def continues(sentence: str) -> bool:
    """Whether a sentence goes on with the one before: a conjunction, or a pronoun that hangs."""
    return CONTINUES.match(sentence) is not None or hangs(sentence)
