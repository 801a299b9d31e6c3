"""Categories of a text: a few words to filter and count by.

First the taxonomy, by the stems of its words; only where nothing of it fits, the text's own noun phrases, so that a
rare topic still has a name and the vocabulary stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from service.language.common_words import FUNCTION_WORDS
from service.language.lexemes import lexemes

MAX_CATEGORIES = 5
_MAX_PHRASES = 2
_CHARS_READ = 4_000  # a text says at its beginning what it is about; this keeps long ones cheap
_PLACEHOLDER = re.compile(r"\[REDACTED[^\]]*\]")
_LED = re.compile(
    r"\b(?:an?|the|my|your|his|her|our|their|its|this|that|some|any|every|each) ([^\W\d_]\w*(?: [^\W\d_]\w*)?)"
)
_ENDS_OF_VERBS = ("ing", "ed", "ly")

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


def _entries() -> Iterator[tuple[tuple[str, ...], str]]:
    for category, words in TAXONOMY.items():
        for word in words.split(","):
            stems = tuple(lexemes(word))
            if stems:
                yield stems, category


def _by_stem() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    table: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for stems, category in _entries():
        table.setdefault(stems[0], []).append((stems, category))
    return table


_TABLE = _by_stem()
_RANK = {category: rank for rank, category in enumerate(TAXONOMY)}


def name(text: str) -> tuple[str, ...]:
    """Returns at most MAX_CATEGORIES categories in snake_case, most hits first; empty where a text names no topic.

    Ties go to the category mentioned first, then to the order of the taxonomy, so equal texts get equal answers.
    """
    text = _PLACEHOLDER.sub(" ", text[:_CHARS_READ])
    return tuple(_from_taxonomy(text) or dict.fromkeys(_phrases(text)))[:MAX_CATEGORIES]


def _from_taxonomy(text: str) -> list[str]:
    stems = lexemes(text)
    hits: dict[str, set[tuple[str, ...]]] = {}
    first: dict[str, int] = {}
    for at, stem in enumerate(stems):
        for phrase, category in _TABLE.get(stem, ()):
            if tuple(stems[at : at + len(phrase)]) == phrase:
                hits.setdefault(category, set()).add(phrase)
                first.setdefault(category, at)
    return sorted(hits, key=lambda category: (-_weight(hits[category]), first[category], _RANK[category]))


def _weight(phrases: set[tuple[str, ...]]) -> int:
    """Different words count, repeats do not; a phrase weighs as many words as it has."""
    return sum(len(phrase) for phrase in phrases)


def _phrases(text: str) -> list[str]:
    """The first noun phrases, best guess: up to two content words in a row after an article or possessive."""
    phrases: list[str] = []
    for words in _LED.findall(text.casefold()):
        run = [re.sub(r"[^\w]+", "_", word) for word in words.split()]
        if any(word in FUNCTION_WORDS or word.endswith(_ENDS_OF_VERBS) for word in run[1:]):
            run = run[:1]
        if run[0] not in FUNCTION_WORDS and len(run[0]) > 2:
            phrases.append("_".join(run))
    return phrases[:_MAX_PHRASES]
