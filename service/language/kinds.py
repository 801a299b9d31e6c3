"""The memory type of a text, one of seven, with its confidence; and its categories, a few words to filter and count by.

The order is explicit → `classify` (the published table) → an LLM or its offline stand-in `guess` →
UNCLASSIFIED. With `classifier_use_llm` off the third step is skipped and unmatched text is Context.

Categories come from a taxonomy, by the stems of its words; a text about none of them has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from service.domain.kinds import Classification, ClassificationSource, MemoryType
from service.language.lexemes import lexemes

EXPLICIT_CONFIDENCE = 0.9
UNCLASSIFIED = Classification(MemoryType.CONTEXT, 0.5, ClassificationSource.DEFAULT)
UNCLASSIFIED_FAILED = Classification(MemoryType.CONTEXT, 0.3, ClassificationSource.DEFAULT)
"""The model that was asked failed."""

# The published table, word for word and without word boundaries. The order of the types breaks ties.
PATTERNS: dict[MemoryType, tuple[str, ...]] = {
    MemoryType.DECISION: (r"decided to", r"chose (\w+) over", r"going with", r"opted for"),
    MemoryType.PATTERN: (r"usually", r"typically", r"tend to", r"often", r"consistently"),
    MemoryType.PREFERENCE: (r"prefer", r"like.*better", r"favorite", r"rather than"),
    MemoryType.STYLE: (r"wrote.*in.*style", r"communicated", r"formatted as"),
    MemoryType.HABIT: (r"always", r"every time", r"daily", r"weekly", r"routine"),
    MemoryType.INSIGHT: (r"realized", r"discovered", r"learned that", r"figured out"),
    MemoryType.CONTEXT: (r"during", r"while working on", r"in the context of", r"when"),
}

# The types a model would choose for the texts that the table does not classify; see `guess`.
_CUES: dict[MemoryType, str] = {
    MemoryType.DECISION: (
        r"\b(?:decid(?:e[sd]?|ing)|decision|chosen?|settled on|agreed (?:to|on|that)|opt(?:s|ing)? for|switch(?:ed|ing)"
        r"|migrat(?:ed|ing)|going forward|from now on|instead of|in favou?r of)\b"
        r"|^(?:we |i |the team )?(?:selected|adopted|picked|standardi[sz]ed on|consolidated|deprecated|rejected)\b"
    ),
    MemoryType.PATTERN: (
        r"\b(?:generally|commonly|frequently|normally|most of the time|more often than not|keeps? \w+ing"
        r"|recurr(?:ing|ent)|pattern|each time|again and again|repeatedly|tends)\b"
    ),
    MemoryType.PREFERENCE: (
        r"\b(?:likes?|loves?|enjoys?|adores?|hates?|dislikes?|can't stand|fan of|favou?rites?|wants?|would rather"
        r"|avoids?|by default|interested in|vegetarian|vegan)\b|^(?:please )?(?:never|don't|do not|default to|stick to"
        r"|avoid|use|keep)\b|\bis (?:the|my|our|their) default\b"
    ),
    MemoryType.STYLE: (
        r"\b(?:imperative|(?:present|past) tense|(?:active|passive) voice|tone|concise(?:ly)?|verbose|terse(?:ly)?"
        r"|bullet points?|markdown|indentation|camelcase|snake_?case|docstrings?|emojis?|commit messages?|wording|style"
        r"|(?:in)?formal(?:ly)?)\b|^(?:write|phrase|format|style|name|answer|reply|respond|explain)\b"
    ),
    MemoryType.HABIT: (
        r"\b(?:(?:every|each|most) (?:single )?(?:\w+day|day|morning|afternoon|evening|night|week|weekend|month|year)s?"
        r"|on (?:\w+days|weekends)|nightly|monthly|yearly|hourly|(?:once|twice|\w+ times) a (?:day|week|month|year)"
        r"|habit|ritual|as usual|before bed|first thing)\b"
    ),
    MemoryType.INSIGHT: (
        r"\b(?:root cause|turn(?:s|ed) out|found (?:out )?that|it seems that|lesson|learn(?:ed|t|ing)|takeaway|insight"
        r"|noticed|understood|reali[sz](?:e|es|ing)|discover(?:s|y|ing)|observed|confirmed that|caused by|because of"
        r"|workaround|the (?:problem|bug|issue|reason|trick) (?:is|was)|reduces?|leads? to|results? in)\b"
        r"|^(?:fixed|solved|resolved|debugged)\b[^.!?\n]+[.!?]\s+\w"  # a repair with its cause
    ),
}


def _ordered(pattern: str) -> re.Pattern[str]:
    """The pattern with its parts, cut at `.*`, each found at the first place after the one before: the same answer in
    linear time. Backtracking over "wrote.*in.*style" takes minutes on 10 kB of "wrote in wrote in"."""
    parts = pattern.split(".*")
    steps = "^" + "".join(f"(?>.*?{part})" for part in parts) if len(parts) > 1 else pattern
    return re.compile(steps, re.IGNORECASE | re.MULTILINE)


_PATTERNS = tuple((kind, tuple(_ordered(pattern) for pattern in patterns)) for kind, patterns in PATTERNS.items())
_RULES = tuple((kind, re.compile(cue, re.IGNORECASE | re.MULTILINE)) for kind, cue in _CUES.items())


def explicit(type_: MemoryType, confidence: float | None = None) -> Classification:
    """Returns the caller's own type, with confidence 0.9 unless the caller gives one."""
    return Classification(
        type_, EXPLICIT_CONFIDENCE if confidence is None else confidence, ClassificationSource.EXPLICIT
    )


