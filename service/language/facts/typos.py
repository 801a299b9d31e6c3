"""Corrects slips of the finger.

"becuase", "langauge", "aprenticeship": of the words that the rules read by, the one whose letters only changed places
or are doubled where they should not be. Other slips are a table: one letter makes "feather" a father.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from service.language import wordlists
from service.language.common_words import FUNCTION_WORDS, is_common
from service.language.facts import person, verbs, wordbook
from service.language.gazetteer import CALENDAR, NAMES

_SHORTEST, _LONGEST = 5, 20  # letters
_MORE = wordlists.words("""
    language apprenticeship immediately environment restaurant appointment interview university college vegetarian
    allergic allergy gluten intolerant pregnant diabetic engaged divorced birthday weekend different favorite
    apartment medicine medication exercise breakfast knowledge experience business expensive beautiful comfortable
    together whenever wherever whatever everywhere somewhere anywhere anymore address accommodation
""")
_TABLE = """
    alredy: already; everywere: everywhere; orginally: originally; definately: definitely; definatly: definitely
    seperate: separate; seperated: separated; recieve: receive; untill: until; probly: probably; restraunt: restaurant
    intrested: interested; diffrent: different; allways: always; vegitarian: vegetarian; exersise: exercise
    excercise: exercise; collegue: colleague; collegues: colleagues; enviroment: environment; marrage: marriage
    haveing: having; liveing: living; moveing: moving; useing: using; makeing: making; studing: studying
    independant: independent; somtimes: sometimes; evrything: everything; unfortunatly: unfortunately
    basicly: basically; completly: completely; recomend: recommend; becasue: because; beacuse: because
    basketbal: basketball; grandaughter: granddaughter; neice: niece; fiancee: fiancée; vetinarian: veterinarian
    diabetis: diabetes; alergic: allergic; alergy: allergy; tomorow: tomorrow; tommorow: tomorrow
    tommorrow: tomorrow; yesturday: yesterday; wensday: wednesday; wenesday: wednesday; febuary: february
"""
_LISTED = dict(pair.strip().split(": ") for pair in re.split(r";|\n", _TABLE) if pair.strip())


@lru_cache(maxsize=4096)
def meant(word: str) -> str | None:
    """Returns the word that a lower-case one was meant for, None where it is known or could be two."""
    if word in _LISTED:
        return _LISTED[word]
    if not _SHORTEST <= len(word) <= _LONGEST or not word.isascii() or _known(word):
        return None
    found = {each for each in _index().get(_key(word), ()) if _one_slip(word, each)}
    return found.pop() if len(found) == 1 else None


def _known(word: str) -> bool:
    return (
        word in _vocabulary()
        or is_common(word)
        or word in NAMES
        or wordbook.is_role(word)
        or word.capitalize() in wordbook.FIRST_NAMES
        or (word.endswith("s") and (word[:-1] in _vocabulary() or word[:-1] in NAMES))
    )


@cache
def _vocabulary() -> frozenset[str]:
    listed = FUNCTION_WORDS | _MORE | wordbook.KIN | wordbook.ROLES | wordbook.ANIMALS | wordbook.DIETS | CALENDAR
    return frozenset(word for word in listed | person.ADVERBS | verbs.words() if word.isalpha())


@cache
def _index() -> dict[str, tuple[str, ...]]:
    """The words by their letters, each once."""
    found: dict[str, tuple[str, ...]] = {}
    for word in _vocabulary():
        if len(word) >= _SHORTEST:
            found[_key(word)] = (*found.get(_key(word), ()), word)
    return found


def _key(word: str) -> str:
    return word[0] + "".join(sorted(set(word)))


def _one_slip(a: str, b: str) -> bool:
    """Whether two neighbours changed places, or one letter is doubled on one side alone."""
    head = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if len(a) == len(b):
        return a[head : head + 2] == b[head : head + 2][::-1] and a[head + 2 :] == b[head + 2 :]
    short, long = sorted((a, b), key=len)
    doubled = len(long) - len(short) == 1 and short[head:] == long[head + 1 :]
    return doubled and head > 0 and long[head] == long[head - 1] and len(short) >= _SHORTEST
