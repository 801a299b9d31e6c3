"""Word lists that tell talk with a content from pleasantries. English, written by hand."""

from __future__ import annotations

from service.language import wordlists
from service.language.common_words import FUNCTION_WORDS

EVALUATING = wordlists.words("""
    great awesome amazing nice cool wonderful fun good bad tough hard love loved happy glad excited proud thrilled
    inspiring incredible special important best better super fantastic fabulous lovely beautiful perfect gorgeous
    stunning interesting exciting rewarding fulfilling positive strong worth true sure right grateful thankful blessed
    lucky sorry ready hungry tired sleepy bored busy magical adorable cute yummy delicious sweet helpful
""")
"""Words of praise, comfort and mood: a sentence made of them says nothing to remember."""

PALE = wordlists.words("""
    thing things way lot lots pretty totally definitely absolutely certainly sound sounds look looks feel feels
    feeling make makes made making get gets getting got go goes going keep keeping know think thought guess bet hope
    wish mean means want need see say tell take let let's day days time times life world people person stuff kind sort
    bit little big much many huge appreciate support supportive supporting journey difference inspired inspire
    inspiration dream dreams passion passionate believe strength motivated motivation forward stay luck congrats
    congratulations agree understand care cherish moment moments memories together share sharing help helps helping
    try trying give gives come comes work hang truly actually honestly btw course matter matters reminder remind
    reminds remember wait check chat talk update updates news cheer cheering vibe vibes energy joy smile smiles heart
    soul spirit mind hear heard hearing seeing saw seen worry worries week gosh wow yeah yep nope ok okay thanks thank
    hey hi hello bye question questions idea ideas tip tips suggestion suggestions recommendation recommendations
    advice information please maybe perhaps kidding joking gonna wanna gotta forget happen happening happened continue
    continuing deserve deserves push pushing lol haha hmm huh well anyway
""")
"""Words so common in chat that they carry no topic."""

EMPTY = EVALUATING | PALE | FUNCTION_WORDS

NUMBER_WORDS = wordlists.words("""
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million
    dozen half twice
""")

TIME_WORDS = wordlists.words("""
    yesterday today tomorrow tonight last next ago week weekend month year years monday tuesday wednesday thursday
    friday saturday sunday recently since until january february march april june july august september october
    november december morning evening afternoon daily weekly monthly every
""")

ORDER_VERBS = wordlists.words("""
    act add advise answer arrange ask assume book brainstorm bring build buy calculate call cancel change check choose
    come compare compose compute consider continue convert correct create debug delete describe design develop discuss
    do don't don’t draft edit elaborate enjoy ensure evaluate explain extract fetch find fix focus follow format
    forget gather generate get give go grab guess hang have help hold ignore imagine implement improve include keep
    learn let let's let’s list listen look make message modify move open optimize optimise organise organize outline
    paraphrase pick plan play please prepare pretend print proofread provide pull push put rank read recommend redo
    refactor remember remind remove rename render repeat rephrase replace reply research review rewrite run save say
    schedule search see send set share show shorten simplify solve sort start stay stop suggest summarise summarize
    switch take talk teach tell test think translate trust try turn update use verify visit wait walk watch work write
""")
"""Verbs that begin an order or a piece of advice when nobody is named before them."""