def classify(text: str) -> Classification | None:
    """Returns the type with the most matching patterns, confidence 0.6 to 0.95; None when nothing matches."""
    best = _most((kind, sum(pattern.search(text) is not None for pattern in patterns)) for kind, patterns in _PATTERNS)
    if best is None:
        return None
    kind, matches = best
    return Classification(kind, round(min(0.95, 0.6 + 0.1 * (matches - 1)), 2), ClassificationSource.REGEX)


def guess(text: str) -> Classification | None:
    """Returns the type with the most cues of manner, rhythm, liking, choice and cause, confidence 0.5 to 0.7, or None.

    The offline stand-in for the model, for texts that `classify` leaves over.
    """
    best = _most((kind, len({match.group() for match in cue.finditer(text)})) for kind, cue in _RULES)
    return best and Classification(best[0], 0.5 if best[1] == 1 else 0.6, ClassificationSource.RULES)


def _most(counts: Iterable[tuple[MemoryType, int]]) -> tuple[MemoryType, int] | None:
    best = max(counts, key=lambda count: count[1])  # max keeps the first of equals: the table's order
    return best if best[1] else None


MAX_CATEGORIES = 5
_CHARS_READ = 4_000  # a text says at its beginning what it is about; this keeps long ones cheap
_PLACEHOLDER = re.compile(r"\[REDACTED[^\]]*\]")

