"""What users tell over time, by how it bears on what they told before: the load of `bench.adds`.

A user talks about one subject, so that most of what is told is near to something known and still another thing; now and
then of another subject, in other words again, or of a change. `topic_of` tells the topic and form of a text, so that a
scripted model can answer as a good one would.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from bench.sentences import FIRMS, PEOPLE, PLACES, THINGS


class TellingCase(StrEnum):
    """How a telling bears on what the user told before."""

    FIRST = "nothing known"
    NEW = "nothing near"
    OTHER = "near, another thing"
    AGAIN = "told again"
    CHANGE = "a change"


SHARES = {TellingCase.NEW: 15, TellingCase.OTHER: 73, TellingCase.AGAIN: 5, TellingCase.CHANGE: 7}
"""Per cent of the tellings after the first. Of 1,361 facts in five long talks 14 % had no earlier one at a
similarity of 0.6 or more, 4 % said what one said, and 7 % ended one, by the rules."""

_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays")
VALUES: Mapping[str, Sequence[str]] = {
    "firm": FIRMS,
    "person": PEOPLE,
    "place": PLACES,
    "thing": THINGS,
    "day": _DAYS,
}


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing that has one value: told first, told again in other words, and changed."""

    first: str
    again: str
    change: str


SUBJECTS: tuple[tuple[Topic, ...], ...] = (
    (
        Topic("I work at {firm}.", "My employer is {firm}.", "I left my old job and work at {firm} now."),
        Topic("My manager at work is {person}.", "At work {person} is my boss.", "My manager is {person} now."),
        Topic("My desk is on floor {n}.", "I sit on floor {n} of the office.", "My desk was moved to floor {n}."),
        Topic("Our team meets on {day}.", "{day} are when the team meets.", "The team meeting was moved to {day}."),
        Topic("I share the project with {person}.", "{person} is on the project with me.", "{person} took my project."),
        Topic("The office is in {place}.", "My office is the one in {place}.", "The office moved to {place}."),
        Topic("At work I have {n} reports.", "{n} people report to me.", "I have {n} reports at work now."),
    ),
    (
        Topic("I live in {place}.", "My home is in {place}.", "I moved to {place}."),
        Topic("My flat has {n} rooms.", "There are {n} rooms in my flat.", "My flat has {n} rooms now."),
        Topic("I rent from {person}.", "It is {person} that I rent from.", "I rent from {person} now."),
        Topic("My neighbour is called {person}.", "{person} is my neighbour.", "My neighbour is {person} now."),
        Topic("My kitchen has {n} chairs.", "In my kitchen stand {n} chairs.", "I have {n} kitchen chairs now."),
        Topic(
            "The bins are emptied on {day}.",
            "{day} are when the bins are emptied.",
            "They empty the bins on {day} now.",
        ),
        Topic("My bike stands in the cellar of {person}.", "{person} keeps my bike.", "My bike is at {person}'s now."),
    ),
    (
        Topic("My favourite pastime is {thing}.", "I like {thing} best.", "My favourite pastime is {thing} now."),
        Topic("I take a class on {day}.", "On {day} I go to my class.", "My class was moved to {day}."),
        Topic("My teacher there is {person}.", "{person} is my teacher.", "{person} is my new teacher."),
        Topic("The club has {n} members.", "We are {n} in the club.", "The club has {n} members now."),
        Topic("The club meets in {place}.", "Our club is in {place}.", "The club moved to {place}."),
        Topic("I went to the fair with {person}.", "{person} came to the fair with me.", "{person} runs the fair now."),
        Topic("I own {n} books about {thing}.", "About {thing} I have {n} books.", "I have {n} books on {thing} now."),
    ),
)


@dataclass(frozen=True, slots=True)
class Telling:
    """A message of one sentence."""

    text: str
    case: TellingCase


class User:
    """Somebody who tells things, by chance but with a seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._own, *others = chance.sample(SUBJECTS, len(SUBJECTS))
        self._left = chance.sample(self._own, len(self._own))
        self._elsewhere = [topic for each in others for topic in chance.sample(each, len(each))]
        self._told: list[tuple[Topic, dict[str, object]]] = []

    def tell(self) -> Telling:
        """The next thing told; at most as many as there are topics."""
        case = self._chance.choices(list(SHARES), list(SHARES.values()))[0] if self._told else TellingCase.FIRST
        if case is TellingCase.OTHER and not self._left:
            case = TellingCase.NEW
        if case is TellingCase.AGAIN:
            topic, values = self._told.pop()
            shape = topic.again
        elif case is TellingCase.CHANGE:
            topic, values = self._told.pop()[0], self._values()
            shape = topic.change
        else:
            topic, values = (self._elsewhere if case is TellingCase.NEW else self._left).pop(), self._values()
            shape = topic.first
        self._told.append((topic, values))
        return Telling(shape.format(**values), case)

    def _values(self) -> dict[str, object]:
        return {"n": self._chance.randint(2, 40)} | {name: self._chance.choice(each) for name, each in VALUES.items()}


def of_users(users: int, each: int, seed: int) -> list[list[Telling]]:
    """What so many users tell, the same for the same seed."""
    chance = random.Random(seed)
    people = [User(chance) for _ in range(users)]
    return [[person.tell() for _ in range(each)] for person in people]


@dataclass(frozen=True, slots=True)
class Meaning:
    """Of which topic a text is, and how it tells it."""

    topic: Topic
    case: TellingCase


def meaning(text: str) -> Meaning | None:
    """What a telling means, None for another text; the speaker may stand in front."""
    bare = text.removeprefix("User: ")
    return next((found for pattern, found in _patterns() if pattern.fullmatch(bare)), None)


@cache
def _patterns() -> Sequence[tuple[re.Pattern[str], Meaning]]:
    shapes = [
        (shape, Meaning(topic, case))
        for topics in SUBJECTS
        for topic in topics
        for shape, case in (
            (topic.change, TellingCase.CHANGE),
            (topic.again, TellingCase.AGAIN),
            (topic.first, TellingCase.FIRST),
        )
    ]
    return [(re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(shape))), found) for shape, found in shapes]
