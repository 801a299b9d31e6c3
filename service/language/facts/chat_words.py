"""Words that people shorten in chats, and their full forms.

"wudnt", "b4", "2moro", "gf": a table for what stands alone, and rules for the figures and letters ("2", "4", "r", "an")
whose neighbours tell what is meant.
"""

from __future__ import annotations

import re

from service.language import wordlists
from service.language.facts import verbs

_CHAT = """
    jus: just; atm: at the moment; bro: brother; sis: sister; amazin: amazing; u: you; ur: your; luv: love
    bday: birthday; yrs: years; yr: year; dunno: don't know; lemme: let me; cuz: because; coz: because; cos: because
    bc: because; bcuz: because; thx: thanks; pls: please; plz: please; ppl: people; tmrw: tomorrow; tmr: tomorrow
    tomoz: tomorrow; esp: especially; abt: about; hubby: husband; hubbys: husband's; gf: girlfriend; bf: boyfriend
    gfs: girlfriend's; bfs: boyfriend's; tho: though; altho: although; thru: through; idk: I don't know
    ofc: of course; def: definitely; defo: definitely; prolly: probably; prob: probably; rly: really; rlly: really
    srsly: seriously; sry: sorry; soz: sorry; nxt: next; wk: week; wks: weeks; hrs: hours; mths: months
    mins: minutes; nite: night; nites: nights; tonite: tonight; thnx: thanks; wknd: weekend; fav: favorite
    fave: favorite; gud: good; lil: little; lotta: lot of; kno: know; hav: have; havin: having; wat: what; wit: with
    cld: could; cud: could; wud: would; wld: would; shud: should; shld: should; wudnt: wouldn't; cudnt: couldn't
    shudnt: shouldn't; dnt: don't; dosnt: doesn't; doesn: doesn't; teh: the; hte: the; adn: and; nd: and
    evry: every; everyday: every day; alot: a lot; eachother: each other; aswell: as well; xmas: christmas
    whats: what's; thats: that's; heres: here's; theres: there's; wheres: where's; hes: he's; shes: she's
    theyre: they're; youre: you're; weve: we've; theyve: they've; youve: you've; im: I'm; ive: I've; itll: it'll
    wont: won't; aint: ain't; hadnt: hadn't; werent: weren't; dont: don't; doesnt: doesn't; didnt: didn't
    cant: can't; isnt: isn't; wasnt: wasn't; arent: aren't; havent: haven't; hasnt: hasn't; couldnt: couldn't
    wouldnt: wouldn't; shouldnt: shouldn't
"""
WORDS = dict(pair.strip().split(": ") for pair in re.split(r";|\n", _CHAT) if pair.strip())
"""What is written out wherever it stands, in lower case."""

_FIGURES = {"b4": "before", "2moro": "tomorrow", "2morrow": "tomorrow", "2day": "today", "2nite": "tonight"}
# "moved 2 cork", "want 2 get", "allergic 2 cats": behind these "2" is no number
_TO = wordlists.words("""
    used going trying try tried hope hoping plan planning able ready supposed learn learning started decided nice came
    come went go back moved moving move allergic close next talk talking listen listening speak married engaged fly
    flew flying drive drove driving travel commute walk get addicted new
""")
_WANTING = wordlists.words("want wants wanted need needs needed got have has had like love how")
_DONE = wordlists.words("go get be do work see move leave pay take have find learn lose eat make buy sleep talk know")
_OBJECTS = wordlists.words("a an the my our your ur me him her us u you them his their")
_FOR = _OBJECTS | wordlists.words("now ages life real")
_PLURAL = wordlists.words("we they u you these those there people kids")
_BEING = wordlists.words("gonna to will can could would should might must wanna won't cant")
_ARE = wordlists.words("so not both all fine ok u just really still now")
_BEGINS = _OBJECTS | wordlists.words("i im ive he she hes shes we they also then so i'm i've he's she's")
_DENIED = wordlists.words("dont don't dnt didnt didn't u")
_NEIGHBOUR = re.compile(r"(?P<before>[a-z\d'\u2019]+) $", re.IGNORECASE)
_NEXT = re.compile(r" (?P<after>[a-z'\u2019\d]+)", re.IGNORECASE)
_RATE = re.compile(r" an? (?:day|night|week|month|year|hour|piece)\b", re.IGNORECASE)
NEAR = r"\b(?:2|4|r|b|n|an|no|b4|2moro|2morrow|2day|2nite)\b(?![-/:.,'\u2019]\w)"
"""What is written out only where its neighbours say so."""


def full(text: str, start: int, end: int) -> str | None:
    """Returns what a span that matched NEAR means, None where it means itself."""
    word = text[start:end].lower()
    if word in _FIGURES:
        return _FIGURES[word]
    found, following = _NEIGHBOUR.search(text[max(0, start - 20) : start]), _NEXT.match(text, end)
    if not found or not following:
        return None
    before, after = found["before"].lower(), following["after"].lower()
    meant = {
        "n": ("and", True),
        "an": ("and", after in _BEGINS),
        "no": ("know", before in _DENIED),
        "b": ("be", before in _BEING),
        "r": (
            "are",
            before in _PLURAL
            or after in _ARE
            or after.endswith("ing")
            or (before.endswith("s") and verbs.form(before) is None),
        ),
        "2": ("to", after in _OBJECTS or before in _TO or (before in _WANTING and after in _DONE)),
        "4": ("for", after in _FOR and not _RATE.match(text, end)),
    }.get(word)
    return meant[0] if meant and meant[1] else None
