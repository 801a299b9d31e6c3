"""Nouns that name a trade, a relative, an animal, a food, an illness.

Lists for the slots; a role is also known by its ending ("-ologist", "-ician").
"""

from __future__ import annotations

import re

from service.language import wordlists

ROLES = wordlists.words("""
    engineer developer programmer coder designer architect manager director lead head chief officer analyst scientist
    researcher teacher professor lecturer tutor nurse doctor physician surgeon dentist pharmacist vet veterinarian
    paramedic midwife therapist psychologist counselor counsellor lawyer attorney paralegal judge accountant auditor
    bookkeeper banker trader broker economist consultant contractor freelancer founder cofounder co-founder entrepreneur
    owner ceo cto cfo coo cmo vp president chairman administrator admin sysadmin dba assistant secretary receptionist
    clerk cashier salesperson salesman saleswoman marketer recruiter writer author journalist reporter editor
    copywriter blogger translator interpreter photographer videographer filmmaker actor actress musician singer
    drummer composer producer artist painter sculptor illustrator animator dancer choreographer chef cook baker barista
    bartender waiter waitress server butcher farmer gardener florist carpenter electrician plumber mechanic welder
    builder mason roofer driver trucker pilot captain sailor soldier officer policeman firefighter detective guard
    librarian archivist curator historian biologist chemist physicist mathematician statistician geologist astronomer
    student intern apprentice trainee graduate postdoc undergraduate phd barber hairdresser stylist tailor seamstress
    jeweler model coach trainer instructor referee nanny babysitter caregiver carer cleaner janitor housekeeper
    janitor courier mailman postman fisherman miner operator technician tester specialist strategist planner
    coordinator supervisor associate partner principal representative agent broker realtor inspector surveyor advisor
    adviser evangelist streamer youtuber influencer podcaster dj minister priest pastor rabbi imam monk diplomat
    politician mayor senator volunteer translator beekeeper brewer sommelier optician radiologist anesthesiologist
    zookeeper lifeguard superintendent foreman machinist steward stewardess paraeducator headmaster headteacher dean
    executive buyer merchandiser shopkeeper hygienist physio physiotherapist dietitian nutritionist socialworker worker
""")
_ROLE_ENDING = re.compile(r"(?:ologist|ician|ographer|keeper|smith|wright|maker)$")
NOT_ROLES = wordlists.words("""
    musician magician politician person lover fan parent father mother dad mom runner cyclist swimmer reader gamer
    beginner newbie vegetarian vegan pescatarian native citizen resident member owl bookkeeper
""") - wordlists.words("musician bookkeeper politician")
STUDENT_AGES = wordlists.words("kid child teenager teen baby boy girl student toddler")

SPOUSES = wordlists.words("wife husband spouse partner fiance fiancé fiancée fiancee girlfriend boyfriend bf gf")
SINGLE_KIN = SPOUSES | wordlists.words("mother father mom mum dad boss manager mother-in-law father-in-law landlord")
KIN = SINGLE_KIN | wordlists.words("""
    sister brother son daughter child kid baby grandmother grandfather grandma grandpa granny aunt uncle cousin niece
    nephew friend colleague coworker co-worker teammate roommate flatmate housemate neighbor neighbour mentor mentee
    teacher tutor coach trainer therapist doctor dentist client assistant stepmother stepfather stepson stepdaughter
    stepsister stepbrother stepdad stepmom twin grandson granddaughter sister-in-law brother-in-law godmother
    godfather gran nan nana auntie stepmum mam mummy mommy daddy grandad granddad godson goddaughter ex-wife
    ex-husband ex babysitter nanny accountant lawyer supervisor cofounder co-founder
""")
FEMALE = wordlists.words("""
    gran nan nana auntie stepmum mam mummy mommy wife girlfriend gf fiancée fiancee mother mom mum sister daughter
    grandmother grandma granny aunt niece stepmother stepdaughter stepsister stepmom granddaughter mother-in-law
    sister-in-law godmother goddaughter ex-wife girl
""")
MALE = wordlists.words("""
    daddy grandad granddad husband boyfriend bf fiancé fiance father dad brother son grandfather grandpa uncle nephew
    stepfather stepson stepbrother stepdad grandson father-in-law brother-in-law godfather godson ex-husband boy
""")
ANIMALS = wordlists.words("""
    dog cat puppy kitten rabbit bunny hamster guinea-pig parrot bird budgie cockatiel canary fish goldfish turtle
    tortoise snake lizard gecko horse pony goat sheep cow pig chicken duck ferret rat mouse hedgehog chinchilla pet
    retriever labrador lab poodle beagle corgi husky dachshund bulldog terrier shepherd collie spaniel pug dalmatian
    tabby siamese persian greyhound whippet chihuahua schnauzer rottweiler boxer dogs cats parrots birds rabbits
    hamsters horses puppies kittens chickens goats pets iguana axolotl donkey alpaca llama
""")
LANGUAGES = wordlists.words("""
    english spanish french german italian portuguese dutch swedish norwegian danish finnish icelandic polish czech
    slovak hungarian romanian bulgarian serbian croatian bosnian slovenian greek turkish russian ukrainian belarusian
    lithuanian latvian estonian albanian arabic hebrew persian farsi urdu hindi bengali punjabi tamil telugu marathi
    gujarati kannada malayalam nepali sinhala thai vietnamese indonesian malay tagalog filipino burmese khmer lao
    chinese mandarin cantonese japanese korean mongolian swahili zulu xhosa afrikaans amharic yoruba igbo hausa somali
    irish welsh gaelic basque catalan galician latin esperanto maltese georgian armenian azerbaijani kazakh uzbek
    pashto kurdish tibetan hawaiian maori quechua asl
""")
NATIONALITY = re.compile(
    r"^(?:[A-Z][a-z]+(?:ese|ish|ian|ean|can|gan|lan|quan)|French|Dutch|German|Greek|Thai|Swiss|Czech|Iraqi"
    r"|Israeli|Pakistani|Saudi|Welsh|Afghan|Filipin[oa]"
    r"|Latin[oax]|Hispanic|Jewish|Muslim|Christian|Catholic|Buddhist|Hindu|Sikh|Kiwi|Aussie|Asian|European"
    r"|African|American|Kenyan)$"
)
# Countries' and religions' adjectives look like first names; these first names look like them.
FIRST_NAMES = wordlists.words(
    "Christian Ian Brian Julian Adrian Vivian Lilian Gillian Sebastian Damian Fabian Killian Dorian Jillian"
    " Maximilian Florian Marian Cristian"
)

