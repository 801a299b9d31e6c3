"""Inflection of English verbs, and recognition of their forms.

A list of the verbs people use of themselves, and the irregular forms. Inflecting works for any word ("grok" gives
"groks"); recognising needs the list, so that "rain" behind "and" is not taken for a verb.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from service.language import wordlists

Shape = Literal["base", "third", "ing", "past", "participle"]


class Form(NamedTuple):
    """A word as a form of a verb. Where forms coincide the first of base, third, ing, past, participle is named."""

    lemma: str
    shape: Shape


# base, past, participle (left out where equal to the past)
_IRREGULAR = """
    become became become; begin began begun; bend bent; bet bet; bite bit bitten; bleed bled; blow blew blown; break
    broke broken; bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen; come came
    come; cost cost; cut cut; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove
    driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; fly flew flown; forget
    forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go went gone;
    grow grew grown; hang hung; hear heard; hide hid hidden; hit hit; hold held; hurt hurt; keep kept; know knew
    known; lay laid; lead led; learn learnt; leave left; lend lent; let let; lie lay lain; light lit; lose lost;
    make made; mean meant; meet met; overcome overcame overcome; pay paid; put put; quit quit; read read; rebuild
    rebuilt; rewrite rewrote rewritten; ride rode ridden; rise rose risen; run ran run; say said; see saw seen; seek
    sought; sell sold; send sent; set set; sew sewed sewn; shake shook shaken; shoot shot; show showed shown; shut
    shut; sing sang sung; sink sank sunk; sit sat; sleep slept; speak spoke spoken; spend spent; split split; spread
    spread; stand stood; steal stole stolen; stick stuck; swear swore sworn; swim swam swum; take took taken; teach
    taught; tear tore torn; tell told; think thought; throw threw thrown; undergo underwent undergone; understand
    understood; wake woke woken; wear wore worn; win won; withdraw withdrew withdrawn; write wrote written; be was
    been; have had; do did done
"""
_REGULAR = """
    abandon accept achieve act adapt add adjust admire adopt adore advise afford agree aim allow analyze announce
    answer apologize appear apply appreciate approve argue arrange arrive ask assign assist attend avoid babysit
    bake ban battle beat behave belong blog book boil borrow bother brew browse brush budget calculate call camp
    cancel care carry celebrate chair change charge chat check choreograph clean climb close coach code collaborate
    collect commute compare compete complain complete compose concentrate confirm connect consider consult consume
    contact contain continue contribute control convert cook coordinate cope cover craft create crochet cross cry
    cycle dance date debug decide decline decorate dedicate defend delay delete deliver depend deploy describe
    design despise detest develop diagnose die direct disagree discover discuss dislike divorce donate download
    draft dress drop earn edit educate email embrace employ enable encounter end enjoy enlist enroll enter establish
    exercise exhibit exist expand expect experience experiment explain explore express face fail farm fear file fill
    film finalize finish fish fix focus fold follow foster frequent function garden gather graduate grill expire
    guess guide handle happen harvest hate head help hesitate hike hire hope host house identify ignore illustrate
    imagine implement import improve include increase inherit injure inspire install instruct intend interact
    interview introduce invent invest invite iron jog join joke judge juggle jump kayak kick kill kiss knit lack
    land last laugh launch learn lease lecture lift like limit list listen live loathe locate long look love
    maintain major manage march marry master matter measure meditate memorize mentor merge message migrate mind
    minor miss mix model monitor motivate mount move name need negotiate note notice observe obtain occur offer open
    operate opt order organize outsource overhear own pack paint panic park participate partner pass perform
    persuade phone photograph pick pitch plan plant play pledge post practice practise pray prefer prepare present
    press prevent print process produce program progress promise promote propose protect prove provide publish pull
    purchase push qualify question race raise reach realize rebrand recall receive recommend record recover recruit
    recycle reduce refactor refer reflect refuse register regret reject relate relax release relocate rely remain
    remember remind remodel remove renovate rent repair replace reply report represent request require rescue
    research reside resign resolve respect respond rest restore retire return reuse review revise risk roast roll
    row ruin sail save schedule score search seem separate serve settle share shave shift ship shop sign skate
    skateboard sketch ski skip smoke snack snore bark chew itch ache snowboard socialize solve sound specialize
    sponsor stare start stay stop stream stress stretch struggle study subscribe succeed suffer suggest suit
    supervise supply support suppose surf surprise survive suspect switch talk taste test text thank thrive tour
    track train transfer transition translate travel treat trust try tune turn tutor type unwind update upgrade
    upload use vacation value visit volunteer vote wait walk want warn wash waste watch weigh welcome wish wonder
    work worry wrap
    yell heal rehearse vape gamble forage snorkel interpret homeschool micromanage referee crochet
