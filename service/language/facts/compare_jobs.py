"""What does news about somebody's work do to what is known of it?

"Works in tech" becomes "works at Google as a senior engineer", a new employer ends the old one, a promotion keeps the
employer.
"""

from __future__ import annotations

import re
from dataclasses import replace

from service.language.facts import jobs, statement, values
from service.language.facts.jobs import Job
from service.language.facts.relation import Kind, Relation
from service.language.facts.values import Match

_SIDE_JOB = re.compile(
    r"\b(?:also|second job|side (?:job|gig|business|hustle|project)|on the side|part[- ]time|in addition"
    r"|volunteers?|on weekends|freelances?)\b",
    re.IGNORECASE,
)


def job(text: str) -> Job | None:
    """Returns the work that a sentence tells of."""
    return jobs.read(statement.parse(text))


def relate(
    new_text: str, old_text: str, *, gone: tuple[bool, bool], ahead: tuple[bool, bool], ends: bool, over: bool
) -> Relation | None:
    """Returns what news about work is to a stored fact about work; the flags tell when each holds."""
    new, old = job(new_text), job(old_text)
    if new is None or old is None:
        return None
    if new.without or new.over or ends or gone[0]:
        return _ending(new, old, past=gone[0] or ends, stands=not (gone[1] or over or old.over))
    if gone[1]:
        return Relation(Kind.APART, "the old one is past")
    if over and not old.over:
        return (
            Relation(Kind.FULFILS, "works there again")
            if _alike(new.employer, old.employer) or _alike(new.role, old.role)
            else Relation(Kind.APART, "the old one is past")
        )
    if ahead[0] and not ahead[1]:
        return Relation(Kind.APART, "still to come")
    if ahead[1] and not ahead[0]:
        return (
            Relation(Kind.FULFILS, "the plan came true")
            if _alike(new.employer, old.employer)
            else Relation(Kind.APART, "still to come")
        )
    if old.over:
        same = not old.employer or _alike(new.employer, old.employer)
        return Relation(Kind.FULFILS, "works again") if same else Relation(Kind.APART, "another employer")
    if old.without:
        return Relation(Kind.NEWER, "works again")
    if _SIDE_JOB.search(new_text) and not _alike(new.employer, old.employer):
        return Relation(Kind.APART, "one more job")
    return _present(new, old, new_text, old_text)


def _ending(new: Job, old: Job, *, past: bool, stands: bool) -> Relation:
    if not stands:
        return (
            Relation(Kind.APART, "past as well") if not (new.without and old.without) else Relation(Kind.SAME, "same")
        )
    if new.without:
        return (
            Relation(Kind.SAME, "same")
            if old.without and _alike(new.role, old.role)
            else Relation(Kind.NEWER, "no longer at work")
        )
    if new.employer and old.employer:
        return (
            Relation(Kind.ENDS, "left it")
            if _alike(new.employer, old.employer)
            else Relation(Kind.APART, "another employer")
        )
    if past and not (new.over and not new.role):
        same = (new.role and _alike(new.role, old.role)) or (new.field and _alike(new.field, old.field))
        return Relation(Kind.ENDS, "told as past") if same else Relation(Kind.APART, "past")
    return Relation(Kind.ENDS, "left it")


def _alike(a: str, b: str) -> bool:
    return bool(a and b) and values.match(a, b) is not Match.OTHER


def _present(new: Job, old: Job, new_text: str, old_text: str) -> Relation | None:
    if new.employer and old.employer:
        if not _alike(new.employer, old.employer):
            return Relation(Kind.NEWER, "newer employer")
        return _roles(replace(new, field=""), replace(old, field=""))
    if new.employer:
        if old.role and not new.role and not new.new:
            return Relation(Kind.FINER, "tells the employer", f"{new_text} as {_with_article(old.role)}")
        return Relation(Kind.FINER if not old.role or _alike(new.role, old.role) else Kind.NEWER, "tells the employer")
    if old.employer:
        return _without_employer(new, old, new_text, old_text)
    return _roles(new, old)


def _without_employer(new: Job, old: Job, new_text: str, old_text: str) -> Relation | None:
    if not new.role:
        return Relation(Kind.COARSER, "the employer is known") if not new.new else Relation(Kind.NEWER, "newer field")
    if _alike(new.role, old.role):
        finer = values.match(new.role, old.role) is Match.FINER
        return (
            Relation(Kind.FINER, "tells the role", f"{new_text} at {old.employer}")
            if finer
            else Relation(Kind.COARSER, "known already")
        )
    if re.search(r"promot|appointed", new_text):
        return Relation(Kind.NEWER, "newer role", f"{new_text} at {old.employer}")
    if not old.role and not new.new:
        return Relation(Kind.FINER, "tells the role", f"{old_text.rstrip(' .')} as {_with_article(new.role)}")
    return Relation(Kind.NEWER, "newer role")


def _roles(new: Job, old: Job) -> Relation | None:
    if new.role and old.role:
        found = values.match(new.role, old.role)
        kinds = {Match.FINER: Kind.FINER, Match.COARSER: Kind.COARSER, Match.OTHER: Kind.NEWER}
        if found is not Match.EQUAL:
            return Relation(kinds[found], "role")
        if new.field != old.field and (new.field or old.field):
            return (
                Relation(Kind.FINER, "tells where")
                if not old.field
                else Relation(Kind.COARSER, "known already")
                if not new.field
                else Relation(Kind.NEWER, "newer field")
            )
        return Relation(Kind.SAME, "same job")
    if new.role:
        return Relation(Kind.FINER, "tells the role")
    if old.role:
        return Relation(Kind.COARSER, "known already") if old.employer or not new.field else None
    if new.field and old.field:
        found = values.match(new.field, old.field)
        return Relation(
            Kind.SAME
            if found is Match.EQUAL
            else Kind.FINER
            if found is Match.FINER
            else Kind.COARSER
            if found is Match.COARSER
            else Kind.NEWER,
            "field",
        )
    return Relation(Kind.SAME, "same job")


def _with_article(role: str) -> str:
    return f"{'an' if role[:1].lower() in 'aeiou' else 'a'} {role}"
