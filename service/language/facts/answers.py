"""Short replies, completed by the question before them.

"Berlin" says nothing, "Where do you live?" - "Berlin" does. What an assistant claims about the user counts only when
the user confirms it in the next turn; what the user denies becomes a denial.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from service.language import sentences
from service.language.common_words import FUNCTION_WORDS
from service.language.facts import claims, cues, person, questions, verbs, wordbook

MAX_CHARS = 400  # of a question or a claim
MAX_WORDS = 9  # of a reply that leaves its verb to the question


class ResolvedAnswer(NamedTuple):
    """A statement in the first person. `told`: the user's own words hold the value; else it was only a yes or no."""

    text: str
    told: bool


_YES = re.compile(
    r"^\W*(?:oh |well |haha |hey )?(?:yes|yeah|yep|yup|ya|correct|exactly|right|that(?:['’]s| is) (?:right"
    r"|correct|true|me|it)|indeed|true|absolutely|definitely|of course|sure (?:am|do|is|did|have)|certainly"
    r"|totally|spot on|you got it"
    r"|i (?:do|am|did|have|sure do|am indeed)|(?:it|he|she) (?:is|does|was|has)(?=\W*$)|(?:we|they) (?:are|do"
    r"|have)(?=\W*$)|(?:please )?do(?: so)?|affirmative|uh-huh|mhm|bingo|100%|precisely"
    r"|you(?:['’]re| are) right|sounds right|that works)\b(?!['’])",
    re.IGNORECASE,
)
_NO = re.compile(
    r"^\W*(?:(?:god|hell|oh|heavens|good lord|haha|absolutely|of course|definitely|certainly)[\s,]+)*(?:no|nope|nah"
    r"|not really|not at all|i (?:do not|don['’]t|am not|haven['’]t|did not|didn['’]t)|i['’]m"
    r" not|never|not (?:anymore|any more|true|correct|right)|wrong|incorrect)\b(?!\s+(?:problem|worries|idea"
    r"|one))",
    re.IGNORECASE,
)
# question → what the reply is an answer to
_ASKED: tuple[tuple[str, str], ...] = (
    (r"(?:your (?:full |first )?name\b|should i call you|who am i (?:speaking|talking|chatting))", "My name is {}"),
    (r"how old are you|your age\b", "I am {}"),
    (
        r"where (?:do you live|are you (?:based|located|living|right now|now))|(?:which|what) (?:city|country"
        r"|town|part of \w+|state|area|place) (?:do you live|are you|do you reside|are you living)",
        "I live in {}",
    ),
    (
        r"where (?:are you|do you come) from|where did you grow up|your hometown|(?:which|what) country are you from",
        "I am from {}",
    ),
    (r"where were you born", "I was born in {}"),
    (r"when (?:is|was) your birthday|your (?:birthday|date of birth)|when were you born", "My birthday is {}"),
    (
        r"what do you do(?: for (?:a living|work))?\W*$|your (?:job|occupation|profession|role|job title|line of"
        r" work)\b|what kind of work",
        "ROLE",
    ),
    (r"where do you work|who do you work for|(?:which|what) company|your employer", "I work at {}"),
    (r"how many (?P<x>[\w ]+?) do you have", "I have {} {x}"),
    (r"how (?P<x>tall) are you", "I am {} {x}"),
    (r"are you (?:married|single|engaged|divorced|in a relationship|vegan|vegetarian)", "STATE"),
    (r"your favou?rite (?P<x>[\w ]+?)\W*$", "My favorite {x} is {}"),
    (r"allerg", "I am allergic to {}"),
    (
        r"(?:do you have|got) (?:any |a )?(?:pets?|kids|children|siblings|brothers|sisters|animals|family"
        r"|partner|dogs?|cats?)\b",
        "I have {}",
    ),
    (r"who do you (?P<x>live|work|travel|play|train) with", "I {x} with {}"),
    (r"where did you (?P<x>study|grow up|work|meet)\b", "PAST"),
    (r"when did you (?P<x>[a-z]+ (?!with\b).+?)\W*$", "PAST"),
    (
        r"do you (?:usually |normally |mostly )?(?P<x>prefer|like|use|drink|eat|drive|speak|want|take)\b.* or ",
        "I VERB {}",
    ),
    (
        r"(?:what|which)(?: [\w ]+?)? (?:do you|are you|did you) (?:usually |mostly |mainly |currently |normally"
        r" |often |most )?(?P<x>speak|play|drive|eat|drink|use|prefer|like|enjoy|study|read|own|love|hate"
        r"|dislike|work on|working on|studying|learning|reading|building|watch|teach|collect|grow|cook)\b",
        "I VERB {}",
    ),
    (
        r"your (?P<x>(?:[\w-]+ ){0,2}(?:budget|goal|hobby|hobbies|timezone|deadline|dog|cat|wife|husband|son"
        r"|daughter|partner|sister|brother|boss|diet|size|height|weight|nationality|native language|pronouns"
        r"|phone|car|salary))(?:['’]s name| called| named)?\W*$",
        "My {x} is {}",
    ),
    (
        r"do you (?:usually |mostly |currently )?(?P<x>speak|play|have|own|use|drink|eat|like|drive|watch"
        r"|collect|practice"
        r"|know|study|teach|grow)\b",
        "I VERB {}",
    ),
)
_QUESTIONS = tuple((re.compile(pattern, re.IGNORECASE), template) for pattern, template in _ASKED)


