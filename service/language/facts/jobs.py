"""Statements about somebody's work: role, employer, field, and whether it is new or over."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from service.language import wordlists
from service.language.facts import wordbook
from service.language.facts.statement import Statement


@dataclass(frozen=True, slots=True)
class Employment:
    """Parts that a statement does not name are "". `new`: told as a change; `over`: left, lost or retired from."""

    role: str = ""
    employer: str = ""
    field: str = ""
    new: bool = False
    over: bool = False
    without: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is told."""
        return not (self.role or self.employer or self.field or self.over or self.without)


_NOUN = r"(?:job|role|position|post|gig|offer|internship|contract|career|work)"
_TAIL = re.compile(
    r"[,\s]+(?:since|now|last|next|for (?:\d|a (?:while|few|couple|year|month|long|decade|week)|the (?:last"
    r"|past)|about|over|almost|two|three|four|five|six|seven|eight|nine|ten|many|several|some)|these days|at the"
    r" moment|right now|currently|again|when|because|after|before|until|this"
    r"|and (?:i|they|we|it|love|really)|where|which|who|that|but|so|from (?:home|next|monday|january|february"
    r"|march|april|may|june|july|august|september|october|november|december)|(?:full[- ]time|part[- ]time"
    r"|remotely)$"
    r"|(?:a |two |three |\d+ )\w+ (?:ago|back)|in (?:\d{4}|january|february|march|april|may|june|july|august"
    r"|september|october|november|december)|starting|on (?:monday|tuesday|wednesday|thursday|friday)|instead"
    r"|recently|today|yesterday"
    r"|tomorrow|during|to (?:be|become|focus|start|work|take|spend))\b.*$",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"\b(?:(?:based|living|working|located|specializing|specialising)\s+)?(?P<sign>as|at|for|with|by|in|of|from"
    r"|within|into)\s+",
    re.IGNORECASE,
)
_HIRED = re.compile(
    r"(?:hired|recruited|employed|headhunted|poached|promoted|offered|appointed|transferred)\b\s*", re.IGNORECASE
)
_FIRED = re.compile(
    r"(?:laid off|fired|let go|made redundant|dismissed|sacked)\b\s*(?:from|by|at)?\s*(?P<who>.*)", re.IGNORECASE
)
_WITHOUT = re.compile(
    r"(?:currently |now )*(?:unemployed|jobless|out of (?:work|a job)|between jobs|retired|self-employed|a"
    r" stay-at-home (?:mom|dad|parent|mother|father)|on parental leave)\b(?P<tail>.*)",
    re.IGNORECASE,
)
_OWNERS = re.compile(r"\b(?:own business|own company|self)\b", re.IGNORECASE)
_NOT_EMPLOYERS = wordlists.words(
    "home night day least that once noon weekends first present it living fun myself themselves free no one two three"
    " four five six seven eight nine ten kids children"
)


def slot(s: Statement) -> tuple[str, str] | None:
    """Returns ("job", value) for a statement about work; the value reads "role at employer" as far as both are told."""
    job = read(s)
    if job is None or job.empty:
        return None
    parts = [
        job.role,
        f"at {job.employer}" if job.employer and job.role else job.employer,
        f"in {job.field}" if job.field and (job.role or job.employer) else job.field,
    ]
    return "job", " ".join(part for part in parts if part) or s.rest or s.verb


def read(s: Statement) -> Employment | None:
    """Returns the parts of a statement about work, None when it is about something else."""
    rest = _TAIL.sub("", f" {s.rest}").strip(" ,.")
    living = re.match(r"(?P<what>.*?)\s*\bfor a living\b", s.rest, re.IGNORECASE)
    if living and s.subject and "'s " not in s.subject:
        return Employment(role=f"{s.verb} {living['what']}".strip(), new=not s.past)
    by_verb = _VERBS.get(s.verb)
    noun = s.subject.rpartition("'s ")[2]
    noun = re.sub(r"^(?:new|current|day|main|first|dream|last) ", "", noun)
    if (
        "'s " in s.subject
        and s.verb == "be"
        and noun in ("job", "occupation", "profession", "job title", "title", "role", "position", "work", "career")
    ):
        return _titled(rest)
    if "'s " in s.subject and s.verb == "be" and noun in ("employer", "company", "workplace"):
        return Employment(employer=rest)
    if s.negative and s.verb not in ("work", "be", "intern", "serve"):
        return None
    return by_verb(s, s.rest.strip(" ,.") if s.verb in ("switch", "change") else rest) if by_verb else None


