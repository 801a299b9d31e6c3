"""Words so ordinary that a capital letter at the start of a sentence means nothing.

Written by hand for notes, chat and code talk; compared by English stem, so one form stands for all of its inflections.
"""

from __future__ import annotations

from functools import lru_cache

from Stemmer import Stemmer  # type: ignore[import-not-found]  # of C, without stubs

from service.language.lexemes import STOP_WORDS


def word_set(block: str) -> frozenset[str]:
    """The blank-separated words of a block of text."""
    return frozenset(block.split())


FUNCTION_WORDS = STOP_WORDS | word_set("""
    nor yet if unless until while because since although though whereas within without upon above below under over
    between among during before after against across along around behind beside besides beyond despite except inside
    outside near off out up down per via toward towards having shall may might must ought not no yes none neither either
    both every all many much more most few fewer little less least several other another same only even too quite
    rather really almost already always never ever often sometimes usually again still once twice now today tomorrow
    yesterday tonight soon later maybe perhaps however therefore thus hence meanwhile otherwise instead anyway ok okay
    hi hello hey here thanks please well ah wow yeah yep nope sorry im ive ill id dont doesnt didnt cant wont isnt arent
    wasnt everyone everybody everything someone somebody something anyone anybody anything nobody nothing one ones etc
    eg ie vs don't doesn't didn't can't won't isn't aren't wasn't weren't couldn't shouldn't wouldn't haven't hasn't
    i'm i've i'll i'd it's that's there's he's she's we're we've we'll you're you've they're they've let's what's who's
""")
"""Closed classes: they carry no topic and never start a name."""

CALENDAR = word_set("""
    january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur
    thurs fri sat sun mondays tuesdays wednesdays thursdays fridays saturdays sundays spring summer autumn fall
    winter
""")