TAXONOMY: Mapping[str, str] = {
    "database": "database, sql, postgres, mysql, sqlite, mongodb, redis, schema, query, index, migration, transaction",
    "programming": """code, codebase, function, bug, refactor, python, javascript, typescript, java, rust, library,
        framework, api, git, pull request, code review, merge, backend, frontend, repository""",
    "testing": "test, pytest, unit test, coverage, flaky, regression, qa, benchmark",
    "devops": "deploy, docker, kubernetes, terraform, pipeline, ci, server, monitoring, outage, rollback, production",
    "architecture": "architecture, microservice, monolith, scalability, latency, throughput, cache, queue",
    "artificial_intelligence": "llm, model, embedding, prompt, machine learning, neural network, gpt, chatbot",
    "security": "security, password, vulnerability, authentication, oauth, encryption, token, breach, login",
    "data_analysis": "analytics, dashboard, report, metric, statistics, chart, spreadsheet, forecast, survey",
    "design": "design, figma, logo, layout, typography, mockup, ux, ui, prototype",
    "project_management": "project, deadline, milestone, roadmap, sprint, backlog, launch, stakeholder, jira, priority",
    "team_workflow": "team, standup, stand-up, retrospective, workflow, onboarding, handover, convention, on-call",
    "meetings": "meeting, call, agenda, appointment, one-on-one, interview, workshop",
    "communication": "email, message, chat, slack, letter, reply, phone, feedback, newsletter, tone, writing style",
    "work": "work, job, office, career, boss, manager, employer, promotion, salary, company, colleague, internship",
    "business": "business, sales, revenue, contract, marketing, startup, investor, market, pricing, strategy, client",
    "finance": "money, budget, invoice, bank, loan, mortgage, tax, investment, stock, debt, insurance, rent, price",
    "legal": "law, lawyer, lawsuit, court, legal, license, compliance, gdpr, patent, visa, permit",
    "family": """family, mother, father, mom, mum, dad, sister, brother, son, daughter, child, kid, baby, parent, wife,
        husband, grandmother, grandfather, aunt, uncle, cousin""",
    "relationships": "friend, girlfriend, boyfriend, partner, wedding, married, engaged, divorce, neighbour, roommate",
    "pets": "pet, dog, cat, puppy, kitten, hamster, rabbit, vet",
    "health": """health, doctor, hospital, allergy, allergic, medication, sick, pain, therapy, surgery, dentist, diet,
        sleep, stress, diabetes, injury, headache, pregnancy""",
    "fitness": "gym, workout, exercise, yoga, marathon, jogging, cycling, swimming, hike",
    "food": """food, cook, recipe, restaurant, dinner, lunch, breakfast, coffee, tea, vegetarian, vegan, bake, cake,
        wine, beer, fruit, meat, fish, eat, drink, bread, peanut""",
    "travel": "travel, trip, flight, hotel, vacation, airport, visit, passport, abroad, holiday, booking",
    "transport": "car, bus, train, bike, drive, traffic, subway, commute, parking",
    "home": "house, home, apartment, flat, kitchen, garden, furniture, landlord, moved, sofa, rent, address, lives",
    "education": "school, university, college, student, teacher, course, exam, homework, degree, class, study, learn",
    "language_learning": "spanish, french, german, italian, japanese, vocabulary, grammar, fluent, translation",
    "entertainment": "movie, film, series, show, game, concert, theatre, comedy, podcast, festival",
    "music": "music, song, band, guitar, piano, violin, album, sing, choir, playlist, concert",
    "reading": "book, novel, author, library, poem, magazine, read",
    "sports": "football, soccer, tennis, basketball, baseball, hockey, golf, match, league, coach, ski, climbing",
    "hobbies": "hobby, paint, photography, knitting, gardening, pottery, chess, camping, fishing, sewing",
    "shopping": "shopping, buy, purchase, store, shop, gift, clothes, discount, delivery, refund, brand",
    "technology": "phone, laptop, computer, app, headphones, camera, printer, internet, software, hardware",
    "events": "birthday, party, christmas, thanksgiving, ceremony, conference, funeral, reunion, graduation",
    "schedule": "schedule, calendar, reminder, weekly, daily, every morning, appointment, routine, weekday",
    "personal_identity": "name is, birthday, born, age, nationality, years old, pronouns, religion",
    "politics": "election, president, minister, government, parliament, vote, policy, protest",
    "environment": "climate, weather, rain, storm, recycling, solar, energy, wildlife, forest",
    "science": "research, physics, chemistry, biology, experiment, scientist, space, mathematics",
}
"""The categories of the offline annotator, and the words that stand for them, compared by stem; a phrase of two words
counts as one. The order breaks ties. A model may name others."""


def _by_stem() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    table: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for category, words in TAXONOMY.items():
        for word in words.split(","):
            stems = tuple(lexemes(word))
            table.setdefault(stems[0], []).append((stems, category))
    return table


_CATEGORIES_BY_STEM = _by_stem()
_RANK = {category: rank for rank, category in enumerate(TAXONOMY)}


def name_categories(text: str) -> tuple[str, ...]:
    """Returns at most MAX_CATEGORIES categories in snake_case, most hits first; empty where a text names no topic.

    Ties go to the category mentioned first, then to the order of the taxonomy, so equal texts get equal answers.
    """
    stems = lexemes(_PLACEHOLDER.sub(" ", text[:_CHARS_READ]))
    hits: dict[str, set[tuple[str, ...]]] = {}
    first: dict[str, int] = {}
    for at, stem in enumerate(stems):
        for phrase, category in _CATEGORIES_BY_STEM.get(stem, ()):
            if tuple(stems[at : at + len(phrase)]) == phrase:
                hits.setdefault(category, set()).add(phrase)
                first.setdefault(category, at)
    # Different words count, repeats do not; a phrase weighs as many words as it has.
    weights = {category: sum(map(len, phrases)) for category, phrases in hits.items()}
    ranked = sorted(hits, key=lambda category: (-weights[category], first[category], _RANK[category]))
    return tuple(ranked[:MAX_CATEGORIES])