def read(asked: str, reply: str) -> list[ResolvedAnswer]:
    """Returns what `reply` says only together with `asked`, the assistant's turn before it; both as written."""
    said = [asked[start:end][:MAX_CHARS] for start, end in sentences.split(asked)]
    last = next(
        (
            each
            for each in reversed(said)
            if each.rstrip().endswith("?") and re.search(r"\byou|^\W*any ", each, re.IGNORECASE)
        ),
        "",
    )
    yes, no = _YES.match(reply) is not None, _NO.match(reply) is not None
    fragment = _fragment(reply)
    if last and fragment and not no:
        filled = _filled(last, fragment)
        if filled:
            return [ResolvedAnswer(filled, True)]
    made = claims.made(said, last)
    if _USED_TO.match(reply):
        return [
            ResolvedAnswer(re.sub(r"^I (?!am\b|have\b)", "I used to ", claim), False)
            for claim in made
            if claim[:2] == "I "
        ]
    if yes:
        return [] if len(made) > 1 and _NOT_ALL.search(reply) else [ResolvedAnswer(claim, False) for claim in made]
    if no and last and (not _more_follows(reply) or " still " in last):
        return [
            ResolvedAnswer(denied, False) for claim in claims.made([last], last) if (denied := claims.denied(claim))
        ]
    return []


