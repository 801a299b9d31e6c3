"""Cuts a clause that says several things.

"I am 29, married and a nurse", "my sister, who is a vet, lives in Rome", "I have a cat and two dogs", "so is my wife".
"""

from __future__ import annotations

import re

from service.language.facts import salience, slots, statement, verbs, wordbook

NUMBER_ONLY = re.compile(r"^I am (\d{1,3})(?: now)?$")
"""A bare age."""
_ALSO_PLACE = re.compile(
    r"^(?P<what>I am an? (?P<role>.+?))(?: and)? (?P<where>(?:(?:currently |now )?(?:based|living|located) (?:in"
    r"|near|at)|originally from|from) [\w].+)$"
)
_TURNED = re.compile(
    r"^(?P<value>(?!(?:it|this|that|he|she|there|what|who|today|tomorrow|here)\b)[\w' -]{1,40}?) (?:is|are) my"
    r" (?P<what>(?:all-time )?(?:favou?rite [\w ]{2,30}|(?:first|native|second) language|mother tongue|name|wife"
    r"|husband|boss|manager|hobby|sister|brother|dog|cat"
    r"|girlfriend|boyfriend|birthday))$",
    re.IGNORECASE,
)
_OWNS = re.compile(r"^(?P<have>(?:I|[Ww]e) (?:also |now |still )?(?:have|own|adopted|got)) (?P<list>.+)$")
_NAMED_AND_AGED = re.compile(r"^I am (?P<name>[A-Za-z]+)(?:,| and I am) (?P<age>\d{1,2})(?: years old)?$")
_WHO_IS = re.compile(
    r"^(?P<who>(?:my|our) (?:[\w-]+ ){0,3}?[\w'’-]+), who (?P<what>(?:is|has|was|lives|works|had)\b[^,]+),"
    r" (?P<main>\w.*)$",
    re.IGNORECASE,
)
_BUT_ONLY = re.compile(
    r"^I (?:(?P<be>am not )|(?:don't|do not) )"
    r"(?P<verb>(?:[a-z]+ ){1,3}?(?:to|of|in|at|for|with|on|into) |(?<!am not )[a-z]+ )"
    r"(?:[\w'-]+ ){0,2}?[\w'-]+(?P<gap>,? (?:but )?(?:just|only) )(?P<only>[\w' -]{2,40})$"
)
_SO_IS = re.compile(
    r"^(?P<main>I (?:(?P<be>am) (?P<state>[\w' -]{2,60}?)|(?P<verb>don't|can't|[a-z]+) (?P<rest>[\w' -]{2,60}?))),?"
    r" (?:and |but )?(?P<sign>so|neither|nor) (?:is|does|can|do|has) (?P<who>my (?:[\w-]+ ){0,2}[\w-]+)$"
)
_STATES = re.compile(r"^I am (?P<list>[^,]{1,40}(?:, [^,]{1,60}){1,5}|[^,]{1,40}? and [^,]{1,40})$")


def statements(text: str) -> list[str]:
    """Returns the statements of a first-person clause, at least one."""
    relative = _WHO_IS.match(text)
    if relative:
        return [f"{relative['who']} {relative['what']}", *statements(f"{relative['who']} {relative['main']}")]
    turned = _TURNED.match(text)
    if turned:
        return [f"My {turned['what']} is {turned['value']}"]
    both = _ALSO_PLACE.match(text)
    if both and wordbook.is_role(re.split(r" (?:at|for|in|with|of) ", both["role"])[0]):
        return [both["what"], f"I am {both['where']}"]
    too = _SO_IS.match(text)
    if too:
        return [too["main"], _of_another(too)]
    contrast = _BUT_ONLY.match(text)
    if contrast:
        return [
            text[: contrast.start("gap")],
            f"{'I am' if contrast['be'] else 'I'} {contrast['verb']}{contrast['only']}",
        ]
    introduced_as = _listed_states(text)
    if introduced_as:
        return introduced_as
    owned = _OWNS.match(text)
    if owned:
        parts = re.split(
            r",? (?:and|or) (?=(?:an?|no|one|two|three|four|five|\d+|some) )|, (?=(?:an?|no|one|two|three|four|five"
            r"|\d+|some) )",
            owned["list"],
        )
        if len(parts) > 1 and all(_could_be_read(f"User has {part}") for part in parts):
            return [f"{owned['have']} {part}" for part in parts]
    named = _NAMED_AND_AGED.match(text)
    if named and salience.could_be_name(named["name"].capitalize()):
        return [f"My name is {named['name']}", f"I am {named['age']}"]
    return [text]


def _of_another(too: re.Match[str]) -> str:
    """What "and so is my sister" says in full."""
    verb, rest = (too["verb"], too["rest"]) if too["verb"] else (too["be"], too["state"])
    if too["be"]:
        denied = " not" if too["sign"].lower() in ("neither", "nor") and not re.match(r"not\b", rest) else ""
        return f"{too['who']} is{denied} {rest}"
    told = verb if re.search(r"n't$", verb) else verbs.third(verb.lower())
    return f"{too['who']} {re.sub(r'^don', 'doesn', told)} {rest}"


def _listed_states(text: str) -> list[str]:
    """ "I am Ben, 41, divorced, two kids": a name, an age, what somebody is and has; [] where a part is none."""
    listed = _STATES.match(text)
    if not listed:
        return []
    parts = [re.sub(r"^(?:and )?(?:also )?", "", part) for part in re.split(r", (?:and )?| and ", listed["list"])]
    told = []
    for number, part in enumerate(parts):
        aged = number == 0 and len(parts) > 1 and parts[1].isdigit()  # "im sam, 27"
        if (
            number == 0
            and (part[:1].isupper() or aged)
            and part.isalpha()
            and salience.could_be_name(part.capitalize())
        ):
            told.append(f"My name is {part}")
        elif NUMBER_ONLY.match(f"I am {part}") or _could_be_read(f"User is {part}"):
            told.append(f"I am {part}")
        elif re.match(r"(?:an?|one|two|three|four|five|\d+) ", part) and _could_be_read(f"User has {part}"):
            told.append(f"I have {part}")
        else:
            return []
    return told


def _could_be_read(text: str) -> bool:
    """Whether a sentence in the third person gives an attribute we know."""
    return slots.read(statement.parse(text)) is not None