_ORDINARY = """
    elect earthquake injury injure shake flood wildfire rebel troop strike explode blast clash riot ceasefire premier
    lawmaker verdict suspect victim hostage militant casualty sanction tariff inflation unemployment merger stock
    earning dividend soar plunge surge slump slash vow urge hail blame accuse sue seize rally plead prime actor actress
    singer striker spokesman spokeswoman spokesperson candidate senator voter ballot coalition parliament toll migrant
    refugee convict trial probe raid siege unveil oppose condemn mourn honour honor crown championship victory defeat
    debugging merge reindex containerize deprecate benchmark profile throttle paginate serialize deserialize sanitize
    able accept access according account achieve agreement act action actual add address adjust admin adopt adult
    advance advice afternoon age agent ago agree ahead air alert allow alone amazing amount analysis analyze angry
    animal annual answer apart apparent appear apple application apply appointment approach approve area argue arm army
    arrange arrest arrive article artist ask assign assistant assume attack attempt attend audio author auto automatic
    autumn available average avoid award away baby back background backup bad bag bake balance ball band bank bar base
    basic basket bath battery beach bear beautiful become bed begin believe best better big bike bill bird birthday bit
    black block blog blood blue board boat body bomb bonus book boost boot border boss bot bottle bottom box boy branch
    bread break breakfast bridge bright bring broken brother brown browser bug build bump burn bus business butter
    button buy cable cache cake calendar call camera camp cancel car card care career carry case cash cat catch category
    cause celebrate cell center central certain chain chair challenge chance change channel chapter charge chart chat
    cheap check cheese chef chicken chief child children chocolate choice choose chose church circle city civil claim
    class classic clean cleanup clear click client climb clock close cloth cloud club coach coast code coffee cold
    colleague collect college color colour column combine come comfort command comment commit common community company
    compare complain complete complex computer concern concert conclude condition conference config configuration
    confirm conflict connect consider consistent console consolidate contact contain content contest context continue
    contract control convert cook cool copy core correct cost count country couple course court cousin cover crash crazy
    create credit crew crime critical cross cry cup currency current custom cut cycle dad daily dance danger dark
    dashboard data database date daughter day dead deadline deal dear death debate decide decision decline deep default
    defend define degree delay delete deliver demand demo deny department depend deploy describe desert design desk
    detail detect develop device dig digital dinner direct directory disable discover discuss disease display distance
    divide doc doctor document dog dollar domain door double download downtown draft drama draw dream dress drink drive
    driver drop drug dry dual due duplicate duty early earth east easy eat economy edge edit editor education effect
    effort egg eight electric eleven email embed emergency employ employee empty enable end endpoint enemy energy engine
    enjoy enough ensure enter entire entry environment equal error escape especially essential estimate evening event
    eventual evidence exact exam example excellent excited exercise exist expand expect expensive experience expert
    expire explain explore export express extend external extra eye face fact factor fail failure fair fall false family
    famous fan far farm fashion fast fat father fault favorite favourite fear feature federal feed feedback feel fellow
    female fetch fever field fifteen fifth fifty fight figure file fill film filter final finance find fine finish fire
    firm first fish fit five fix flag flat flight floor flow flower fly focus folder follow food fool foot football
    force foreign forest forget form formal format former forty forward found founder four fourth frame free frequent
    fresh friend front fruit fuel full fun function fund funny furniture further future gain game garage garden gas gate
    general generate gentle get giant gift girl give glad glass global go goal gold good government grab grade graduate
    grand grandfather grandma grandmother grandpa grandparent grant graph grass great green grocery ground group grow
    growth guard guess guest guide guitar gun guy gym habit hair half hall hand handle hang happen happy hard hate head
    headline health hear heart heat heavy help hidden hide high hike hill hint hire history hit hobby hold hole holiday
    home homework hook hope horse hospital host hot hotel hour house huge human hundred hungry hunt hurry hurt husband
    ice idea identify ill image imagine impact implement import improve include income increase independent index
    industry infant info information initial inject input insert insight install instruction insurance integrate
    interest internal international internet interview introduce investigate invite invoice issue item jacket jail job
    join joint joke journal judge juice jump keep key kid kill kind king kitchen knee knife know lab label lady lake
    land language laptop large last late latest latter launch law lawyer lay layer lead leader league learn leather
    leave lecture left leg legal lesson let letter level library license lie life light like limit line link list listen
    literal live load loan local location lock log login long look loop lose loss lost lot loud love low lucky lunch
    machine magazine mail main maintain major make male man manage map march margin mark market marry massive master
    match material math matter maximum meal mean measure meat media medical medicine meet member memory men mention menu
    mess message metal meter method middle migrate mile military milk million mind minimum minister minor minute mirror
    miss mission mistake mix mobile mode model modern module mom moment money monitor month moon morning mostly mother
    motion motor mount mountain mouse mouth move movie multiple murder music mute name narrow nation native nature
    nearly neat necessary need neighbor neighbour nervous nest network new news next nice night nine noise normal north
    note notice notification novel nuclear number nurse object observe obvious offer office official oil old oldest
    online open operate opinion opposite optimize option orange order ordinary organize origin outage output overall
    owner pack package page paid pain paint pair palm panel paper parent park parse part particular partner party pass
    passenger passport password past patch path patient pattern pause pay payment peace pen pending people perfect
    perform period permission person pet phase phone photo pick picture piece pilot pin pipe pipeline pizza place plain
    plan plane plant plastic plate platform play player plenty plot plug plus pocket poem poet point police policy
    political politician pool poor popular population port position possible post pot potential power practical prayer
    pre predict prefer prepare present president press pressure pretty prevent preview previous price primary print
    prior priority prison private prize probably problem procedure process produce product professor profit program
    project promise promote proof proper property propose protect protest prototype prove provide public publish pull
    purchase pure purpose push put quality quarter query question queue quick quiet quit quote race radio rain raise
    random range rank rapid rare rate ratio raw reach react read ready real reason recall receive recent recipe
    recommend record recover red redirect reduce refactor refer refresh refund refuse regarding region register regular
    reject relate relationship release relevant rely remain remember remind remote remove rename rent repair repeat
    replace reply repo report repository request require rescue research reserve reset resolve resource respond rest
    restart restaurant restore result resume retire retry return reuse reveal review revert reward rewrite rice rich
    ride right ring rise risk river road rock role roll roof room root rotate rough round route routine row rule run
    rush sad safe sale salt sample sand sandwich save say schedule schema scheme school science scientist scope score
    screen script sea search season second secret section security see seek seem select self sell send senior sense
    sentence separate series serious serve server service session set settle setup seven severe shade share sharp shelf
    shift ship shirt shoe shoot shop short shoulder shout show shower shut sibling sick side sign signal silent similar
    simple single sister sit site situation six size skill skin skip sky sleep slight slow small smart smile smoke
    smooth snack snow soccer social society sock soft software soldier solid solution solve son song sort soul sound
    soup source south space speak special specific speed spell spend split sport spot spread spring sprint squash stable
    staff stage stand standard standup star start state statement station status stay steal step stick stone stop
    storage store storm story straight strange strategy stream street strength stress strict string strong structure
    student studio study stuff style subject submit subscribe succeed success sudden sugar suggest suit summary summer
    sun support supposed sure surface surgery surprise survey swap sweet swim switch symptom sync syntax system table
    tag take talk tall target task taste tax tea teach teacher team tech technical teen teenager tell temperature
    temporary ten tend tennis term test text thank theater theme theory thing think third thirteen thirty thought
    thousand thread threat three throw ticket tie tight till time timeout tiny tip tired title toe together token tool
    tooth top topic total touch tour town toy track trade tradition traffic train transfer transform translate travel
    treat tree trip trouble truck true truly trust truth try tune tuple turn twelve twenty two type typical typo ugly
    ultimate uncle understand union unique unit universal university unknown unusual update upgrade upload upper urgent
    use user usual vacation valid value variable various vast vegan vegetable vegetarian version vet video view village
    violence visit visual vocal voice volume vote wait wake walk wall want war warm warn wash waste watch water wave way
    weak wealth wear weather web website wedding week weekend weight welcome west wet whatever wheel whenever white
    whole wide wife wild win wind window wine winter wire wise wish woman women wonder wood word work worker workflow
    workout world worry worse worst worth wound wrap write wrong wrote year yellow yoga young youth zero zone aunt
    bought brought built came drove fell felt flew forgot gave got grew heard held kept knew laid led lent made meant
    met owe ran rode said sang sat saw sent shot slept sold spent spoke stood swam taught threw told took understood
    went woke won wore been hacked owns whoever wherever absolutely definitely fortunately simply unfortunately
"""

_LONGEST = 30  # letters; stemming takes time that grows with the square of the length


def _stems(words: str) -> frozenset[str]:
    stemmer = Stemmer("english")
    return frozenset(str(stemmer.stemWord(word)) for word in words.split())


_ORDINARY_STEMS = _stems(_ORDINARY)


@lru_cache(maxsize=20_000)
def is_common(word: str) -> bool:
    """Returns whether a word (any case, without a possessive 's) is an ordinary English one."""
    if len(word) > _LONGEST:
        return False
    lowered = word.casefold().replace("\u2019", "'")
    # A stemmer keeps its word in itself: one per call is safe in threads, and the cache makes it rare.
    if lowered in FUNCTION_WORDS or Stemmer("english").stemWord(lowered) in _ORDINARY_STEMS:
        return True
    return "-" in lowered and all(is_common(part) for part in lowered.split("-") if part)
