"""Words that tell how a text stands to what was so before: a change, an end, a beginning, a plan, a doubt.

Each list is a pattern over a text in the third person. They say nothing about what changes; that is found by the
subject
and the topic of two texts.
"""

from __future__ import annotations

import re


def _any(phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(each.strip() for each in phrases.split(';'))})\b", re.IGNORECASE)


_TO = r"(?:ed|es|e|ing)? (?:\w+ ){0,2}(?:back |over |away |out |up |down |in |on )*(?:from|to|into|onto|towards?)"

SWITCH = re.compile(
    rf"\b(?:switch{_TO}|mov{_TO}|relocat{_TO}|chang{_TO}|convert{_TO}|transfer(?:red|s)? (?:from|to)|transition{_TO}"
    rf"|migrat{_TO}|upgrad{_TO}|downgrad{_TO}|defect{_TO}|port{_TO}|return(?:ed|s) to|renam{_TO}|rebrand(?:ed|s)?"
    rf" (?:as|to)"
    r"|(?:went|gone|goes|is|came|come|comes) back (?:to|with"
    r"|on (?!the \d|\d|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))"
    r"|(?:is|are|got) back (?:to|with|on|at|in)"
    r"|switched|relocated|remarried|transitioned|chang(?:ed|es) (?:jobs?|careers?|employers?|schools?|teams?)"
    r"|replac(?:ed|es|ing) by|(?:has |have )?replaced|traded (?:in|up)|swapped|trad(?:ed|es) .{1,40} for"
    r"|supersed(?:ed|es|ing)|overrid(?:es|den)|obsolet(?:es|ed)|in place of|instead(?: of)?|rather than|no more"
    r"|rescheduled|postponed|brought forward|pushed (?:back|to)|delayed (?:to|until|till)|extended (?:to|until|till)"
    r"|(?:raised|increased|lowered|reduced|cut|dropped|bumped|upped|doubled|went up|went down|rose|fell|grew|shrank)"
    r" (?:from .{1,30} )?(?:to|by|down to|up to)"
    r"|promoted|demoted|became|has become|have become|(?:re)?join(?:ed|s) (?:the )?(?-i:[A-Z])\w*|founded|co-?founded"
    r"|took over|takes over"
    r"|taken over"
    r"|hand(?:ed|s) (?:\w+ )?over|slipped to"
    r"|succeed(?:ed|s)|stepp?(?:ed|s) (?:down|up|in)|started (?:at|with|working|as|his|her|their|a"
    r" new"
    r"|eating|drinking|smoking|using|dating)|new (?:job|role|position|home|address|phone|number|car|boss|manager|lead"
    r"|employer|flat|apartment|house|school|name|email)|since then|as of (?:now|today|this)|from now on|going forward"
    r"|turned (?:\d+|vegan|vegetarian)|turned into|retired (?:in|last|from|this|early)|went (?:vegan|vegetarian|keto"
    r"|remote|solo|freelance)|has recovered"
    r"|recovered|settled (?:in|on|for)|opted for|ended up|registered as|re-?registered|changed (?:his|her|their|my)"
    r" mind"
    r"|now (?:considers?|prefers?|favou?rs)|re-?(?:written|built|implemented) (?:in|with)|signed (?:with|for)"
    r"|(?:handed in|gave) (?:\S+ )?notice|(?:got|found|rented) (?:his|her|their|an?|my) (?:own |new )?(?:flat"
    r"|apartment|house|place|home)"
    r"|exclusively|only uses?|(?:got|was|were) (?:married|engaged|divorced|separated|promoted|hired)|graduated"
    r"|married (?-i:[A-Z]\w+)|no longer .{1,60} but)\b",
    re.IGNORECASE,
)
"""A new state takes the place of an old one."""

NOW = _any("now; nowadays; these days; currently; at present; again; anymore; the current; the latest; meanwhile")
"""The state is new, or merely present: a change only beside a text about the same thing."""

CHANGED = re.compile(
    r"\b(?:migrated|shifted|moved|re-?routed|renamed|rebranded|replaced|swapped|switched|traded|doubled|tripled|halved"
    r"|raised|lowered|cut|dropped|scrapped|cancell?ed|postponed|delayed|extended|renewed|renegotiated|archived"
    r"|converted"
    r"|upgraded|downgraded|revised|corrected|amended|put (?:back|off|forward)|brought forward|pushed|handed (?:in"
    r"|over|down)"
    r"|hand (?:in|over)|took over|taken over|(?:has|have|is|are) gone|sold|signed for|hired|fired|quit|resigned"
    r"|moved out"
    r"|(?:split|broken|broke) up|died|stolen|(?:took|taken) (?:User|him|her|them) off"
    r"|tied the knot|got married|since|as of|effective|from (?:now|\w+(?: \w+)?) on|starting|these days"
    r"|nowadays"
    r"|lately|now|today's|instead|after all|no longer|any ?more|any longer|for good|off the table|out of|up to|down to"
    r"|extension|renewal|renegotiation|change|changes|change of|(?:a|the|our|my|his|her|their|its|got an?) new)\b"
    r"|^(?:\w+: )?new\b",
    re.IGNORECASE,
)
"""Something is told as a change, in whatever words: it may end a state that it is very near to in meaning."""

