"""How does each thing that is remembered read in a prompt? One line each, headings above. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from service.domain.bundle import EntityItem
from service.domain.conversation import Turn
from service.domain.goal import Goal
from service.domain.memory import Memory
from service.domain.procedure import StrategyMatch
from service.domain.profile import Profile
from service.retrieval.packing import Line, Piece, one_line

HEADINGS: Mapping[str, str] = MappingProxyType(
    {
        "user_context": "## About the user",
        "goals": "## Active goals",
        "facts": "## Known facts",
        "entities": "## People and things",
        "strategies": "## What has worked",
        "turns": "## Said before",
    }
)

FIRST = 1e9
"""Score of what is taken before everything else."""


def passage(turns: Sequence[Turn], score: float) -> Piece:
    """Turns that belong together, under the heading of their conversation."""
    first = turns[0]
    name = one_line(first.scope.run_id or str(first.conversation_id))[:60]
    heading = f"### {first.timestamp:%Y-%m-%d} ({name})"
    return Piece("turns", score, tuple(_spoken(turn) for turn in turns), group=(first.conversation_id, heading))


def _spoken(turn: Turn) -> Line:
    told = f"{one_line(turn.speaker or turn.role)}: {one_line(turn.text)}"
    return Line((turn.conversation_id, turn.index), told, (str(turn.conversation_id), turn.index))


def fact(memory: Memory, score: float) -> Piece:
    text = f"- {one_line(memory.text)} ({memory.timestamp:%Y-%m-%d})"
    return Piece("facts", score, (Line(memory.id, text, (memory.timestamp, str(memory.id))),))


def entity(item: EntityItem, score: float) -> Piece:
    known = item.entity
    parts = [f"- {one_line(known.name)} ({known.type})"]
    if known.description:
        parts.append(one_line(known.description))
    parts += [one_line(f"{each.source} {each.label} {each.target}") for each in item.relations]
    text = parts[0] if len(parts) == 1 else f"{parts[0]}: {'; '.join(parts[1:])}"
    return Piece("entities", score, (Line(known.id, text, (known.name, str(known.id))),))


def strategy(found: StrategyMatch, score: float) -> Piece:
    known = found.strategy
    when = f"when {one_line(known.context_pattern)}: " if known.context_pattern else ""
    tools = f" ({', then '.join(one_line(tool) for tool in known.tool_sequence)})" if known.tool_sequence else ""
    tried = known.success_count + known.failure_count
    text = f"- {when}{one_line(known.description)}{tools}; worked {known.success_count} of {tried} times"
    return Piece("strategies", score, (Line(known.id, text, (-score, str(known.id))),))


def goal(goal: Goal, now: datetime) -> Piece:
    due = ""
    if goal.deadline is not None:
        due = f", {'overdue since' if goal.is_overdue(now) else 'due'} {goal.deadline:%Y-%m-%d}"
    text = f"- {one_line(goal.description)} (priority {goal.priority}{due})"
    return Piece("goals", FIRST + goal.priority, (Line(goal.id, text, (-goal.priority, str(goal.id))),))


def context(profile: Profile) -> list[Piece]:
    """A line for each part of the profile that says something."""
    traits = profile.traits
    parts = {
        "preferences": _pairs(traits.preferences),
        "expertise": ", ".join(_plain(each) for each in traits.expertise_areas),
        "communication style": _pairs(traits.communication_style),
    }
    return [
        Piece("user_context", 2 * FIRST - place, (Line(name, f"- {name}: {one_line(said)}", (place,)),))
        for place, (name, said) in enumerate(parts.items())
        if said
    ]


def _pairs(values: Mapping[str, object]) -> str:
    return "; ".join(f"{name}: {_plain(value)}" for name, value in values.items())


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(each) for each in value)
    return str(value)