_USED_TO = re.compile(r"\W*(?:(?:no|nope|well|not any ?more)\W+)?(?:I )?used to\b\s*(?:$|[,.!])", re.IGNORECASE)
_NOT_ALL = re.compile(r"\b(?:no|not|but|except|first|second|half|partly|wrong|only)\b", re.IGNORECASE)
_BUT_YES = re.compile(
    r"\W*(?P<value>[\w' ]{1,30}?),? but (?:yes|yeah|otherwise|the rest is (?:right|correct|true)|right|correct)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",? (?:with|without) (?:an?|two|one|no) .{1,20}$", re.IGNORECASE)


def but_for(asked: str, reply: str) -> tuple[list[str], str]:
    """Returns the claims, in the first person, that "June, but yes" confirms but for a value, and the value."""
    found = _BUT_YES.match(reply)
    said = [asked[start:end][:MAX_CHARS] for start, end in sentences.split(asked)]
    return (claims.made(said, ""), found["value"]) if found else ([], "")


def contradicted(asked: str, reply: str) -> list[tuple[str, str]]:
    """Returns the assistant's claims, in the first person, with the value that a denying reply puts in their place."""
    said = [asked[start:end][:MAX_CHARS] for start, end in sentences.split(asked)]
    value = _ASIDE.sub("", _fragment(reply))
    bare = said and len(value.split()) <= 2 and not _YES.match(reply) and claims.of_sentence(said[-1])  # "three!"
    if not value or not (
        _NO.match(reply) or (bare and not re.match(r"\W*(?:do|does|did|are|have|can)\b", said[-1], re.I))
    ):
        return []
    return [(claim, re.sub(r"\s+(?:now|instead|actually)$", "", value)) for claim in claims.made(said, "")]


def denies(reply: str) -> bool:
    """Returns whether a reply opens with a no."""
    return _NO.match(reply) is not None


def _more_follows(reply: str) -> bool:
    """Whether a denial goes on with a statement of its own, which then says it better."""
    return (
        re.search(
            r"\b(?:i|i['’]m|my|we)\b(?! (?:do not|don['’]t|am not|did not|haven['’]t|didn['’]t)\b(?:[.!]|$))",
            re.sub(_NO, "", reply),
            re.IGNORECASE,
        )
        is not None
    )


def _fragment(reply: str) -> str:
    """The first sentence of a reply when it has no subject of its own, bare of its yes; "" otherwise."""
    spans = sentences.split(reply[:MAX_CHARS])
    if not spans:
        return ""
    bare = cues.strip(person.expand(reply[spans[0][0] : spans[0][1]])).text
    if re.match(
        r"(?:it is|it's|that is|that would be|just|only|probably|mainly|mostly|currently)\s", bare, re.IGNORECASE
    ):
        bare = bare.split(" ", 2)[-1] if re.match(r"it is|that is", bare, re.IGNORECASE) else bare.split(" ", 1)[-1]
    words = bare.split()
    if (
        not 0 < len(words) <= MAX_WORDS
        or reply.rstrip().endswith("?")
        or re.search(
            r"^(?:he|she|they|his|her|their|it|a lot|sometimes|often|always|usually|every|since|for|when|once"
            r"|twice|very"
            r"|sure)\b|\b(?:I|we|you|depends|none|nothing|not|don't|know|sure|why|what|say|my|thanks|no|both)\b",
            bare,
            re.IGNORECASE,
        )
    ):
        return ""
    return bare[0].lower() + bare[1:] if words[0].lower() in FUNCTION_WORDS else bare


def _filled(question: str, fragment: str) -> str | None:
    if claims.OFFER.search(question) and not re.search(r"what should i call you|who am i", question, re.IGNORECASE):
        return None
    for pattern, template in _QUESTIONS:
        match = pattern.search(question)
        if match:
            whole = questions.statement(question, fragment) if template.startswith(("I VERB", "PAST")) else None
            if whole:
                return whole
            asked = match.groupdict().get("x", "") or ""
            return _sentence(template, fragment, asked)
    return questions.statement(question, fragment)


_DIETS = "|".join(sorted(wordbook.DIETS))
_STATE = re.compile(
    rf"(?:happily |newly )?(?:married|single|engaged|divorced|widowed|separated|dating|{_DIETS})\b", re.IGNORECASE
)


def _sentence(template: str, fragment: str, asked: str) -> str | None:
    if template == "ROLE":
        return (
            f"I am {_with_article(fragment)}"
            if wordbook.is_role(re.split(r" (?:at|for|in|with) ", fragment)[0])
            else f"I work {fragment}"
            if re.match(r"(?:in|at|for|as|with)\b", fragment)
            else None
        )
    if template.startswith("I VERB"):
        if asked == "have" and re.fullmatch(r"[\d.,]+", fragment):  # "Do you have a fever?" - "38.2"
            return None
        verb = f"am {asked}" if asked.endswith("ing") or asked.startswith("working") else asked
        return f"I {verb} {fragment}"
    if template.startswith("PAST"):
        first, _, tail = asked.partition(" ")
        return f"I {verbs.past(first)} {tail} {fragment}".replace("  ", " ")
    if template == "STATE":
        return f"I am {fragment}" if _STATE.match(fragment) else None
    if template.startswith("I have {} ") and len(fragment.split()) > 1 and asked.strip() not in fragment:
        return f"I have {fragment}" if fragment.split()[1] != "of" else None
    if template.startswith("I have {} ") and not re.match(r"(?:\d|one|two|three|four|five|six|seven|eight)", fragment):
        return None
    bare = re.sub(r"^(?:in|at|from|on|to|for)\s+", "", fragment)
    numbers_only = (
        re.sub(r"\s*\b(?:kids|children|of them)\b", "", bare) if "{x}" in template and "have" in template else bare
    )
    if asked.strip().endswith(("hobbies", "pronouns")):
        template = template.replace(" is ", " are ")
    return template.format(numbers_only, x=asked.strip())


def _with_article(role: str) -> str:
    return role if re.match(r"(?:an?|the)\b", role) else f"{'an' if role[0].lower() in 'aeiou' else 'a'} {role}"