def _titled(rest: str) -> Employment:
    if re.match(r"(?:at|with|for) ", rest):
        return Employment(employer=rest.split(" ", 1)[1], new=True)
    return _named(rest)


def _named(text: str, *, new: bool = False) -> Employment:
    """Reads "a data scientist at Acme in Berlin", "at Google as an engineer", "in tech"."""
    pieces = _PARTS.split(text)
    role, employer, field = _plain(pieces[0]), "", ""
    for sign, value in zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True):
        sign = sign.lower()
        if sign == "as":
            role = _plain(value)
        elif sign in ("at", "for", "with", "by", "within") and not employer and _employs(value):
            employer = value
        elif sign == "of" and (employer or field or not role):
            employer = f"{employer} of {value}" if employer else employer
        elif sign == "of" and role:
            role = f"{role} of {value}"
        elif sign in ("in", "into") and not field:
            field = _plain(value)
    return Employment(role.strip(" ,"), employer.strip(" ,"), field.strip(" ,"), new=new)


def _plain(text: str) -> str:
    return re.sub(r"^(?:an?|the|their|my|our)\s+(?:new\s+)?", "", text.strip(" ,"), flags=re.IGNORECASE)


def _employs(value: str) -> bool:
    words = value.lower().split()
    return bool(words) and words[0] not in _NOT_EMPLOYERS and not re.match(r"(?:\d|an? (?:few|while|long))", value)


def _work(s: Statement, rest: str) -> Employment | None:
    if not re.match(
        r"(?:\w+ly |part[- ]time |full[- ]time |remotely |there |mostly )?(?:as|at|for|in|with)\b", rest
    ) or re.match(r"(?:at|from) home|in the (?:morning|evening|garden)|with my hands", rest):
        return None
    job = _named(re.sub(r"^(?:\w+ly|part[- ]time|full[- ]time) ", "", rest), new=s.begun)
    if rest.startswith("with") and not re.search(r"[A-Z]", job.employer[:1]):
        return None
    return Employment(job.role, job.employer, job.field, job.new, over=s.ended and not s.past)


def _be(s: Statement, rest: str) -> Employment | None:
    fired = _FIRED.match(rest)
    if fired:
        return Employment(employer=fired["who"].strip(), over=True)
    without = _WITHOUT.match(rest)
    if without:
        return Employment(role=rest.split(" after")[0], without=True, new=True)
    if _HIRED.match(rest):
        return _hired(rest)
    if re.match(
        r"in (?:sales|marketing|finance|tech|it|hr|consulting|education|healthcare|logistics|banking|insurance"
        r"|retail|real estate|construction|advertising|law|medicine|media|publishing|hospitality)\b",
        rest,
        re.IGNORECASE,
    ):
        return Employment(field=rest[3:])
    head = _PARTS.split(rest)[0]
    if (
        not wordbook.is_role(head)
        or re.match(r"(?:his|her|their|its|both|[\w ]+'s)\b", rest)
        or re.match(r"(?:good|great|bad|terrible|decent|my|your)\b", rest)
    ):
        return None
    return _named(rest)


def _hired(rest: str) -> Employment:
    verb = rest.split()[0].lower()
    tail = _HIRED.sub("", rest)
    if verb in ("promoted", "appointed", "transferred"):
        return _named(re.sub(r"^(?:to|as|into)\s+(?:be\s+)?", "", tail), new=True)
    return _named(tail, new=verb != "employed")


def _join(_s: Statement, rest: str) -> Employment | None:
    if re.match(r"(?:an?|the|this|us|me|in)\b (?!company|team at|startup|firm|faculty|staff)", rest) or not rest:
        return None
    if not re.search(r"[A-Z]", rest) and " as " not in rest:
        return None
    return _named(f"at {_plain(rest)}", new=True)


def _start(_s: Statement, rest: str) -> Employment | None:
    job = re.match(rf"(?:an?|the|my|their)?\s*(?:new |first |dream )*{_NOUN}\b\s*(?P<tail>.*)", rest, re.IGNORECASE)
    if job:
        return _or_some(_named(job["tail"], new=True))
    return (
        _named(rest, new=True)
        if re.match(r"(?:at|as|with)\b (?!home|university|college|school|noon|\d)", rest)
        else None
    )


