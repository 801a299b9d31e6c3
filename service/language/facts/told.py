"""What has a conversation told so far, and what does the next clause change about it?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from service.language.facts import amend, compare, reading, slots
from service.language.facts.clauses import Clause
from service.language.facts.fact import USER, Fact
from service.language.facts.pronouns import About
from service.language.facts.relation import Kind
from service.language.facts.spelling import Mended

_LOOKS_BACK = 3  # a correction concerns one of the latest facts
_RATHER = re.compile(r"^(?:it is|that is|rather|but) (?P<value>.{1,40})$", re.IGNORECASE)


@dataclass(slots=True)
class Told:
    """The facts so far.

    `asked`: the assistant's turn just before; `hearer`: who "you" is; `names`: people introduced, lower-case; `place`,
    `thing`: the last one named; `written`: the turn being read, whose spans are given as it was written.
    """

    facts: list[Fact] = field(default_factory=list)
    asked: str = ""
    hearer: str = "the assistant"
    about: About | None = None
    place: str | None = None
    thing: str | None = None
    names: set[str] = field(default_factory=set)
    written: Mended = field(default_factory=lambda: Mended(""))

    def take(self, found: Iterable[Fact], message: int, start: int, end: int, *, correction: bool = False) -> None:
        """Takes facts in, with where they were said."""
        span = self.written.original(start), self.written.original(end)
        for each in found:
            self._add(replace(each, correction=correction, message=message, start=span[0], end=span[1]))

    def _add(self, new: Fact) -> None:
        """Leaves out what is known; drops the earlier fact that the new one replaces or says more exactly."""
        for at, old in enumerate(self.facts):
            if (
                new.correction
                and (new.slot, new.subject) == (old.slot, old.subject)
                and slots.is_single(new.slot or "")
            ):
                del self.facts[at]
                break
            relation = compare.relate(new, old)
            if relation is None:
                continue
            if relation.kind in (Kind.SAME, Kind.COARSER):
                return
            if relation.kind in (Kind.NEWER, Kind.ENDS, Kind.FINER):
                del self.facts[at]
                break
        self.facts.append(new)

    def introduce(self, found: Iterable[Fact]) -> None:
        """Notes the names of people that facts speak of."""
        for each in found:
            if not each.subject.startswith(USER) and each.subject[:1].isupper():
                self.names.add(each.subject.lower())
                self.about = About(each.subject, "?")
            if each.slot in ("children", "pet"):
                self.names |= {name.lower() for name in re.findall(r"(?<=[\w,] )[A-Z][a-z]+", each.text)}
            if each.slot and each.slot.startswith("relationship:") and each.value and each.value[:1].isupper():
                self.names.add(each.value.split()[0].lower())

    def amend(self, fragment: str, message: int, clause: Clause) -> bool:
        """Corrects the latest fact that a fragment fits ("I meant Thursday"); returns whether one did."""
        for at in range(len(self.facts) - 1, max(-1, len(self.facts) - 1 - _LOOKS_BACK), -1):
            old = self.facts[at]
            text = amend.amended(old.text, old.value, fragment)
            if text:
                new = reading.read(text) or old
                span = (self.written.original(clause.start), self.written.original(clause.end))
                self.facts[at] = replace(
                    new, text=text, certainty="explicit", correction=True, message=message, start=span[0], end=span[1]
                )
                return True
        return False

    def set_right(self, text: str, message: int, clause: Clause) -> bool:
        """Reads "it's Rob" behind "My name is not Bob"; returns whether that was the case."""
        found = _RATHER.match(text)
        old = self.facts[-1] if self.facts else None
        if not (found and old and old.message == message and old.slot and old.value and f"not {old.value}" in old.text):
            return False
        new = reading.read(old.text.replace(f"not {old.value}", found["value"]))
        if new is None or new.slot != old.slot:
            return False
        self.facts[-1] = replace(
            new, correction=True, message=message, start=old.start, end=self.written.original(clause.end)
        )
        return True
