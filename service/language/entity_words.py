"""Words beside or inside a capitalised name that tell its type."""

from __future__ import annotations

import re

from service.language import wordlists

TITLES = wordlists.words("""
    mr mrs ms miss dr prof professor sir madam captain colonel general sergeant officer president senator governor
    mayor chancellor minister king queen prince princess pope judge coach chef uncle aunt auntie grandma grandpa
    granny nana cousin father sister brother saint ceo cto cfo dean
""")

# A run that ends (or begins) with one of these is of that type.
LAST_WORDS: dict[str, str] = {
    word: kind
    for kind, words in {
        "organization": """inc corp corporation llc ltd limited gmbh ag plc co company university college institute
        institution hospital clinic foundation school academy association agency ministry council committee
        commission bureau federation labs laboratories technologies systems solutions studios software ventures capital
        partners holdings industries airlines airways motors pharmaceuticals bank insurance court police army navy
        party parliament fc museum library theatre theater orchestra church bakery cafe café restaurant bistro pizzeria
        group consulting logistics robotics analytics media press records times post journal gazette""",
        "location": """street avenue road lane boulevard river lake mountain mountains park beach island islands city
        county province district airport station bay valley bridge square canyon forest desert ocean sea peninsula
        heights hills falls harbor harbour plaza castle tower stadium coast village square trail strait hotel""",
        "event": """conference conf summit festival cup olympics championship championships marathon awards war election
        elections hackathon con week expo fair games tournament prix gala meetup convention symposium derby""",
        "project": "project initiative programme",
        "technology": "api sdk framework database engine protocol compiler runtime",
        "product": "watch phone pro max mini ultra",
    }.items()
    for word in words.split()
}
FIRST_WORDS: dict[str, str] = {
    "project": "project",
    "operation": "project",
    "lake": "location",
    "mount": "location",
    "mt": "location",
    "san": "location",
    "santa": "location",
    "fort": "location",
    "port": "location",
    "cape": "location",
    "university": "organization",
    "bank": "organization",
    "ministry": "organization",
    "department": "organization",
    "institute": "organization",
    "battle": "event",
}

# What stands right before or behind a name, lower-cased, and what it makes of it.
NOUNS: dict[str, str] = {
    word: kind
    for kind, words in {
        "project": """project projects repo repository codebase initiative monorepo milestone codename service
        microservice""",
        "technology": "library framework database language protocol package api sdk model cluster orm runtime queue",
        "tool": "app tool plugin extension cli ide editor dashboard bot linter",
        "product": "phone laptop headphones console camera album song novel series movie game car bike",
        "organization": "company startup firm agency employer university school bank vendor supplier ngo band bakery",
        "location": "city town village island river lake neighborhood neighbourhood region district suburb coast",
        "event": "conference festival tournament hackathon summit meetup marathon",
        "person": """friend boyfriend girlfriend wife husband spouse fiance fiancé fiancée partner son daughter
        brother sister mother father mom mum dad boss manager colleague coworker teammate roommate neighbor
        neighbour teacher tutor mentor therapist doctor dentist landlord nephew niece dog cat puppy kitten baby
        designer engineer developer intern lawyer assistant recruiter client author singer actor actress founder ceo
        cto lead""",
    }.items()
    for word in words.split()
}
NAMING = frozenset({"named", "called", "nicknamed", "codenamed"})

PERSON_BEFORE = wordlists.words("""
    with told tell met meet asked ask called call emailed email texted text thanked thank married dating hired
    invited helped mentored visiting by miss remind reminded message messaged cc owes owe congratulate congratulated
    spoke interviewed paired babysit babysat phoned paid pay dear hi hello hey thanks sorry
""")
PERSON_AFTER = wordlists.words("""
    said says say told tells asked asks thinks thought wants wanted likes liked loves loved prefers preferred hates
    hated works worked lives lived moved joined mentioned mentions suggested suggests reported called calls went
    goes got bought plays played agreed decided invited enjoys enjoyed wrote writes speaks spoke sent gave helped
    met married studies studied teaches taught drives drove cooks cooked feels felt knows knew promised owns
    volunteered baked broke adopted graduated handles reviewed reviews approved owes confirmed needs needed quit
    retired offered planted painted explained argued complained apologized sings practices practises recommended
    borrowed presented leads mentors
""")
WORK_BEFORE = re.compile(
    r"\b(?:(?:works?|worked|working|employed|intern(?:ed|s|ing)?|job|role|position|engineer|manager|developer|designer"
    r"|analyst|nurse|teacher|contract\w*|consult\w*|interview\w*|offer|study|studies|studied|degree|phd|professor) "
    r"(?:\w+ )?(?:at|for|by|with|from)|joined|joins|joining|left|acquired(?: by)?|hired by|employees? of|ceo of|cto of"
    r"|founder of|invest(?:ed|or|ors) in|customers? of|shares of|bank with|insured (?:by|with)) (?:the )?$",
    re.IGNORECASE,
)
PLACE_BEFORE = re.compile(
    r"\b(?:(?:in|near|around|outside|toward|towards|across|visit(?:ed|ing|s)?|leaving|explor(?:e|ed|ing)|tour(?:ed"
    r"|ing)?)"
    r"|(?:move[ds]?|moving|fl(?:ew|y|ying|ies)|drove|driv(?:e|ing|es)|travel(?:l?ed|l?ing|s)?|trip|trips|went"
    r"|go(?:es|ing)?"
    r"|back|relocat(?:ed|ing|e)|hik(?:ed|ing|e)|train|bus|ferry|flight|tickets?|way|road|sail(?:ed"
    r"|ing)?) (?:\w+ )?(?:to|from|for)"
    r"|(?:is|are|was|were|am|comes?|came|originally|grew up) from|capital of|north of|south of|east of"
    r"|west of) (?:the )?$",
    re.IGNORECASE,
)
TECHNOLOGY_BEFORE = re.compile(
    r"\b(?:us(?:e|es|ed|ing)|(?:written|wrote|built|implemented|coded|rewritten|rewrote|powered|backed|packaged"
    r"|deployed"
    r"|hosted|run(?:s|ning)?|running|based|compiled|serialised|serialized) (?:\w+ )?(?:in|with|by|on|to|via)"
    r"|(?:switch(?:ed|ing)?|migrat(?:e|ed|ing)|port(?:ed|ing)?|mov(?:e|ed|ing)) (?:\w+ )?(?:to|from|off)"
    r"|install(?:ed|ing|s)?|upgrad(?:e|ed|ing)|configur(?:e|ed|ing)|import(?:ed|ing)?|integrat(?:e|ed|ing)(?: with)?"
    r"|deploy(?:ed|ing)?|adopt(?:ed|ing)?|chose|via|try|tried|trying|learn(?:ing|ed|s)?|evaluat(?:e|ed"
    r"|ing)) (?:the )?$",
    re.IGNORECASE,
)
AUXILIARIES = wordlists.words("""
    is was are were has had have will would can could should may might must does did isn't wasn't doesn't didn't
    won't
""")
CONNECTORS = frozenset({"of", "de", "van", "von", "der", "del", "di", "da", "la", "le", "du", "al", "bin", "&"})
