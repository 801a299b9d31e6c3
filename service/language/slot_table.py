"""The attributes of which a person or a thing has one value at a time, and the words that tell them.

A row: name, whether a second value alone ends the first ("exclusive") or only together with a word of change ("loose"),
and patterns in the third person, in any tense. What a pattern's group `of` holds is part of the attribute ("the lead of
the backend team"); the group `v` is the value, else all that follows the match.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = r"(?-i:[A-Z])"
_TITLE = (
    r"(?:(?-i:CEO|CTO|CFO|COO|CMO|CIO|VP|SVP|EVP|PM)|(?:vice )?president|(?:\w+ )?(?:engineer|manager|director"
    r"|developer"
    r"|designer|analyst|consultant|officer|executive|scientist|researcher|nurse|doctor|teacher|professor|lawyer|attorney"
    r"|accountant|architect|carpenter|plumber|welder|electrician|chef|cook|waiter|waitress|barista|driver|pilot|writer"
    r"|journalist|editor|artist|musician|photographer|pharmacist|dentist|vet|veterinarian|therapist|paramedic|firefighter"
    r"|police officer|librarian|translator|freelancer|contractor|intern|apprentice|student nurse|clerk|cashier|salesman"
    r"|salesperson|recruiter|secretary|assistant|receptionist|mechanic|baker|butcher|farmer|gardener|strategist"
    r"|specialist|coordinator|administrator|supervisor|foreman|barber|hairdresser|physiotherapist|midwife|surgeon"
    r"|psychologist|economist|statistician|technician|programmer|tester|product owner|scrum master|tutor|lecturer))"
)
_RELATIONSHIP = (
    r"(?:single|married|divorced|engaged|widowed|separated|remarried|in a relationship|dating"
    r"|seeing (?:someone|somebody))"
)
_CAR = (
    r"(?:cars?|vehicles?|trucks?|suvs?|sedan|hatchback|pickup|motor(?:bike|cycle)s?|scooter|vans?|minivan|convertible"
    r"|tesla|honda|toyota|ford|bmw|audi|volkswagen|vw|mercedes|volvo|subaru|mazda|nissan|hyundai|kia|chevrolet|chevy|jeep"
    r"|porsche|lexus|skoda|seat|renault|peugeot|citro[eë]n|fiat|rivian|polestar|lucid|saab|opel|dacia|suzuki|mini"
    r" cooper"
    r"|prius|civic|corolla|camry|golf gti|model [3sxy])"
)
_PET = (
    r"(?:dogs?|pupp(?:y|ies)|cats?|kittens?|rabbits?|bunn(?:y|ies)|hamsters?|guinea pigs?|parrots?|budgies?|canar(?:y"
    r"|ies)"
    r"|goldfish|tortoises?|turtles?|horses?|pon(?:y|ies)|ferrets?|gerbils?|lizards?|geckos?|snakes?|chickens?|pets?"
    r"|(?:golden |labrador )?retrievers?|labradors?|beagles?|poodles?|terriers?|bulldogs?|spaniels?|dachshunds?"
    r"|whippets?"
    r"|greyhounds?|husk(?:y|ies)|collies?|(?:german )?shepherds?|corgis?|pugs?|tabb(?:y|ies)|siamese|maine coons?"
    r"|ragdolls?|mutts?|cockatiels?)"
)
_HOLDS = (
    r"(?P<role>leads?|led|heads?|headed|manages?|managed|runs?|ran|chairs?|chaired|captains?|coaches|directs?|oversees?|oversaw"
    r"|maintains?|owns?|(?:is |are )?in charge of|(?:is |are )?responsible for|took over|takes over|has taken over"
    r"|heads? up"
    r"|is leading|is heading|is managing|is running)"
)
_HOLDER = (
    r"(?:leads?|head|manager|owner|maintainer|director|chair|captain|coach|supervisor|boss|principal|mayor|president"
    r"|treasurer|secretary|ceo|cto|cfo|coo|contact(?: person)?|on-?call|scrum master|product owner|doctor|dentist"
    r"|landlord"
    r"|teacher|therapist|best friend|roommate|flatmate|mentor|advisor|trainer)"
)
_GROUP = (
    r"(?:the |our |his |her |their |user's )?(?P<of>[\w' -]{0,40}?(?:team|project|group|department|squad|unit"
    r"|office|division|club|committee|board|guild|migration|release|launch|programme?|initiative))\b"
)


# A pattern that begins with any words has a look ahead for a word that must follow: trying 40 lengths from each word of
# every text took more than all other patterns together.


class SlotRow(NamedTuple):
    """One attribute."""

    name: str
    exclusive: bool
    patterns: tuple[re.Pattern[str], ...]


def _row(name: str, exclusive: bool, *patterns: str) -> SlotRow:
    return SlotRow(name, exclusive, tuple(re.compile(rf"\b(?:{each})", re.IGNORECASE) for each in patterns))


SLOTS: tuple[SlotRow, ...] = (
    _row(
        "employer",
        True,
        r"(?:works?|worked|working|employed|interns?|interned|consults?) (?:full[- ]time |part[- ]time |remotely )?"
        r"(?:for|at|by) (?P<v>(?!home\b|night|least|noon|midnight|the (?:moment|office|weekend)|\d).+)",
        r"works? in (?P<v>(?:tech|finance|sales|marketing|retail|it|hr|healthcare|education|insurance|banking|law"
        r"|construction|logistics|research|media|advertising|hospitality|government|consulting)\b.*)",
        rf"(?:re)?(?:joined|joins|hired by|recruited by|was with|start(?:ed|s)? at|signed (?:with|for))"
        rf" (?P<v>{_NAME}.+)",
        r"(?:new |a |his |her |their )?(?:job|position|role) (?:at|with|is at) (?P<v>.+)",
        r"co-?founded|founded|(?:quit|quits|left|lost|resigned from|was fired from|retired from|was laid off from)"
        r" (?:his|her|their|my|the|user's)?\s?(?P<job>job|position|work)\b",
        rf"employer is|(?:is|was) (?:an? |the )?(?:\w+ ){{0,3}}?{_TITLE} (?:at|of|for|with) (?P<w>{_NAME}.+)",
        rf"(?:became|becomes|has become|promoted to|works? as|is now|was named|appointed) (?:an? |the )?(?:\w+"
        rf" ){{0,2}}?"
        rf"{_TITLE} (?:at|of|for|with) (?P<w>{_NAME}.+)",
        r"(?P<v>unemployed|between jobs|retired|self-employed|freelancing|out of work)",
    ),
    _row("employer", True, rf"is (?:back )?(?:at|with) (?P<v>{_NAME}\w+)(?= now\b|$)"),
    _row(
        "occupation",
        True,
        r"(?:works?|working|worked) as (?P<v>.+)",
        rf"(?:became|becomes|has become|promoted to|appointed|is now|retrained as) (?P<v>(?:an? |the )?(?:\w+"
        rf" ){{0,3}}?{_TITLE}\b.*)",
        rf"(?:is|was) (?P<v>(?:an? )(?!amateur|aspiring|hobby|former|keen|avid|retired|good|great)(?:\w+"
        rf" ){{0,3}}?{_TITLE})(?=[,.;]|$| (?:in|by|now|since|who|at|of|for|again)\b)",
        r"(?:occupation|job title|profession|position|role) is",
    ),
    _row(
        "home",
        True,
        r"(?:lives?|lived|living|resid(?:es?|ed|ing)|dwells?) (?:in|at|near|on|with) (?P<v>.+)",
        rf"(?:mov(?:ed|es|ing)|relocat(?:ed|es|ing)|emigrated|immigrated) (?:back |over |out |house |home "
        rf"|permanently )*"
        rf"(?:from .+? )?to (?P<v>(?:the |a |an )?{_NAME}.+)",
        rf"(?:got|found|rented) (?:his|her|their|an?|my|User's) (?:own |new )?(?:flat|apartment|house|place|home) in"
        rf" (?P<v>{_NAME}.+)",
        r"(?:settled (?:down )?in|returned to live in|home (?:town |city )?is(?: in)?|new home (?:is )?in)",
        r"(?:is|are|was|were) (?:now |currently )?(?:based|located|situated|headquartered|housed|hosted) (?:out of|in"
        r"|at|on)",
        r"(?:moved|relocated) to (?P<v>the .*(?:floor|building|room|street|road|avenue|campus|wing|office).*)",
        r"(?:address) is",
    ),
    _row(
        "hours",
        True,
        r"works? (?:mostly |mainly |only )?(?P<v>full[- ]time|part[- ]time|remotely|from home|nights?|night shifts?"
        r"|days"
        r"|day shifts?|on[- ]?site|hybrid|in the office)\b",
    ),
    _row(
        "name",
        True,
        r"name is|name's|(?:is|was) (?:renamed|called|named)|goes by|renamed to|changed (?:his|her|their) name to",
    ),
    _row("age", True, r"(?P<v>\d+) years old|turned (?P<w>\d+)", r"(?:age is|is) (?P<v>\d+)(?= now\b|$)"),
    _row("birthday", True, r"(?:birthday|date of birth) is|was born on"),
    _row(
        "diet",
        True,
        r"(?P<v>vegetarian|vegan|pescatarian|omnivore|flexitarian|carnivore|plant[- ]based|keto|gluten[- ]free diet)",
        r"(?:eats?|eating|ate|eaten) (?P<v>(?:any )?(?:red )?(?:meat|fish|animal products))",
    ),
    _row(
        "relationship",
        True,
        rf"(?:is|got|gets|am|are|was|recently|now|newly|happily) (?:now |recently |happily |newly"
        rf" )*(?P<v>{_RELATIONSHIP})",
        r"(?P<v>divorced|got (?:back )?together|proposed|remarried|separated from)",
        r"broke up|split up|broke off|called off the",
    ),
    _row(
        "partner",
        True,
        r"(?:wife|husband|girlfriend|boyfriend|partner|fianc[eé]e?|spouse) is (?:named |called )?(?P<v>(?-i:[A-Z]).+)",
    ),
    _row(
        "school",
        True,
        r"(?:stud(?:ies|ied|ying) at|attend(?:s|ed|ing)|(?:re-?)?enroll?ed (?:at|in)|(?:is|was) a student at|goes to"
        r" school"
        r" (?:at|in)|got into|accepted (?:at|into|to)) (?P<v>(?:the )?(?-i:[A-Z]).+)",
        r"(?:transferred|transfers|switched|returned|went back) to (?P<v>(?-i:[A-Z])[\w.& ]*?)(?= (?:in|for|after"
        r"|to)\b.*"
        r"(?:graduate|phd|degree|studies|school|program|master|bachelor|major|student))",
    ),
    _row(
        "contact",
        True,
        r"(?P<of>phone(?: number)?|mobile|cell|e-?mail(?: address)?|work e-?mail|number|handle|username) is",
    ),
    _row(
        "favourite",
        True,
        r"(?:all[- ]time )?favou?rite (?P<of>\w+) (?:of all time |these days |now |currently )?(?:is|are|was|has been"
        r"|becomes?|became)",
        r"(?:considers?|calls?|names?|ranks?|rates?) (?P<v>.+?) (?:as |to be )?(?:\w+ )?(?:all[- ]time )?"
        r"(?:favou?rite|top|best|greatest|number one) (?:\w+ )*?(?P<of>\w+)",
        r"(?P<of>\w+) of choice is",
    ),
    _row(
        "holder",
        True,
        r"(?=[\w' -]* is )"
        rf"(?:the |our |user's |current |new |acting |interim )*(?P<of>[\w' -]{{0,40}}?\b{_HOLDER}(?: (?:of|for)"
        rf" (?:the |our )?"
        rf"[\w' -]{{1,40}}?)?) is (?:now |currently |going to be )?(?P<v>(?-i:[A-Z]).+)",
        rf"^(?P<v>(?-i:[A-Z])[\w' -]{{0,30}}?) (?:now |currently )?{_HOLDS} {_GROUP}",
        rf"^(?P<v>(?-i:[A-Z])[\w' -]{{0,30}}?) (?:is|became|becomes|was named|has become) (?:now |currently )?(?:the "
        rf"|our"
        rf" )?(?:new )?"
        rf"(?:lead|head|manager|owner|director|maintainer|captain|coach|chair)(?: of| for) {_GROUP}",
        r"(?=[\w' -]* by )"
        rf"{_GROUP} (?:is|are) (?:now |currently )?(?:led|headed|owned|managed|run|chaired|maintained|coached) by"
        rf" (?P<v>(?-i:[A-Z]).+)",
        rf"(?:^|[;,] )(?P<v>{_NAME}[\w' -]{{0,30}}?) (?:is|was|became|becomes) (?:now )?(?P<of>\w+'s (?:new |current"
        rf" )?{_HOLDER})\b",
        rf"(?:^|[;,] )(?P<v>{_NAME}[\w' -]{{0,30}}?) (?:is|became|becomes|was named) (?:now )?(?:the |our )?(?:new )?"
        rf"(?P<role>{_HOLDER}) (?:of|for) (?:the |our )?(?P<of>[\w' -]{{1,40}})",
        rf"(?:^|[;,] )(?P<v>{_NAME}[\w' -]{{0,30}}?) (?:took over|takes over|has taken over|replaced|replaces"
        rf"|succeeded|succeeds)"
        rf" (?:from )?{_NAME}\w+(?: {_NAME}\w+)? as (?:the )?(?:new )?(?P<role>{_HOLDER}) (?:of|for) (?:the |our"
        rf" )?(?P<of>[\w' -]{{1,40}})",
        rf"^(?P<v>(?-i:[A-Z])[\w' -]{{0,30}}?) (?:replaced|replaces|succeeded|succeeds) (?-i:[A-Z])\w+(?:"
        rf" (?-i:[A-Z])\w+)? (?:as"
        rf" )?(?:the )?"
        rf"(?:lead|head|manager|owner|director|maintainer|captain|coach|chair)(?: of| for) {_GROUP}",
    ),
    _row("main", True, r"(?:primary|main|default|current|preferred|go-to|official) (?P<of>\w+(?: \w+)?) is"),
    _row(
        "method",
        False,
        r"(?:uses?|used|using|runs? on|ran on|deploys? (?:on|to|with)|builds? with|written in|codes? in|adopted|adopts"
        r"|(?:switched|migrated|moved|converted|transitioned|upgraded|changed|returned|went back|ported)"
        r" (?:over |back )?(?:from .+? )?to) (?P<v>.+)",
    ),
    _row(
        "vehicle",
        False,
        rf"(?:own|bought|purchas|driv|drove|leas|has|have|got|sold|trad|switched|upgrad)\w*\b.*?(?P<v>{_CAR}\b.*)",
    ),
    _row("vehicle", False, r"(?:hasn't|has not|never|doesn't|does not|stopped|quit) (?:\w+ )?(?:driven|drive|driving)"),
    _row(
        "pet",
        False,
        rf"(?:own|bought|adopt|has|have|got|rescu|los|died|passed away|keeps|after (?:his|her|their"
        rf"|user's))\w*\b.*?(?P<v>{_PET}\b.*)",
    ),
    _row("pet", False, rf"(?P<v>{_PET})\b.* (?:died|passed away)"),
)

ATTRIBUTES = frozenset(
    [
        "limit",
        "deadline",
        "price",
        "version",
        "budget",
        "rate",
        "cost",
        "fee",
        "date",
        "time",
        "password",
        "port",
        "url",
        "endpoint",
        "capacity",
        "size",
        "timeout",
        "status",
        "state",
        "location",
        "colour",
        "color",
        "theme",
        "language",
        "timezone",
        "quota",
        "target",
        "salary",
        "rent",
        "wage",
        "pay",
        "frequency",
        "interval",
        "schedule",
        "venue",
        "room",
        "branch",
        "name",
        "title",
        "owner",
        "region",
        "environment",
        "format",
        "database",
        "framework",
        "stack",
        "provider",
        "host",
        "priority",
        "level",
        "threshold",
        "goal",
        "headcount",
        "revenue",
        "subscription",
        "plan",
        "tier",
        "retention",
        "appointment",
        "meeting",
        "standup",
        "stand-up",
        "flight",
        "train",
        "lesson",
        "class",
        "shift",
        "exam",
        "call",
        "sync",
        "review",
        "retro",
        "dose",
        "dosage",
        "medication",
        "policy",
        "allowance",
        "bedtime",
        "alarm",
        "birthday",
        "weight",
        "height",
        "age",
        "address",
        "number",
        "email",
        "phone",
        "wifi",
        "code",
        "pin",
        "rule",
        "hours",
        "backend",
        "frontend",
        "stop",
        "gate",
        "seat",
        "interest",
        "premium",
        "mortgage",
    ]
)
"""Nouns of which a thing has one: "the deadline of the Falcon project", "the rate limit"."""

MEASURED = re.compile(
    r"\b(?:weigh(?:s|ed|t)?|temperature|blood pressure|heart rate|pulse|glucose|blood sugar|bpm|humidity|cpu|memory"
    r" usage"
    r"|load|latency|throughput|reading|mileage|odometer|steps|score|error rate|uptime|balance|measured|measurement"
    r"|level is"
    r"|count is|ran|run time|duration)\b",
    re.IGNORECASE,
)
"""What is measured again and again: a newer figure does not make the older one wrong."""

HINTS = {
    "mov": frozenset({"home", "method"}),
    "relocat": frozenset({"home"}),
    "join": frozenset({"employer", "occupation"}),
    "becam": frozenset({"employer", "occupation", "holder"}),
    "founded": frozenset({"employer", "occupation"}),
    "transfer": frozenset({"school", "employer"}),
    "return": frozenset({"school", "employer", "home", "method"}),
    "switch": frozenset({"method", "vehicle", "diet"}),
    "promot": frozenset({"employer", "occupation"}),
    "went": frozenset({"school", "employer", "home", "method", "diet"}),
    "start": frozenset({"diet"}),
    "quit": frozenset({"employer"}),
    "adopt": frozenset({"pet", "method"}),
}
"""What a verb of change is likely to be about, by its first letters."""
