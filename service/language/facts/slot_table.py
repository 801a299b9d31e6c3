"""The table of verbs, and what follows them, by attribute.

The group "v" (or "w") is the value; without one it is all that follows the verb. Rows are tried in order.
"""

from __future__ import annotations

import re

NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|no|several|a few|twin)"
NAME = r"[A-Z][\w'-]*(?: (?:[A-Z][\w'-]*|de|van|von|der|da|al|bin|la|O'\w+))*"
_FAN = (
    r"(?:a )?(?:really |very |so |pretty |quite |super )?(?:big |huge |massive |great |avid |keen |die-hard "
    r"|passionate )?"
    r"(?:(?:fan|lover) of|fond of|into|keen on|interested in|passionate about|obsessed with|crazy about"
    r"|enthusiastic about|partial to|addicted to|mad about|hooked on)"
)
# slot, verbs, what follows them; the group "v" is the value, without one all that follows
_ROWS: tuple[tuple[str, str, str], ...] = (
    ("home", "live reside dwell stay", r"(?:in|at|near|on|around|outside|close to|just outside)\b (?P<v>.+)"),
    (
        "home",
        "move relocate",
        r"(?:\w+ )?(?:back |over |out |down |up |away |house |permanently )*(?:from .+? )?(?:back |over )?to"
        r" (?P<v>(?!a (?:new|different|bigger|smaller)\b).+)",
    ),
    ("home", "settle", r"(?:down )?(?:in|at) (?P<v>.+)"),
    ("home", "be", r"(?:based|located|living) (?:out of|in|near|at) (?P<v>.+)"),
    ("home", "return", r"(?:home )?to live in (?P<v>.+)"),
    ("home", "base", r"(?:out of|in) (?P<v>.+)"),
    ("birthday", "be", r"born (?:on|in) (?P<v>(?:the )?(?:\d|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec).*)"),
    ("birthplace", "be", r"born (?:and (?:raised|bred) )?in (?P<v>.+)"),
    ("origin", "be", r"(?:from|a native of) (?P<v>(?:the )?[A-Za-z].+)"),
    ("origin", "come hail", r"(?:originally )?from (?P<v>[A-Z].+)"),
    ("origin", "grow", r"up (?:in|on|near|around) (?P<v>.+)"),
    ("origin", "be", r"raised in (?P<v>.+)"),
    ("age", "be", r"(?P<v>\d{1,3})(?: years?(?: old| of age)?| yo| y/o|-years?-old)?(?: now)?$"),
    ("age", "be", r"a (?P<v>\d{1,3})[- ]years?[- ]old\b.*"),
    ("age", "turn", rf"(?P<v>\d{{1,3}}|{NUMBER}|(?:\w+teen|\w+ty)(?:-\w+)?)\b.*"),
    ("name", "be", rf"(?:named|called) (?P<v>{NAME})"),
    ("nickname", "go", rf"by (?P<v>{NAME})"),
    ("native_language", "be", r"a native (?P<v>\w+) speaker"),
    ("language", "be", r"(?:fluent|bilingual|proficient|conversational|a native speaker) (?:in|of) (?P<v>.+)"),
    ("allergy", "be", r"(?:\w+ly )?allergic to (?P<v>.+)"),
    (
        "allergy",
        "have",
        r"(?:an? )?(?:\w+ )?allerg(?:y|ies) to (?P<v>.+)|(?:an? )(?:severe |mild |bad |serious )?(?P<w>[\w ]+?)"
        r" allergy",
    ),
    ("allergy", "be", r"(?P<v>lactose|gluten)[- ]intolerant|intolerant (?:to|of) (?P<w>.+)"),
    (
        "marital",
        "be",
        r"(?:now |happily |recently |newly )*(?P<v>married|single|divorced|engaged|widowed|separated|in a"
        r" relationship|dating)\b.*",
    ),
    ("marital", "get", r"(?P<v>married|engaged|divorced|separated)\b.*"),
    (
        "children",
        "have",
        rf"(?:a |an )?(?P<v>{NUMBER} (?:\w+ )?(?:kids|children|sons?|daughters?|boys|girls|child|kid"
        rf"|grandchildren))\b.*",
    ),
    ("health", "suffer", r"from (?P<v>.+)"),
    (
        "health",
        "be",
        r"diagnosed with (?P<v>.+)|(?P<w>(?:type \w+ )?diabetic|asthmatic|epileptic|pregnant|autistic|dyslexic"
        r"|colou?r ?blind|bipolar|anemic|celiac|coeliac|deaf|blind)\b.*",
    ),
    ("height", "be", r"(?P<v>\d[\d.,' ]*(?:\"|cm|m|feet|ft|foot|inches)?.*?) tall"),
    ("weight", "weigh", r"(?P<v>.*\d.*)"),
    ("fear", "be", r"(?:\w+ly )?(?:afraid|scared|terrified|frightened) of (?P<v>.+)"),
    ("likes", "be", _FAN + r" (?P<v>.+)"),
    ("likes", "find", r"(?P<v>.+?) (?:\w+ )?(?:fascinating|relaxing|enjoyable|delicious)"),
    ("dislikes", "find", r"(?P<v>.+?) (?:\w+ )?(?:boring|annoying|disgusting|gross|stressful)"),
    ("dislikes", "hate dislike detest loathe despise", r"(?P<v>.+)"),
    ("preference", "prefer", r"(?P<v>.+)"),
    ("education", "study major", r"(?P<v>.+)"),
    ("education", "graduate", r"(?P<v>.+)"),
    ("education", "attend", r"(?P<v>.*(?:university|college|school|MIT|academy|institute).*)"),
    (
        "education",
        "have",
        r"(?P<v>(?:an? )?(?:\w+'?s? )?(?:degree|phd|ph\.d\.|mba|bachelor'?s?|master'?s?|doctorate|diploma)\b.*)",
    ),
    ("goal", "want plan hope aim intend dream wish aspire", r"(?:to|on|of|about) (?P<v>.+)"),
    ("goal", "save train prepare", r"(?:up )?(?:for|to) (?P<v>.+)"),
    ("goal", "look", r"(?:for|to) (?P<v>.+)"),
    ("goal", "wait apply study", r"(?:for|to|at) (?P<v>.+)"),
    ("goal", "be", r"on (?:the|a) waiting list for (?P<v>.+)|waiting for (?P<w>.+)"),
    ("goal", "plan", r"(?P<v>an? .+)"),
    (
        "work_mode",
        "work",
        r"(?:mostly |mainly |fully |100% )?(?P<v>full[- ]time|part[- ]time|remotely|from home|night shifts?|nights"
        r"|the night shift|in the office|hybrid|on site|onsite)\b(?! (?:as|at|for)\b).*",
    ),
    ("project", "work", r"on (?P<v>(?!\w+days?\b|weekends?\b|christmas|commission|call\b).+)"),
    ("project", "build develop write design create", r"(?P<v>(?:an?|the|their|some) .+)"),
    ("tool", "use", r"(?P<v>.+)"),
    ("tool", "code program develop", r"(?:mostly |mainly )?(?:in|with) (?P<v>.+)"),
    ("tool", "switch migrate", r"(?:\w+ )?(?:from .+? )?(?:over )?to (?P<v>.+)"),
    ("vehicle", "drive ride", r"(?P<v>(?:an?|their|the) .+)"),
    ("skill", "play", r"(?P<v>.+)"),
    ("habit", "smoke drink exercise meditate jog swim", r"(?P<v>.*)"),
    (
        "habit",
        "run",
        r"(?P<v>(?:\d|every|daily|in|on|along|with|before|after|twice|three|about|around|marathons|regularly|for"
        r"|most).*|)",
    ),
)
ROWS = tuple(
    (
        slot,
        frozenset(words.split()),
        re.compile(
            rf"(?:{pattern})$" if not pattern.endswith(("$", ".*")) else pattern,
            re.IGNORECASE if "A-Z" not in pattern else 0,
        ),
    )
    for slot, words, pattern in _ROWS
)
"""Slot, the verbs it is told with, and what follows them; names need their capital, so such rows mind the case."""