def _get(s: Statement, rest: str) -> Employment | None:
    if re.match(r"(?:hired|promoted|fired|laid off|let go|poached|headhunted|recruited)\b", rest):
        fired = _FIRED.match(rest)
        return Employment(employer=fired["who"].strip(), over=True) if fired else _hired(rest)
    promoted = re.match(r"an? promotion(?: to (?P<role>.+))?", rest)
    if promoted and promoted["role"]:
        return _named(promoted["role"], new=True)
    job = re.match(
        rf"(?:an?|the|my|their|another)\s+(?:(?!interview)[\w-]+ ){{0,3}}?{_NOUN}\b(?! interview)\s*(?P<tail>.*)",
        rest,
        re.IGNORECASE,
    )
    if not job or (s.verb == "have" and not job["tail"]):
        return None
    inner = re.sub(
        rf"^(?:an?|the|my|their|another)\s+|\b(?:new|dream|great|first|better|full-time|part-time)\s+"
        rf"|\s*\b{_NOUN}\b.*$",
        "",
        rest,
        flags=re.IGNORECASE,
    )
    named = _named(job["tail"], new=s.verb != "have")
    return _or_some(
        Employment(
            named.role or (inner if inner and wordbook.is_role(inner) else ""), named.employer, named.field, named.new
        )
    )


def _or_some(job: Employment) -> Employment:
    return job if not job.empty else Employment(role="new job", new=True)


def _leave(s: Statement, rest: str) -> Employment | None:
    if s.verb == "retire":
        return Employment(role="retired", new=True, without=True)
    job = re.match(
        rf"(?:my|their|the|his|her)?\s*(?:old |current |day )?{_NOUN}\b\s*(?:at|with|in|as|from)?\s*(?P<tail>.*)",
        rest,
        re.IGNORECASE,
    )
    if job:
        return Employment(employer=job["tail"], over=True)
    if s.verb == "resign":
        return Employment(employer=re.sub(r"^(?:from|at)\s+", "", rest), over=True)
    to = re.match(r"(?P<old>[A-Z].*?) (?:for|to join) (?P<new>[A-Z].*)", rest)
    if to:
        return _named(f"at {to['new']}", new=True)
    if s.verb in ("leave", "quit") and re.match(r"[A-Z][\w&.-]*(?: [A-Z][\w&.-]*)*$", rest):
        return Employment(employer=rest, over=True)
    return None


def _become(_s: Statement, rest: str) -> Employment | None:
    rest = re.sub(r"^(?:to (?:be|become)|as)\s+", "", rest)
    return _named(rest, new=True) if wordbook.is_role(_PARTS.split(rest)[0]) else None


def _switch(_s: Statement, rest: str) -> Employment | None:
    moved = re.match(
        r"(?:careers?|jobs?|roles?|companies|teams?)\b,?\s*(?:from .+? )?(?:to|into|and (?:am|is) now"
        r"|now)?\s*(?P<tail>.*)",
        rest,
        re.IGNORECASE,
    )
    if moved:
        tail = moved["tail"]
        return _or_some(
            Employment(field=tail, new=True)
            if tail and not _PARTS.match(tail) and not wordbook.is_role(tail)
            else _named(tail, new=True)
        )
    into = re.match(r"(?:from .+? )?(?:to|into) (?P<role>.+)", rest)
    return _named(into["role"], new=True) if into and wordbook.is_role(_PARTS.split(into["role"])[0]) else None


def _moved(_s: Statement, rest: str) -> Employment | None:
    into = re.match(r"(?:on |over )?(?:from .+? )?(?:to|into) (?:an? |the )?(?:new )?(?P<role>.+)", rest)
    if into and (re.search(r"\b(?:role|position|job)\b", rest) or wordbook.is_role(_PARTS.split(into["role"])[0])):
        return _named(re.sub(r"\b(?:role|position|job)\b\s*", "", into["role"]), new=True)
    return None


_VERBS: dict[str, Callable[[Statement, str], Employment | None]] = {
    verb: reader
    for verbs, reader in (
        ("work intern freelance serve", _work),
        ("be", _be),
        ("join", _join),
        ("start begin", _start),
        ("get land accept find take have", _get),
        ("leave quit resign lose retire", _leave),
        ("become train", _become),
        ("switch change transition", _switch),
        ("move", _moved),
    )
    for verb in verbs.split()
}
