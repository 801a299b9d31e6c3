"""Decides whether a statement is worth keeping.

Moods, passing moments, promises, and sentences that point at something outside themselves ("I love it") are not; of
other people and things only what the user is concerned with.
"""

from __future__ import annotations

import re

from service.language import wordlists
from service.language.common_words import FUNCTION_WORDS, is_common
from service.language.facts import wordbook
from service.language.facts.fact import USER
from service.language.facts.slots import SlotReading
from service.language.facts.statement import Statement
from service.language.gazetteer import NAMES
from service.language.temporal.words import MONTHS

_MOODS = wordlists.words("""
    fine good great ok okay well tired exhausted hungry thirsty bored sleepy busy sorry glad happy sad excited sure
    ready back here done confused curious lost stuck impressed grateful thankful upset annoyed frustrated worried
    nervous stressed fantastic awesome alright alive ashamed shocked surprised speechless amazed overwhelmed
    relieved proud pleased delighted thrilled cold hot drunk late early right wrong correct certain positive serious
    kidding fed disappointed wondering better so-so pumped interested desperate unsure uncertain open flexible free
    available convinced honored flattered touched jealous mad angry
""")
_POINTING = (FUNCTION_WORDS - {"ill"}) | wordlists.words("""
    one ones thing things stuff way lot bit kind sort time times day today yesterday tomorrow tonight moment good
    great nice fine cool better best much more again too also right well fun idea sense something anything nothing
    everything ever bad really like one know think see get got go going try tried make made do done say said tell
    told look looks seem seems sound sounds help question questions please thanks thank yes no sure maybe hi hello
    assistant assistant's user user's
""")
_STRAY = wordlists.words("it this that these those one them him her")
_TALK_ABOUT_TALK = wordlists.words("""
    question questions point guess apologies apology bad mistake pleasure understanding prompt message answer code
    query request issue problem concern thoughts mind fault goodness god word turn bet suggestion idea code program
    script function app's error output input thanks regards experience opinion assumption impression previous last
    next
""")
_MATTERS = wordlists.words("""
    project deadline team company client customer launch release budget office wedding trip flight appointment
    meeting interview exam standup stand-up sprint app product website party conference presentation review demo
    migration contract lease move surgery store shop startup business thesis database api backend frontend server
    stack rent house apartment
""")


def keeps(s: Statement, reading: SlotReading | None, names: frozenset[str]) -> bool:
    """Returns whether a parsed statement is worth a memory; `names`: people the conversation has introduced."""
    if not s.verb:
        return False
    if s.subject == USER:
        return _of_user(s, reading)
    if s.subject.startswith("user's "):
        if reading is not None and reading.slot in ("pronouns", "contact:phone", "timezone"):
            return True
        words = s.subject.split()[1:] or [""]
        about = words[1] if words[0] in ("last", "next", "previous") and words[1:] else words[0]
        return about not in _TALK_ABOUT_TALK and _says_something(s) and not _OPEN_END.search(s.rest)
    return _of_others(s, reading, names)


_OPEN_END = re.compile(
    r"(?:^|\s)(?:of|to|for|with|about|love|like|hate)? ?(?:it|this)$|\b(?:of|to|for|with|about) (?:them|him|her)$",
    re.IGNORECASE,
)


def _of_user(s: Statement, reading: SlotReading | None) -> bool:
    if _passing(s):
        return False
    if s.verb == "be" and _mood(s.rest) and not (reading and reading.slot in ("job", "diet", "goal", "marital")):
        return False
    if _OPEN_END.search(s.rest) and not s.negative:
        return False
    if reading is not None:
        named = reading.slot in ("habit", "pronouns", "nickname", "name")
        return named or not _points_elsewhere(reading.value)
    return not _empty(s) and not _vague(s) and _says_something(s)


def _passing(s: Statement) -> bool:
    """Whether it tells of a moment: a good day, a breakfast, a feeling."""
    if s.verb in ("feel", "sound", "seem", "look"):
        return s.verb != "look" or not s.progressive
    if s.verb in ("go", "head") and s.progressive and _AWAY.match(s.rest):
        return True
    if s.verb in ("have", "eat") and s.past and (_MEAL.search(s.rest) or _DAY.match(s.rest)):
        return True
    return s.verb == "be" and (_NOWHERE.match(s.rest) is not None or _GRATEFUL.match(s.rest) is not None)