ATTRIBUTES = {
    "name": ("name", "full name", "first name", "surname", "last name"),
    "nickname": ("nickname",),
    "age": ("age",),
    "birthday": ("birthday", "date of birth", "birth date", "birthdate", "dob", "bday"),
    "contact:email": ("email", "e-mail", "email address", "mail"),
    "contact:phone": ("phone", "phone number", "number", "mobile", "cell", "telephone number", "mobile number"),
    "address": ("address", "home address", "street address"),
    "home": ("home", "home city", "city", "location", "hometown now", "residence"),
    "origin": ("hometown", "home town", "country of origin", "home country"),
    "native_language": ("native language", "mother tongue", "first language"),
    "timezone": ("timezone", "time zone"),
    "pronouns": ("pronouns",),
    "salary": ("salary", "income"),
    "height": ("height",),
    "weight": ("weight",),
    "likes": ("hobby", "hobbies", "passion", "interest", "interests", "main hobby", "guilty pleasure"),
    "goal": ("goal", "dream", "main goal", "ambition", "plan", "big goal", "resolution"),
    "diet": ("diet",),
    "marital": ("marital status", "relationship status"),
    "allergy": ("allergy", "allergies"),
}
"""What a possession of the user is called ("User's birthday is ...") and the slot it fills."""