"""
_DOUBLING = wordlists.words("""
    ban chat commit control drop enroll fit jog knit model plan prefer program quit refer regret ship shop skip step
    stop transfer travel wrap run swim sit set get put cut dig hit let shut win begin forget bet spin submit admit
    babysit
""")
_VOWELS = frozenset("aeiou")
PAST_OF_BE = frozenset({"was", "were"})


def third(base: str) -> str:
    """Returns the third person singular: "go" gives "goes", "try" "tries"."""
    special = {"be": "is", "am": "is", "are": "is", "have": "has", "do": "does", "were": "was"}.get(base)
    if special:
        return special
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _ing(base: str) -> str:
    if base in _DOUBLING:
        return base + base[-1] + "ing"
    if base.endswith("ie"):
        return base[:-2] + "ying"
    return (base[:-1] if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) else base) + "ing"


def _ed(base: str) -> str:
    if base in _DOUBLING:
        return base + base[-1] + "ed"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")


@cache
def _table() -> dict[str, Form]:
    forms: dict[str, Form] = {"am": Form("be", "base"), "are": Form("be", "base"), "were": Form("be", "past")}
    rows = [row.split() for row in _IRREGULAR.split(";")] + [[verb, _ed(verb)] for verb in _REGULAR.split()]
    shaped: list[tuple[str, Form]] = []
    for base, past, *participle in rows:
        shaped += [
            (base, Form(base, "base")),
            (third(base), Form(base, "third")),
            (_ing(base), Form(base, "ing")),
            (past, Form(base, "past")),
            *((word, Form(base, "participle")) for word in participle),
        ]
    # a second spelling each
    shaped += [("traveled", Form("travel", "past")), ("traveling", Form("travel", "ing"))]
    shaped += [(_ed(verb), Form(verb, "past")) for verb in ("learn", "dream", "burn", "light")]
    order: tuple[Shape, ...] = ("base", "third", "ing", "past", "participle")
    for word, form in sorted(shaped, key=lambda pair: order.index(pair[1].shape)):
        forms.setdefault(word, form)
        if "iz" in word:
            forms.setdefault(word.replace("iz", "is"), form)
    return forms


def form(word: str) -> Form | None:
    """Returns which form of which listed verb a lower-case word is; "reads" is third of "read"; None when unlisted."""
    return _table().get(word)


def lemma(word: str) -> str:
    """Returns the base form; of an unlisted verb the word without its ending, as good as can be told."""
    known = form(word)
    if known:
        return known.lemma
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("ied", "y")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)] + instead
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("ss"):
            base = word[: -len(ending)]
            doubled = base[-1:] == base[-2:-1] and form(base[:-1]) is not None  # "cancelled", "submitted"
            return base[:-1] if doubled else base
    return word


_NOT_PAST = wordlists.words("need feed speed breed seed weed embed exceed proceed succeed bleed shed wed shred plead")


def is_past(word: str) -> bool:
    """Returns whether a finite verb form (lower case) is past; "put" and "read" are taken for the present."""
    known = form(word)
    if known:
        return known.shape in ("past", "participle")
    return word.endswith("ed") and word not in _NOT_PAST and len(word) > 4


def finite() -> list[str]:
    """Returns every listed form that is third person or past and nothing else, in order."""
    return sorted(
        word
        for word, known in _table().items()
        if known.shape == "third" or (known.shape == "past" and known.lemma != word)
    )


def bases() -> list[str]:
    """Returns every listed base form, in order."""
    return sorted(word for word, known in _table().items() if known.shape == "base")


def is_participle(word: str) -> bool:
    """Returns whether a past form is a participle as well: "studied", but not "grew"."""
    lemma = _table()[word].lemma if word in _table() else word
    return (lemma, "participle") not in {(form.lemma, form.shape) for form in _table().values()}


def words() -> frozenset[str]:
    """Returns every listed form."""
    return frozenset(_table())


def past(base: str) -> str:
    """Returns the simple past: "go" gives "went"."""
    if base == "be":
        return "was"
    return next(
        (word for word, known in _table().items() if known == (base, "past") and not word.endswith("ing")), _ed(base)
    )