_DAY = re.compile(
    r"an? (?:\w+ )?(?:terrible|bad|good|great|long|rough|nice|lovely|awful|busy|hard|fun|crazy|blast)"
    r"(?: (?:day|time|week|weekend|night|morning|evening|sleep)\b|$)"
)
_AWAY = re.compile(r"(?:to )?(?:bed|sleep|home|out|shopping)(?: (?:now|soon|right now))?$", re.IGNORECASE)
_NOWHERE = re.compile(
    r"(?:on (?:the|a) (?:bus|train|tram|plane|phone|toilet|sofa|couch|metro)|at the (?:shop|store|dentist|doctor"
    r"|airport"
    r"|station|gym|supermarket|pub)|in (?:a|the) (?:meeting|car|shower|queue|rush|hurry))(?: right now| now"
    r"| again)?$|(?:out of|on my way|at work|at home|in bed|running late|about to|here (?:for|to|if))\b"
)
_GRATEFUL = re.compile(
    r"(?:(?:so|really|very|always|just|truly|forever) )*(?:thankful|grateful|lucky|glad|honou?red|stoked|blessed)\b"
)
_MONTH = "|".join(MONTHS)
_FIRM = re.compile(
    rf"\d|\b(?:next|tomorrow|tonight|\w+day|{_MONTH}|spring|summer|autumn|fall|winter|soon)\b", re.IGNORECASE
)


def _empty(s: Statement) -> bool:
    """Whether little more than a verb is said: "is nice", "knows that"."""
    words = s.rest.split()
    if s.verb == "be" and len(words) <= 1:
        telling = (
            s.rest[:1].isupper()
            or s.rest[:1].isdigit()
            or s.rest.endswith(("ed", "ist", "ing", "male"))
            or len(s.rest) > 5
        )
        return not telling
    return s.verb in _THINKING and len(words) < 3 and not re.search(r"[A-Z]", s.rest)


_THINKING = wordlists.words("think know mean guess wonder let ask see hear suppose")


def _vague(s: Statement) -> bool:
    """Whether it only promises, exhorts or allows: "can make a difference", "will keep trying"."""
    if s.able and not s.negative:
        return len(s.rest.split()) > 3
    return s.future and not s.progressive and s.verb in _PROMISING and not _FIRM.search(s.rest)


_PROMISING = wordlists.words(
    "keep make try do continue check let get give never definitely help look see take find be go have work think stick"
)


_MEAL = re.compile(r"\bfor (?:breakfast|lunch|dinner|brunch)\b")


def _mood(rest: str) -> bool:
    """Whether somebody only tells how they feel: "fine", "happy to help"; "proud of my daughter Ida" says more."""
    words = re.sub(
        r"^(?:(?:very|so|really|too|a bit|a little|pretty|quite|not|just|super|doing|kind of|totally) )+",
        "",
        rest.lower(),
    ).split()
    if not words:
        return True
    if words[0].strip(",.") not in _MOODS:
        return False
    tail = [word.strip(",.") for word in words[1:]]
    return (
        not tail
        or tail[0] in ("to", "that", "if", "you", "it", "when", "because", "and", "now", "today", "as")
        or all(word in _POINTING for word in tail)
    )


def _points_elsewhere(value: str) -> bool:
    words = re.findall(r"[\w'-]+", re.sub(r"\bIT\b", "computing", value).lower())
    if not words:
        return True
    if words[0] == "it" and words[1:2] == ["when"]:
        return len(words) < 4
    if words[0] in _STRAY and len(words) <= 3 and all(word in _POINTING for word in words):
        return True
    if words[0] in ("how", "what", "why", "if", "when", "where"):
        return len(words) <= 3 or "assistant" in words or "it" in words
    return (
        words[0] in ("it", "this", "that", "these", "those", "you", "assistant")
        or value.startswith("the assistant")
        or all(word in _POINTING and not word.isdigit() for word in words)
    )


_SAYING = wordlists.words(
    "believe think say suggest decide learn realize hope feel tell know find worry explain insist dream"
)
_EMPTY_VERBS = wordlists.words(
    "be do have get go make say know think see look seem want need like love feel let tell ask come take give work help"
)


