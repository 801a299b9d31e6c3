"""What a conversation has stated so far, and how the next clause changes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from service.language.facts import amend, compare, phases, reading, slots, statement
from service.language.facts.clauses import Clause
from service.language.facts.fact import USER, StatedFact
from service.language.facts.pronouns import About
from service.language.facts.relation import LinkKind
from service.language.facts.spelling import Mended

_LOOKS_BACK = 3  # a correction concerns one of the latest facts
_RATHER = re.compile(r"^(?:it is|that is|rather|but) (?P<value>.{1,40})$", re.IGNORECASE)


@dataclass(slots=True)
class ConversationState:
    """The facts so far.

    `asked`: the assistant's turn just before; `hearer`: who "you" is; `names`: people introduced, lower-case; `place`,
    `thing`: the last one named; `written`: the turn being read, whose spans are given as it was written.
    """

    facts: list[StatedFact] = field(default_factory=list)
    asked: str = ""
    hearer: str = "the assistant"
    about: About | None = None
    place: str | None = None
    thing: str | None = None
    names: set[str] = field(default_factory=set)
    written: Mended = field(default_factory=lambda: Mended(""))

    def take(
        self, found: Iterable[StatedFact], message: int, start: int, end: int, *, correction: bool = False
    ) -> None:
        """Takes facts in, with where they were said."""
        span = self.written.original(start), self.written.original(end)
        for each in found:
            self._add(replace(each, correction=correction, message=message, start=span[0], end=span[1]))

    def _add(self, new: StatedFact) -> None:
        """Leaves out what is known; drops the earlier fact that the new one replaces or says more exactly."""
        for at, old in enumerate(self.facts):
            same = new.correction and (new.slot, new.subject) == (old.slot, old.subject)
            if same and (slots.is_single(new.slot or "") or _both_named(new, old) or _both_kinds(new, old)):
                del self.facts[at]
                break
            relation = compare.relate(new, old)
            if relation is None or (phases.undecided(new) and not phases.undecided(old)):
                continue
            if relation.kind in (LinkKind.SAME, LinkKind.COARSER):
                return
            if relation.kind in (LinkKind.NEWER, LinkKind.ENDS, LinkKind.FINER):
                del self.facts[at]
                break
        self.facts.append(new)

    def introduce(self, found: Iterable[StatedFact]) -> None:
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
            text = amend.amended(old.text, old.value, fragment, nouns=not self.asked.rstrip().endswith("?"))
            if text:
                new = reading.read(text) or old
                span = (self.written.original(clause.start), self.written.original(clause.end))
                self.facts[at] = replace(
                    new, text=text, certainty="explicit", correction=True, message=message, start=span[0], end=span[1]
                )
                return True
        return False

    def take_back(self, text: str, message: int) -> bool:
        """Reads "I used to" and "just kidding" behind a statement; returns whether the clause was one of these."""
        last = self.facts[-1] if self.facts else None
        if last and last.message == message and (since := _USED_TO.match(text)):
            once = statement.once(last.text)
            fact = reading.read(f"{once} {since['when'] or ''}".strip()) if once else None
            if fact:
                self.facts[-1] = replace(fact, message=message, start=last.start, end=last.end)
            return fact is not None
        if _JOKE.match(text) and last and message - last.message <= 1:
            self.facts = [each for each in self.facts if each.start != last.start or each.message != last.message]
            return True
        return False

    def set_right(self, text: str, message: int, clause: Clause) -> bool:
        """Reads "it's Rob" behind "My name is not Bob"; returns whether that was the case."""
        found = _RATHER.match(text)
        old = self.facts[-1] if self.facts else None
        if not (found and old and old.message == message and old.slot and old.value and _DENIAL.search(old.text)):
            return False
        new = reading.read(_DENIAL.sub(r"\1", old.text, count=1).replace(old.value, found["value"]))
        if new is None or new.slot != old.slot:
            return False
        self.facts[-1] = replace(
            new, correction=True, message=message, start=old.start, end=self.written.original(clause.end)
        )
        return True


_USED_TO = re.compile(
    r"^(?:(?:or|at least|well|but) )?I (?:used to|did)(?: (?P<when>(?:until|till|before) .+))?$", re.IGNORECASE
)
_JOKE = re.compile(
    r"^(?:(?:I am|we are) )?(?:just|only|totally|obviously)? ?(?:kidding|joking|jk|a joke|messing with you)$",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(is|are|was|were)(?:n't| not)\b")


def _both_kinds(new: StatedFact, old: StatedFact) -> bool:
    """Whether both tell what the same thing is: "is a labrador", "is a golden retriever"."""
    a, b = (statement.parse(each.text) for each in (new, old))
    return (
        a.subject == b.subject != USER and a.verb == b.verb == "be" and all(s.rest[:2] in ("a ", "an") for s in (a, b))
    )


def _both_named(new: StatedFact, old: StatedFact) -> bool:
    """Whether both give a name to the same relative or animal."""
    named = (new.slot or "").startswith(("relationship:", "pet"))
    return named and all((each.value or "")[:1].isupper() or each.slot == "pet" for each in (new, old))
