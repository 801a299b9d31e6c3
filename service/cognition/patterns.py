"""Finds ways of doing a task that worked, from the tools that conversations used. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

MIN_STEPS, MAX_STEPS = 2, 20
"""A single tool is not a procedure; in a longer sequence it is unclear what mattered."""


@dataclass(frozen=True, slots=True)
class TaskUses:
    """The tools that a conversation used for one type of task, in their order, and whether each use worked.

    `abandoned`: a goal of the conversation was given up. `learned`: the tool sequences of strategies for this task that
    have counted this conversation already.
    """

    conversation_id: UUID
    task_type: str
    tools: tuple[str, ...]
    successes: tuple[bool, ...]
    abandoned: bool
    learned: tuple[tuple[str, ...], ...]

    @property
    def succeeded(self) -> bool:
        """Whether the last use worked, and no goal was given up."""
        return self.successes[-1] and not self.abandoned

    @property
    def sequence(self) -> tuple[str, ...]:
        """The steps: for a success those that worked, for a failure all that were tried. Repeated use of the same tool
        is one step."""
        uses = zip(self.tools, self.successes, strict=True)
        steps = [tool for tool, worked in uses if worked or not self.succeeded]
        return tuple(tool for tool, _ in groupby(steps))

    @property
    def is_counted(self) -> bool:
        return self.sequence in self.learned


def find_same_sequence(uses: TaskUses, others: Sequence[TaskUses], *, at_least: int) -> list[TaskUses]:
    """The uses of the same task and sequence, if it worked in at least `at_least` of them; else none. `others` may
    include `uses`."""
    if not MIN_STEPS <= len(uses.sequence) <= MAX_STEPS:
        return []
    same = [other for other in others if other.task_type == uses.task_type and other.sequence == uses.sequence]
    return same if sum(each.succeeded for each in same) >= at_least else []


def describe(sequence: Sequence[str]) -> str:
    """The description of a strategy: the names of its tools, since nothing else was observed."""
    return ", then ".join(sequence)