def _says_something(s: Statement) -> bool:
    """Whether a statement has a content word of its own and does not hang on an unresolved "it"."""
    words = [word.strip("'") for word in re.findall(r"[\w'$€£-]+", s.rest.lower())]
    content = [word for word in words if word not in _POINTING]
    if not content:
        of_user = (s.verb == "work" and s.negative) or s.verb in (
            "smoke",
            "drink",
            "retire",
            "swim",
            "meditate",
            "graduate",
            "drive",
            "cook",
        )
        return of_user if s.subject == USER else s.verb not in _EMPTY_VERBS and not _STRAY & set(words)
    if words[0] in ("it", "that", "this") and s.verb not in _SAYING and (words[0] == "it" or len(content) < 2):
        return False
    owned = words[0] == "her" and words[1:2] and words[1] not in _POINTING
    return not (words[0] in _STRAY and not owned and len(content) < 3)


def _of_others(s: Statement, reading: SlotReading | None, names: frozenset[str]) -> bool:
    """People by name, and the affairs of the user: a project, a deadline, a trip."""
    words = s.subject.split()
    head = re.split(r" (?:of|for|with|in|at|to) ", s.subject)[0].split()
    if not words or not head or "assistant" in map(str.lower, words):
        return False
    first, last = words[0], head[-1].lower().removesuffix("'s")
    if _befell(s) or _dated(s):
        return True
    if words[-1].lower() in _STRAY or (first.endswith("ing") and first.lower() not in ("king",)):
        return False
    if first.lower() in FUNCTION_WORDS or not _says_something(s):
        return False
    if s.subject.lower() in names or first.lower() in names:
        return True
    known = re.sub(r" (?:from|in|at|of) \w+$", "", s.subject).split()
    named = all(word[:1].isupper() for word in known) and s.subject.casefold() not in NAMES and not is_common(first)
    if named and len(words) <= 3:
        return (
            reading is not None
            and reading.slot not in ("tool",)
            and not reading.slot.startswith("attribute:")
            and not _general(s)
        )
    if named and len(words) <= 4 and re.search(r"\b(?:his|her|their)\b", s.rest) and (s.past or s.perfect):
        return True
    mine = "user" in s.rest.lower().split() or "user's" in s.rest.lower().split()
    return (
        len(words) <= 6
        and (last in _MATTERS or mine)
        and (reading is not None or mine or bool(re.search(r"\d|[A-Z]", s.rest)))
    )


_LIFE = re.compile(
    r"(?:die|graduate|retire|give birth|be (?:born|pregnant|engaged|in (?:the )?hospital|sick|ill|diagnosed)|pass away"
    r"|get (?:married|engaged|divorced|fired|hired|promoted|pregnant|sick)|break (?:his|her|their)|break up|split up"
    r"|turn (?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|\w+teen)\b|move (?:in|out|to|away"
    r"|back)|start (?:school|university|college|kindergarten|nursery|uni)|stay with|come (?:over|back)|marry"
    r"|lose (?:his|her|their))\b"
)


_DATE = re.compile(
    r"(?:(?:now|still|also) )?(?:on|due on|due|scheduled for|at|from|until)\b.{0,20}?(?:\b\w+day\b|\b\d"
    rf"|\b(?:{_MONTH})\b)",
    re.IGNORECASE,
)


def _dated(s: Statement) -> bool:
    """ "The funeral is on Thursday": what has its day is something to be at."""
    subject = s.subject.split()
    return s.verb == "be" and 0 < len(subject) <= 3 and s.subject.islower() and _DATE.match(s.rest) is not None


def _befell(s: Statement) -> bool:
    """What happens in the life of people one knows: "Leila and Tom broke up"; not in history, with its years."""
    people = s.subject.split()
    named = 0 < len(people) <= 3 and all(
        word == "and" or (word[:1].isupper() and could_be_name(word)) for word in people
    )
    return named and _LIFE.match(f"{s.verb} {s.rest}".strip()) is not None and not re.search(r"\b1\d{3}\b", s.rest)


def _general(s: Statement) -> bool:
    """ "Paris is from the Latin ..." and other knowledge of the world."""
    return (
        s.verb == "be"
        and s.rest.split()[0].lower() in ("a", "an", "the")
        and not wordbook.is_role(re.split(r" (?:at|for|in|of|with) ", s.rest)[0])
    )


def could_be_name(name: str) -> bool:
    """Returns whether a capitalised word or two may be a name: no nationality, place, product or common word."""
    first = name.split()[0]
    if first in wordbook.FIRST_NAMES:
        return True
    known = name.casefold() in NAMES or first.casefold() in NAMES
    return not (
        known
        or wordbook.NATIONALITY.match(first)
        or is_common(first)
        or wordbook.is_role(name)
        or first.lower() in _MOODS
        or first.lower() in wordbook.DIETS
        or (first.isupper() and len(first) > 2)
    )
