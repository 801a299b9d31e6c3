"""Tells whether the plain word after "password is" is the password, or prose that goes on.

"My password is sunshine" gives one away, "the password is too short" does not. A word list and a little grammar decide:
a secret of plain words stands alone or in a row without any function word, and ends where the clause ends.
"""

from __future__ import annotations

import re

_CLAUSE = re.compile(r"(?:(?! (?:lol|haha|btw|fyi|thx|thanks)\b)[^.!?;,\n\"'`<>()\[\]{}|=]){1,90}+")
_POSSESSIVE = re.compile(r"(?i)\b(?:my|our|his|her|their|your|\w+'s)\s(?:[\w-]+\s){0,3}$")
_PARTICIPLE = re.compile(
    r"(?i).{2,}(?:ed|ing|ly|able|ible|ive|ory|ary|less|ful|ous|ent|ant|ic|ical|ised|ized|ness|tude|ity|tion|[ae]nce)$"
)

_FUNCTION_LIST = """
a an the this that these those it its one none not no never always ever only just still already now then here
there too very so quite rather pretty really super extremely somewhat more most less least much many some any
all both each my your his her our their mine yours theirs ours whose what which who when where why how whether
if because since as at by for from in into of off on onto out over per than through to until up upon via with
within without under about after against along among around before behind below between beyond during except
inside near outside past and or but nor yet also else either neither same different similar identical like
unlike such is are was were be been being am do does did done has have had having can could may might must shall
should will would get gets got going gone let lets make makes made need needs seems looks says said means takes
took goes came again anymore anyway yesterday today tomorrow please
"""
_SAID_LIST = """
accepted allowed altered bad blank blocked broken case changed checked common compromised confidential copied
correct created critical cached crucial deleted dead due easy empty encrypted enforced essential exposed expired
fake fine free generated good great hard hashed hidden important impossible incorrect insecure invalid kept key
known leaked locked long lost mandatory masked missing necessary new null ok okay old old-fashioned optional
out-of-date outdated personal plain plaintext predictable private protected provided public random readable
redacted required reset reused revoked rotated safe saved secret secure sensitive sent set shared short simple
stale stolen stored strong stuck subject synced temporary tied trivial typed unavailable unchanged undefined
unique unknown unset unsafe up-to-date used useless valid visible weak wrong written ask asks check checks click
contact enter enters forgot forget keep keeps log login press see send sends store stores submit tap try type
use uses visit wait minimum maximum min max at-least characters chars letters digits symbols
forgotten vergessen falsch oubli\u00e9 olvidada
"""
# Words no passphrase of plain words is made of: they only hold a sentence together.
_FUNCTION = frozenset(_FUNCTION_LIST.split())
# Words that a passphrase in quotes may hold.
_LINKS = frozenset({"and", "of", "in", "on", "with", "under", "over"})
# What is commonly said of a password: its states, and what one does with it.
_SAID = frozenset(_SAID_LIST.split())


def is_going_on(word: str) -> bool:
    """True for a word after which a sentence about a password simply goes on."""
    bare = word.lower().strip("-'\u2019")
    return bare in _FUNCTION or bare in _SAID


def is_phrase(words: list[str], *, surely: bool) -> bool:
    """True for words in quotes that are a passphrase with a number ("lathe and chisel 5"); `surely`: also without."""
    plain = all(word.isalnum() and not is_going_on(word) for word in words if word not in _LINKS)
    return plain and 3 <= len(words) <= 7 and words[-1] not in _LINKS and (surely or words[-1].isdigit())


def secret_end(text: str, name_start: int, start: int, *, signed: bool, quoted: bool = False) -> int | None:
    """Where the plain-word secret that begins at `start` ends, or None when the words are prose.

    `signed`: a colon or an equals sign announced it, not "is".
    """
    clause = _CLAUSE.match(text, start)
    words = clause.group().split() if clause else []
    if clause is None or not words or any(word.lower() in _FUNCTION for word in words):
        return None
    ours = _POSSESSIVE.search(text, max(0, name_start - 40), name_start) is not None
    if len(words) == 1:
        spoken = is_going_on(words[0]) or (not (signed or ours) and _PARTICIPLE.match(words[0]) is not None)
        return None if spoken else start + len(words[0])
    said = sum(word.lower() in _SAID for word in words)
    odd = not all(word.isalpha() or (signed and not said and word.isdigit()) for word in words)
    spoken = odd or any(_PARTICIPLE.match(word) for word in words)
    least = 4 if said else 2 if ours or quoted else 3
    if spoken or said > 1 or not least <= len(words) <= 6:
        return None
    return start + len(clause.group().rstrip())
