"""Pronouns of a fact that have nothing before them in its text that they could mean: a rule without a parser.

Looked at, as subject or object: it, they, them, he, she, him, there; this and that at the end of a clause or before an
auxiliary that begins one; her at the end of a clause. Left out: expletives ("it is time to", "it rains", "there are"),
and that or this right after "and", "so" or a comma, which mean the clause before.

- he, she, him, her, they: may mean any name or person-like noun before them, also the speaker's name, unless it only
  marks a quotation ("Ann: She is kind").
- it, them, there, this, that, and they where there is no name: may mean a noun of an earlier clause or sentence. Of its
  own clause nothing counts ("wants a chance to see it").

A noun is a capitalised word that is no speaker's name, a word after a determiner, preposition or possessive, one with
the ending of a noun, or a plural. Number and meaning are not compared, so the share that hangs is an estimate: too high
where a noun is not recognised, too low where the one that stands there is not meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

PEOPLE, THINGS, POINTING = (
    frozenset({"he", "she", "him"}),
    frozenset({"it", "them", "there"}),
    frozenset({"this", "that"}),
)
BORDER = re.compile(
    r"[.,;:!?–—-]|and|but|or|so|because|'?cause|when|while|since|as|if|which|who|where|though|until|after|before"
)
CLAUSE_PRONOUN_AFTER = frozenset({"and", "so", ","})
NOUN_FOLLOWS = re.compile(
    r"a|an|the|my|your|his|her|its|our|their|this|that|these|those|some|another|any|no|every|each|one|two|three|four"
    r"|five|many|several|few|about|at|by|for|from|in|into|like|of|on|with|.+'s"
)
NOUN = re.compile(r"people|family|friends|\w{2,}(?:tion|sion|ment|ness|ity|ship|ance|ence)|\w{2,}[^s']s|\w{3,}ing")
AUXILIARY = re.compile(
    r"am|is|was|are|were|be|been|has|had|will|would|can|could|may|might|makes|made|means|meant|helps|helped|gives|gave"
)
END = re.compile(r"[.,;:!?–—-]|and|but|or|so|because|when|while|since|if|as|for|too|again|now|with|to")
EXPLETIVE = re.compile(
    r"\bit(?:'s| is| was| has been| will be) (?:\w+ ){0,3}?(?:to|that|time|raining|snowing|cold|hot|sunny|late|early)\b"
    r"|\bit (?:rain|snow|take|took)\w*\b|\bthere(?:'s|'re| is| are| was| were| will| has| have| had| might| may)\b",
    re.IGNORECASE,
)
TOKEN = re.compile(r"'?[^\W\d_]+(?:'[^\W\d_]+)*|\d+|[.,;:!?–—~]|-(?=[\s-])")


def unresolved(text: str, speakers: Sequence[str] = ()) -> bool:
    """Whether a pronoun of the text hangs on nothing."""
    tokens, words = _read(text)
    names = {name.casefold() for name in speakers} | {"user"}
    person = thing = in_clause = False
    for index, word in enumerate(words[1:-1], start=1):
        stem, _, tail = word.partition("'")
        before, after = words[index - 1], words[index + 1]
        if _hangs(word, before, after, person=person, thing=thing):
            return True
        if BORDER.fullmatch(word):
            thing |= in_clause
            in_clause = False
        elif stem in names:
            person |= after != ":"
        elif _is_noun(tokens[index], before):
            in_clause = True
            person |= tokens[index][0].isupper() or tail != "s"
    return False


def has_pronoun(text: str) -> bool:
    """Whether the text has a pronoun that is looked at, whatever stands before it."""
    _, words = _read(text)
    around = zip(words[1:], words, words[2:], strict=False)
    return any(_hangs(word, before, after, person=False, thing=False) for word, before, after in around)


def _read(text: str) -> tuple[list[str], list[str]]:
    """The tokens of a text between two stops, without its expletives, and the same in lower case."""
    tokens = [".", *TOKEN.findall(EXPLETIVE.sub("~", text.replace("’", "'"))), "."]
    return tokens, [token.casefold() for token in tokens]


def _hangs(word: str, before: str, after: str, *, person: bool, thing: bool) -> bool:
    """Whether the word is a pronoun for which there is neither the person nor the thing that it could mean."""
    stem, _, tail = word.partition("'")
    if stem in PEOPLE or (stem == "her" and END.fullmatch(after)):
        return not person
    if stem == "they":
        return not (person or thing)
    if stem in THINGS:
        return not thing
    if stem not in POINTING or before in CLAUSE_PRONOUN_AFTER:
        return False
    begins = bool(BORDER.fullmatch(before)) and (bool(tail) or bool(AUXILIARY.fullmatch(after)))
    return not thing and (begins or bool(END.fullmatch(after)))


def _is_noun(token: str, before: str) -> bool:
    word = token.casefold()
    if len(word) < 3 or NOUN_FOLLOWS.fullmatch(word) or AUXILIARY.fullmatch(word):
        return False
    if NOUN_FOLLOWS.fullmatch(before) or (token[0].isupper() and not BORDER.fullmatch(before)):
        return True
    return bool(NOUN.fullmatch(word)) and not AUXILIARY.fullmatch(before)