ITS_OBJECT = re.compile(
    r"(?<=ed|ld|ut) (?:(?:in|out|up|down|over|off|back|away) )?"
    r"(?:the|an?|his|her|their|its|our|my|\w+['’]s|\w+s['’]) ",
    re.IGNORECASE,
)
"""Behind a verb of change: the thing that changes, which is not who changes it: "Kev sold his car"."""

INSTEAD_OF = re.compile(r"\b(?:instead of|rather than|in place of) (?P<what>[^,.;:!?()]{2,40})", re.IGNORECASE)
"""What is so no longer, named beside what is so now."""

GETS_NEW = re.compile(r"^\S+(?: \S+)? (?:has|have|got|gets|gains?|gained) (?:\w+ )?(?:an? |the )?new\b", re.IGNORECASE)
"""Somebody has a new one of something: their own."""

PASSING = re.compile(
    r"(?<!as of )(?<!from )(?<!since )(?<!until )(?<!starting )(?<!after )"
    r"\b(?:today|tonight|tomorrow|this (?:week|weekend|morning|afternoon|evening|time|once)|next week(?:end)?"
    r"|(?:on |this |next )(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
"""One day or week, which is over soon."""

CANCELS = _any("cancell?ed; cancels?; called off; skip(?:s|ped|ping)?; (?:is|are) off")
"""Something does not take place."""

END = _any(
    "no longer; not any ?more; any ?more; used to; quit; quits; stopped; gave up; given up; sold; deprecated; retired;"
    " decommissioned; shut down; closed down; closed; resigned; dropped out; broke up; broken up; split up; broke off;"
    " called off; passed away; died; (?:was|were|got|been) stolen; (?:gave|given) (?:\\w+ ){0,3}away;"
    " (?:took|taken) (?:User|him|her|them) off;"
    " lost (?:his|her|their|the|my|user's);"
    " left (?:his|her|their|the|my|user's)? ?(?:job|position|company|firm|party|team|group|band|club|school"
    "|university|church|union|[A-Z]\\w+ [Pp]arty); left (?:the )?\\w+ (?:club|school|choir|team|gym|band|party"
    "|kindergarten|nursery); was fired; graduated from; laid off; got rid of; gave away;"
    " discontinued; phased out; dissolved; cancell?ed; abandoned;"
    " ended; (?:came|come|comes) off; cut out;"
    " is over; unsubscribed; moved out; divorced; never again; revoked; withdrew;"
    " cleared up; healed; recovered from"
)
"""A state is over."""

FORMER = _any(
    "used to; formerly; previously; former; ex-; once was; back in (?:19|20)\\d\\d; in the past; originally; as a"
    " child;"
    " when (?:he|she|they|user|\\w+) was"
)
"""It is told that something was so."""

TENTATIVE = _any(
    "might; (?-i:may) (?!\\d); maybe; perhaps; considering; thinking (?:about|of); thinks? (?:about|of); wants? to;"
    " would like to; hopes? to; hoping; plans? (?:to|on); planning (?:to|on); going to (?!the|an?|my|his|her|their"
    "|school|work|church|bed|(?-i:[A-Z])); will; won't; is \\w+ing .*\\b(?:next|tomorrow"
    "|soon); would; could; should; almost; nearly; tries to; trying to; tried to; intends; aims to; wishes; dreams of;"
    " looking (?:for|to); waiting (?:for|list); saving (?:up )?for; (?:applying|training|preparing|studying) (?:to|for)"
    "; if; unless; someday; one day; probably; possibly; interested in; supposed to; about to; applied"
    "; interview(?:ed|ing|s)? (?:at|with|for)"
)
"""Thought of, wanted or tried, and not so yet."""

DAY = re.compile(
    r"\b(?:(?:19|20)\d\d-\d\d?-\d\d?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov"
    r"|dec)[a-z]*\.?"
    r" \d{1,2}(?:st|nd|rd|th)?|\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov"
    r"|dec)[a-z]*"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|tonight|tomorrow)\b",
    re.IGNORECASE,
)
"""One day."""

DATED = re.compile(
    r"\b(?:(?:19|20)\d\d(?:-\d\d?(?:-\d\d?)?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct"
    r"|nov|dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?|\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep"
    r"|oct|nov|dec)[a-z]*|(?:on|last|this|next) (?:mon|tues|wednes|thurs|fri|satur|sun)days?|yesterday|today|tonight"
    r"|tomorrow|(?:last|this|next) (?:night|morning|week|weekend|month|year|summer|winter|spring|autumn)|q[1-4])\b",
    re.IGNORECASE,
)
"""A day, a month or a year."""
