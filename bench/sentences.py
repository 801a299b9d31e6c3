"""Generated sentences and questions for measuring speed.

The sentences are distinct, of ordinary length (7 to 25 words), and give every stage some work: dates, names, likes,
decisions, now and then a mail address.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


PEOPLE = _parts(
    "Mara, Jonas, Priya, Tomas, Aiko, Samir, Elena, Victor, Noor, Felix, Ingrid, Rafael, Dana, Oskar, Lucia, Hamid"
)
PLACES = _parts("Lisbon, Oslo, Kyoto, Denver, Nairobi, Vienna, Porto, Montreal, Leeds, Tallinn, Bologna, Hobart")
FIRMS = _parts("Northwind Labs, Harbor Freight Lines, Bluepeak, the city library, Orchard Health, Ferrum Tools")
THINGS = _parts(
    "sourdough bread, jazz records, trail running, old cameras, board games, green tea, pottery, night trains, "
    "chess puzzles, wild swimming, tomato plants, science podcasts, road bikes, woodwork, crosswords, spicy "
    "noodles, birdwatching, film noir"
)
TASKS = _parts(
    "the quarterly report, the kitchen renovation, the search index, the visa papers, a birthday party, the data "
    "migration, the school play, the garden fence, a grant proposal, the mobile release, the moving boxes, the "
    "choir concert"
)
TOOLS = _parts("Postgres, Rust, Figma, spreadsheets, Kubernetes, a paper notebook, Blender, Terraform, a label printer")
TIMES = _parts(
    "next Tuesday, tomorrow at 9, in two weeks, on March 14, last weekend, every Friday, this autumn, at the end "
    "of the month, since 2019, on Sunday evening, in the spring, two days ago"
)
REASONS = _parts(
    "because the old way took too long, since the doctor advised it, although it costs more, after a talk with a "
    "friend, to have the evenings free, because it rained all week, so that nobody has to wait, and it went "
    "better than expected"
)
PATTERNS = (
    "{person} prefers {thing} to {other} {reason}.",
    "I work with {person} at {firm} in {place} on {task}.",
    "We decided to use {tool} for {task} {reason}.",
    "{person} will finish {task} {time}, then travel to {place}.",
    "My sister {person} moved to {place} {time} and took up {thing}.",
    "Please remember that {task} is due {time} and {person} needs {number} copies.",
    "{person} usually starts the day with {thing} and keeps {number} notes about {other}.",
    "I learned {tool} {time}; it helped {person} with {task} {reason}.",
    "The meeting about {task} with {person} from {firm} is {time} in room {number}.",
    "{person} bought {number} tickets to {place} {time}, {reason}.",
    "Write to {mail} when {task} is done {time}.",
)
MAIL_EVERY = 40  # redaction is rare in real text

QUESTIONS = (
    "What does {person} like better than {other}?",
    "Where does {person} work on {task}?",
    "Which tool did we decide to use for {task}?",
    "When will {person} finish {task}?",
    "Where did my sister {person} move {time}?",
    "How many copies of {task} does {person} need?",
    "What does {person} usually start the day with?",
    "What helped {person} with {task} {time}?",
    "In which room is the meeting about {task} with {person} from {firm}?",
    "How many tickets to {place} did {person} buy {time}?",
    "Whom should I write to when {task} is done?",
)


def distinct(count: int, seed: int) -> list[str]:
    """Returns `count` distinct sentences; the same ones for the same seed."""
    return _first(count, _endless(random.Random(seed), PATTERNS))


def questions(count: int, seed: int) -> list[str]:
    """Returns `count` distinct questions about them, mostly of five words without stop words (3 to 8)."""
    return _first(count, _endless(random.Random(seed), QUESTIONS))


def _first(count: int, endless: Iterator[str]) -> list[str]:
    found: dict[str, None] = {}
    for sentence in endless:
        found[sentence] = None
        if len(found) == count:
            break
    return list(found)


def _endless(chance: random.Random, patterns: Sequence[str]) -> Iterator[str]:
    while True:
        pattern = patterns[-1] if chance.randrange(MAIL_EVERY) == 0 else chance.choice(patterns[:-1])
        thing, other = chance.sample(THINGS, 2)
        person, number = chance.choice(PEOPLE), chance.randrange(2, 900)
        yield pattern.format(
            person=person,
            place=chance.choice(PLACES),
            firm=chance.choice(FIRMS),
            thing=thing,
            other=other,
            task=chance.choice(TASKS),
            tool=chance.choice(TOOLS),
            time=chance.choice(TIMES),
            reason=chance.choice(REASONS),
            number=number,
            mail=f"{person.lower()}{number}@example.org",
        )
