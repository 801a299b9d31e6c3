"""Compares news about somebody's work with what is known of it.

"Works in tech" becomes "works at Google as a senior engineer", a new employer ends the old one, a promotion keeps the
employer.
"""

from __future__ import annotations

import re
from dataclasses import replace

from service.language.facts import jobs, statement, values
from service.language.facts.jobs import Employment
from service.language.facts.relation import FactLink, LinkKind
from service.language.facts.values import Match

_SIDE_JOB = re.compile(
    r"\b(?:also|second job|side (?:job|gig|business|hustle|project)|on the side|part[- ]time|in addition"
    r"|volunteers?|on weekends|freelances?)\b",
    re.IGNORECASE,
)


def job(text: str) -> Employment | None:
    """Returns the work that a sentence tells of."""
    return jobs.read(statement.parse(text))


def relate(
    new_text: str, old_text: str, *, gone: tuple[bool, bool], ahead: tuple[bool, bool], ends: bool, over: bool
) -> FactLink | None:
    """Returns what news about work is to a stored fact about work; the flags tell when each holds."""
    new, old = job(new_text), job(old_text)
    if new is None or old is None:
        return None
    if new.without or new.over or ends or gone[0]:
        return _ending(new, old, past=gone[0] or ends, stands=not (gone[1] or over or old.over))
    if gone[1]:
        return FactLink(LinkKind.APART, "the old one is past")
    if over and not old.over:
        return (
            FactLink(LinkKind.FULFILS, "works there again")
            if _alike(new.employer, old.employer) or _alike(new.role, old.role)
            else FactLink(LinkKind.APART, "the old one is past")
        )
    if ahead[0] and not ahead[1]:
        return FactLink(LinkKind.APART, "still to come")
    if ahead[1] and not ahead[0]:
        return (
            FactLink(LinkKind.FULFILS, "the plan came true")
            if _alike(new.employer, old.employer)
            else FactLink(LinkKind.APART, "still to come")
        )
    if old.over:
        same = not old.employer or _alike(new.employer, old.employer)
        return FactLink(LinkKind.FULFILS, "works again") if same else FactLink(LinkKind.APART, "another employer")
    if old.without:
        return FactLink(LinkKind.NEWER, "works again")
    if _SIDE_JOB.search(new_text) and not _alike(new.employer, old.employer):
        return FactLink(LinkKind.APART, "one more job")
    return _present(new, old, new_text, old_text)


def _ending(new: Employment, old: Employment, *, past: bool, stands: bool) -> FactLink:
    if not stands:
        return (
            FactLink(LinkKind.APART, "past as well")
            if not (new.without and old.without)
            else FactLink(LinkKind.SAME, "same")
        )
    if new.without:
        return (
            FactLink(LinkKind.SAME, "same")
            if old.without and _alike(new.role, old.role)
            else FactLink(LinkKind.NEWER, "no longer at work")
        )
    if new.employer and old.employer:
        return (
            FactLink(LinkKind.ENDS, "left it")
            if _alike(new.employer, old.employer)
            else FactLink(LinkKind.APART, "another employer")
        )
    if past and not (new.over and not new.role):
        same = (new.role and _alike(new.role, old.role)) or (new.field and _alike(new.field, old.field))
        return FactLink(LinkKind.ENDS, "told as past") if same else FactLink(LinkKind.APART, "past")
    return FactLink(LinkKind.ENDS, "left it")


def _alike(a: str, b: str) -> bool:
    return bool(a and b) and values.match(a, b) is not Match.OTHER


def _present(new: Employment, old: Employment, new_text: str, old_text: str) -> FactLink | None:
    if new.employer and old.employer:
        if not _alike(new.employer, old.employer):
            return FactLink(LinkKind.NEWER, "newer employer")
        return _roles(replace(new, field=""), replace(old, field=""))
    if new.employer:
        if old.role and not new.role and not new.new:
            return FactLink(LinkKind.FINER, "tells the employer", f"{new_text} as {_with_article(old.role)}")
        return FactLink(
            LinkKind.FINER if not old.role or _alike(new.role, old.role) else LinkKind.NEWER, "tells the employer"
        )
    if old.employer:
        return _without_employer(new, old, new_text, old_text)
    return _roles(new, old)


def _without_employer(new: Employment, old: Employment, new_text: str, old_text: str) -> FactLink | None:
    if not new.role:
        return (
            FactLink(LinkKind.COARSER, "the employer is known")
            if not new.new
            else FactLink(LinkKind.NEWER, "newer field")
        )
    if _alike(new.role, old.role):
        finer = values.match(new.role, old.role) is Match.FINER
        return (
            FactLink(LinkKind.FINER, "tells the role", f"{new_text} at {old.employer}")
            if finer
            else FactLink(LinkKind.COARSER, "known already")
        )
    if re.search(r"promot|appointed", new_text):
        return FactLink(LinkKind.NEWER, "newer role", f"{new_text} at {old.employer}")
    if not old.role and not new.new:
        return FactLink(LinkKind.FINER, "tells the role", f"{old_text.rstrip(' .')} as {_with_article(new.role)}")
    return FactLink(LinkKind.NEWER, "newer role")


def _roles(new: Employment, old: Employment) -> FactLink | None:
    if new.role and old.role:
        found = values.match(new.role, old.role)
        kinds = {Match.FINER: LinkKind.FINER, Match.COARSER: LinkKind.COARSER, Match.OTHER: LinkKind.NEWER}
        if found is not Match.EQUAL:
            return FactLink(kinds[found], "role")
        if new.field != old.field and (new.field or old.field):
            return (
                FactLink(LinkKind.FINER, "tells where")
                if not old.field
                else FactLink(LinkKind.COARSER, "known already")
                if not new.field
                else FactLink(LinkKind.NEWER, "newer field")
            )
        return FactLink(LinkKind.SAME, "same job")
    if new.role:
        return FactLink(LinkKind.FINER, "tells the role")
    if old.role:
        return FactLink(LinkKind.COARSER, "known already") if old.employer or not new.field else None
    if new.field and old.field:
        found = values.match(new.field, old.field)
        return FactLink(
            LinkKind.SAME
            if found is Match.EQUAL
            else LinkKind.FINER
            if found is Match.FINER
            else LinkKind.COARSER
            if found is Match.COARSER
            else LinkKind.NEWER,
            "field",
        )
    return FactLink(LinkKind.SAME, "same job")


def _with_article(role: str) -> str:
    return f"{'an' if role[:1].lower() in 'aeiou' else 'a'} {role}"