ILLNESS = re.compile(
    r"\b(?:diabet\w+|asthma\w*|migraines?|arthritis|hypertension|high blood pressure|low blood pressure"
    r"|depression|anxiety|adhd|add|autis\w+|dyslexi\w+|insomnia|anemia|anaemia"
    r"|celiac(?: disease)?|coeliac(?: disease)?|crohn'?s|ibs|epilepsy|eczema|psoriasis|scoliosis|tinnitus"
    r"|vertigo|sleep apnea|back pain|back problems|chronic \w+|a bad (?:back|knee|hip|shoulder)"
    r"|cancer|hiv|copd|ptsd|ocd|bipolar(?: disorder)?|lupus|endometriosis|fibromyalgia|allerg(?:y|ies)|hay fever"
    r"|\w+itis|\w+(?:emia|osis|pathy)|\w+ (?:disease|syndrome|disorder|condition|deficiency|intolerance)"
    r"|a pacemaker|heart (?:disease|condition|problems)|a broken \w+|a torn \w+|a sprained \w+|covid|the flu)\b",
    re.IGNORECASE,
)

MEATS = wordlists.words(
    "meat beef pork chicken lamb steak bacon ham turkey burgers burger sausage sausages poultry steaks veal duck"
)
FISHES = wordlists.words("fish seafood salmon tuna sushi shrimp shellfish")
DAIRY = wordlists.words("dairy milk cheese yogurt yoghurt butter")
DIETS = wordlists.words("""
    vegetarian veggie vegan pescatarian pescetarian carnivore omnivore flexitarian plant-based gluten-free dairy-free
    lactose-intolerant keto paleo halal kosher celiac coeliac teetotaler teetotal sober lactose
""")
_ARTICLE = re.compile(r"^(?:an?|the|their|his|her|my|our)\s+", re.IGNORECASE)


def is_role(noun_phrase: str) -> bool:
    """Returns whether a phrase names a trade or a position: "senior data engineer", "ML lead", "marine biologist"."""
    words = _ARTICLE.sub("", noun_phrase.strip()).lower().replace("/", " ").split()
    if not words or len(words) > 6 or {"to", "here", "there", "not"} & set(words):
        return False
    head = words[-1].rstrip(",.")
    if head in NOT_ROLES:
        return False
    return head in ROLES or head.rstrip("s") in ROLES or _ROLE_ENDING.search(head) is not None


_SAME_KIN = {
    alias: name
    for name, aliases in {
        "mother": "mom mum mam mummy mommy",
        "father": "dad daddy",
        "boyfriend": "bf",
        "girlfriend": "gf",
        "child": "kid",
        "grandmother": "grandma granny gran nan nana",
        "grandfather": "grandpa grandad granddad",
        "aunt": "auntie",
        "boss": "manager",
        "colleague": "coworker co-worker",
        "neighbor": "neighbour",
        "roommate": "flatmate housemate",
        "cofounder": "co-founder",
        "fiancée": "fiancee",
        "fiancé": "fiance",
    }.items()
    for alias in aliases.split()
}


def kin(noun_phrase: str) -> str | None:
    """Returns the relation that a phrase ends in or names first: "older sister" is a sister, "wife anna" a wife."""
    words = noun_phrase.lower().split()
    found = next((word for word in reversed(words) if word in KIN), None)
    return _SAME_KIN.get(found, found) if found else None


_SPECIES = {
    each: species
    for species, breeds in {
        "dog": """dogs puppy puppies retriever labrador lab poodle beagle corgi husky dachshund bulldog terrier shepherd
            collie spaniel pug dalmatian greyhound whippet chihuahua schnauzer rottweiler boxer""",
        "cat": "cats kitten kittens tabby siamese persian",
        "rabbit": "rabbits bunny bunnies",
        "bird": "birds budgie cockatiel canary parrot parrots",
        "horse": "horses pony",
    }.items()
    for each in breeds.split()
}


def species(noun_phrase: str) -> str | None:
    """Returns the kind of animal that a phrase names: "golden retriever puppy" is a dog."""
    found = animal(noun_phrase)
    return _SPECIES.get(found, found.removesuffix("s")) if found else None


def animal(noun_phrase: str) -> str | None:
    """Returns the animal that a short phrase names: "golden retriever puppy" is a puppy."""
    words = [word.strip(",.").lower() for word in noun_phrase.split()]
    return next((word for word in words if word in ANIMALS), None)
