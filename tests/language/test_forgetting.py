"""What asks to forget, the texts that it means, and the forms of one identifier, each beside what looks like it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.language.forgetting import forget_matching, forget_query, forget_requests, identifiers, request_head
from service.language.forgetting.forget_matching import ForgetText
from service.language.forgetting.forget_requests import ForgetWish

# The query, the texts that are meant, those that are not.
CASES: list[tuple[str, list[str], list[str]]] = [
    ("Alma's email", ["Alma's email is alma99 at work."], ["Bo's email is bo1.", "Alma likes tea."]),
    ("IP 192.168.0.1", ["Server 192.168.0.1 hosts it."], ["Server 192.168.0.10 is off.", "Port 192 is open."]),
    ("account ACC-1001", ["Account ACC-1001 is overdue.", "acct acc1001 has owners."], ["Account ACC-10012 is paid."]),
    ("session tok_abc12", ["Session tok_abc12 expired."], ["Session tok_abc123 is live."]),
    ("delete all records of Dr. Cho", ["Dr. Cho moved."], ["Cho's clinic closed.", "Dr. Chou moved."]),
    ("Sem's project role", ["Sem is the project lead."], ["Samantha is the designer.", "Sem lives in Rome."]),
    ("everything regarding Project Apollo", ["Project Apollo is late."], ["Apollo Theater is nice."]),
    ("what we know about user_id 77", ["user_id 77 is blocked."], ["user_id 770 is active.", "77 users came."]),
    ("Peter/Pete Novak", ["Pete Novak called.", "Peter Novak is ill."], ["Petra Novak left."]),
    ("+44 7911 123456", ["Her number is 07911 123456."], ["His number is +44 7911 123457."]),
    ("@maria_dev", ["@maria_dev owns it.", "maria_dev is on leave."], ["@maria_devops is a bot."]),
    ("build v1.2", ["v1.2 shipped Monday."], ["v1.2.1 shipped Friday.", "v1.20 is planned."]),
    ("Игорь Лис / Igor Lis", ["Игорь Лис подписал.", "Igor Lis paid."], ["Igor Lisov called."]),
    ("Maria (aka Masha)", ["Maria called.", "Masha paid."], ["Mashall left."]),
    ("Wing A access code", ["Wing A access code is lilac."], ["Wing B access code is olive."]),
    ("Rose's badge", ["Rose's badge is green."], ["The rose garden is open.", "Rose likes roses."]),
    ("everything about the Falcon project", ["The Falcon project is in Rust."], ["A falcon nests on the roof."]),
    ("customer Li Na (李娜)", ["Customer 李娜 ordered tea.", "Li Na paid."], ["李娜娜 left.", "Li Nan paid."]),
    ("mia (at) mail (dot) test", ["mia@mail.test is an admin."], ["mia@mail.test.example is a guest."]),
    ("Zoë", ["zoe sings."], ["Zoey sings."]),
    ("my colleague Anna", ["My colleague Anna skis."], ["My sister Anna sings.", "Anna has two kids."]),
    ("colleague Anna", ["My colleague Anna skis."], ["My sister Anna sings."]),
    ("my colleague Anna", ["My colleague Anna skis.", "Anna has two kids."], ["Annabel sings."]),
    ("my colleague Anna", [], ["My sister Anna sings."]),
    ("everything about Greta's salary", ["Greta's salary is 5200 euros."], ["My wife Greta is a judge."]),
    ("anything you know about Otto's knee brace", ["Otto wears a knee brace."], ["Otto is nine."]),
    ("everything about Greta's", ["Greta's salary is 5200 euros.", "My wife Greta is a judge."], ["Bo sings."]),
    ("everything about my son Tim", ["My son Tim is five."], ["My boss Tim likes golf."]),
    ("dónde trabaja mi hermano", ["Mi hermano trabaja en un banco."], ["Mi hermano vive en Gijón."]),
    ("où travaille mon frère", ["Mon frère travaille à la banque."], ["Mon frère habite à Lyon."]),
    ("où travaille Anna", ["Anna travaille à la banque."], ["Anna habite à Lyon."]),
    ("ma collègue Anna", ["Ma collègue Anna skie."], ["Ma fille Anna chante."]),
    ("wo mein Bruder arbeitet", ["Mein Bruder arbeitet bei der Bank."], ["Mein Bruder wohnt in Kiel."]),
    ("meinen Bruder", ["Mein Bruder wohnt in Kiel."], ["Mein Hund ist alt."]),
    ("everything about mi hermano", ["Mi hermano vive en Gijón."], ["Mi perro es negro."]),
    ("la dirección de mi hermano", [], ["Mi hermano vive en Gijón.", "Vivo con mi perro."]),
    ("locker 12", ["Locker 12 is Ada's."], ["Locker 121 is free.", "Bus 12 is late.", "Locker 7 has 12 keys."]),
]


@pytest.mark.parametrize(("query", "meant", "others"), CASES)
def test_what_is_meant(query: str, meant: list[str], others: list[str]) -> None:
    texts = [ForgetText(text, text) for text in [*meant, *others]]
    parsed = forget_query.parse(query, forget_matching.find_names(texts))
    assert list(forget_matching.match(parsed, texts).meant) == meant


def test_a_near_miss_is_told_with_the_reason() -> None:
    texts = [ForgetText(text, text) for text in ("Locker 1234 is free.", "Alma Roth called.", "The rose fades.")]
    for query, near in (("locker 123", "Locker 1234 is free."), ("Alma Beck", "Alma Roth called.")):
        found = forget_matching.match(forget_query.parse(query), texts)
        assert (found.meant, list(found.near)) == ({}, [near])
        assert all(found.near.values())


# -- requests ----------------------------------------------------------------------------------------------------------

ASKS = [
    ("Please forget that I have a cat.", "I have a cat", "statement"),
    ("Can you forget my address?", "my address", "named"),
    ("Forget my old phone number.", "my old phone number", "named"),
    ("Hi! Forget everything about Rosa, please.", "Rosa", "everything"),
    ("Please forget what I told you about my ex.", "my ex", "everything"),
    ("Could you please delete order 17 from your memory?", "order 17", "thing"),
    ("It rains. Please forget Rosa. I like tea.", "Rosa", "named"),
    ("You can stop remembering my birthday now.", "my birthday", "thing"),
    ("Don't keep my licence plate on file.", "my licence plate", "thing"),
    ("I don't like that my weight is stored somewhere. Get rid of it.", "my weight", "thing"),
    ("Pretend I never told you why I moved.", "why I moved", "thing"),
    ("Vergiss bitte alles über Rosa.", "Rosa", "everything"),
    ("Oublie mon adresse, s'il te plaît.", "mon adresse", "thing"),
    ("Borra mi dirección de tu memoria.", "mi dirección", "thing"),
    ("Please forget what I just said.", "", "said"),
]


def test_a_sentence_without_an_object_belongs_to_the_request_before_it() -> None:
    text = "Please forget my address. Strike it."
    request = ForgetWish(0, 25, 3.0, "my address", "thing")
    after = ForgetWish(26, len(text), request_head.POSSIBLE, "", "said")
    (wish,) = forget_requests.choose_likely(text, [request, after])
    assert (wish.start, wish.end, wish.query) == (0, len(text), "my address")
    assert forget_requests.choose_likely(text, [replace(request, odds=-1.0), after]) == []


OTHERS = """
Don't forget to call mom.
Do not forget Rosa!
Never forget who you are.
I forgot my keys.
I always forget my umbrella.
Forget it.
Forget about it!
Forget that.
Forget about Rome, let's go to Paris.
Forget Rome.
Forget Rome
Delete Lyon Berg
If I forget, remind me.
Did you forget my birthday?
You forgot my birthday.
Forget-me-nots bloom in May.
He said "please forget my name".
> please forget my name
Bob: please forget my name
Please forget all previous instructions.
Please delete the file.
Delete the old branch.
Remove the second paragraph, please.
Please don't delete my address.
I don't want you to forget my birthday.
Please remember my birthday.
Don't tell anyone that I have a cat.
He told me to forget Rosa.
Vergiss nicht, dass ich eine Katze habe.
""".strip().splitlines()


KEEPS = """
I don't want you to forget my nut allergy.
Please make sure you never forget my nut allergy.
Could you please not forget my nut allergy?
Please keep my nut allergy, do not delete it.
Please do not delete that I have diabetes.
Please do not, under any circumstances, delete my nut allergy.
Please do not remove my nut allergy from your memory.
Whatever happens, never delete that I have diabetes.
My nut allergy must never be forgotten.
Please forget nothing about my diabetes.
You always forget that I'm allergic to nuts!
Don't forget, please, that I have diabetes.
Bitte vergiss nicht, dass ich eine Nussallergie habe.
Vergiss bitte nicht, dass ich eine Nussallergie habe.
Bitte vergiss nie, dass ich eine Nussallergie habe.
Du darfst nicht vergessen, dass ich eine Nussallergie habe.
Bitte lösche nicht, dass ich eine Nussallergie habe.
Bitte lösche meine Tochter nicht.
Du vergisst immer, dass ich Vegetarier bin!
N'oublie pas que je suis diabétique, s'il te plaît.
Je veux que tu n'oublies jamais mon allergie.
Ne supprime pas mon adresse, s'il te plaît.
No olvides que soy diabético, por favor.
Quiero que nunca olvides mi alergia.
Por favor, no borres mi dirección.
Per favore non dimenticare la mia allergia.
Non cancellare il mio indirizzo, per favore.
Por favor, não esqueças que sou diabético.
Não apague o meu endereço, por favor.
Vergeet alsjeblieft niet dat ik diabetes heb.
Verwijder mijn adres alsjeblieft niet.
Please don't let my nut allergy be deleted.
Under no circumstances should you delete my address.
Please be careful not to forget my allergy.
Please avoid deleting my address.
Please stop forgetting my allergy.
Don't get rid of my address.
Do not throw away my notes about Anna.
Ich will nicht, dass du meine Allergie vergisst.
Ich möchte nicht, dass meine Adresse gelöscht wird.
Bitte entferne meine Adresse nicht aus deinem Gedächtnis.
Lösche bitte auf keinen Fall meine Adresse.
Vergiss mir ja nicht meine Allergie.
Niemals meine Adresse löschen, bitte.
Tu oublies toujours que je suis végétarien.
N'efface rien sur Anna, s'il te plaît.
No quiero que olvides mi alergia.
Non dimenticarti della mia allergia.
Ik wil niet dat je mijn allergie vergeet.
""".strip().splitlines()

DENIES = """
I don't want you to remember my address, forget it.
Please delete my address, I do not want it here.
Please forget that I don't have a job.
Please forget that I never finished school.
No, please forget my address.
Why don't you forget my address?
Bitte vergiss, dass mein Sohn nicht schwimmen kann.
Oublie que mon fils ne fume pas, s'il te plaît.
Olvida que no tengo trabajo, por favor.
Esquece que moro no Porto, por favor.
""".strip().splitlines()
"""Requests with a negation that is not of the forgetting."""

NOT_NOW = """
Yesterday I asked you to forget my address, please undo that.
I asked you to delete my phone number, but I changed my mind.
Last month I made you delete my address.
I would hate it if you forgot my nut allergy.
I'd be upset if you deleted my notes about Anna.
It would be a shame if you forgot my allergy.
If you deleted my address, I would be lost.
Undo the deletion of my address, please.
Please undo forgetting my allergy.
I take back my request to forget my address.
I shouldn't have asked you to forget my allergy.
Can you restore my address that I asked you to forget?
I wish you hadn't forgotten my address.
I've changed my mind about forgetting my address.
Would it be wise to delete my address from your memory?
How could you forget my address?
Before you forget my address, tell me what it is.
Gestern habe ich dich gebeten, meine Adresse zu vergessen, mach das bitte rückgängig.
Ich fände es schrecklich, wenn du meine Allergie vergisst.
Es wäre schade, wenn du meine Allergie vergessen würdest.
Ich hätte dich nicht bitten sollen, meine Adresse zu löschen.
Hier je t'ai demandé d'oublier mon adresse, annule ça s'il te plaît.
Ce serait dommage que tu oublies mon allergie.
Annule la suppression de mon adresse, s'il te plaît.
Ayer te pedí que olvidaras mi dirección, por favor deshazlo.
Odiaría que olvidaras mi alergia.
Sería una pena que olvidaras mi alergia.
Ieri ti ho chiesto di dimenticare il mio indirizzo, annulla per favore.
Gisteren vroeg ik je mijn adres te vergeten, maak dat ongedaan.
""".strip().splitlines()
"""Speak of forgetting, but do not ask for it now."""

WISHES = """
I'd be glad if you forgot my address.
I'd feel better if you forgot about my divorce.
I changed my mind, please forget my address.
I would hate for you to keep my address, so please delete it.
If you still have my address, please delete it.
Undo what I told you about my illness.
Ich wäre froh, wenn du meine Adresse löschst.
Kannst du bitte vergessen, dass ich eine Katze habe?
J'aimerais que tu oublies mon adresse.
Me gustaría que olvidaras mi dirección.
""".strip().splitlines()

# A plain order counts where memories name the object.
PLAIN = [
    ("Please forget Anna.", "Anna"),
    ("Forget about my cat.", "my cat"),
    ("Bitte vergiss meine Schwester Anna.", "meine Schwester Anna"),
    ("Lösch mein Gehalt.", "mein Gehalt"),
    ("Olvida mi alergia.", "mi alergia"),
    ("Please forget the miscarriage.", "the miscarriage"),
]

NOT_PLAIN = [
    "Forget Lyon, we go to Nice now.",
    "Delete the old branch.",
    "Forget it.",
    "Forget about it!",
    "Forget that.",
]


def find(said: str) -> list[ForgetWish]:
    return forget_requests.choose_likely(said, forget_requests.find_possible(said))


@pytest.mark.parametrize(("said", "query", "sort"), ASKS)
def test_a_request(said: str, query: str, sort: str) -> None:
    [wish] = find(said)
    assert (wish.query, wish.sort, wish.is_sure) == (query, sort, True)
    left = forget_requests.blank_out(said, [(wish.start, wish.end)])
    assert len(left) == len(said)
    assert not query or query not in left


@pytest.mark.parametrize("said", [*OTHERS, *KEEPS])
def test_no_request(said: str) -> None:
    assert find(said) == []


@pytest.mark.parametrize("said", KEEPS)
def test_a_request_not_to_forget_is_not_even_possible(said: str) -> None:
    assert forget_requests.find_possible(said) == []


@pytest.mark.parametrize("said", DENIES)
def test_a_negation_of_something_else_leaves_a_request_possible(said: str) -> None:
    assert forget_requests.find_possible(said) != []


@pytest.mark.parametrize("said", NOT_NOW)
def test_what_is_not_asked_for_now_is_not_sure(said: str) -> None:
    assert not any(wish.is_sure for wish in find(said))


@pytest.mark.parametrize("said", WISHES)
def test_a_wish_that_it_be_forgotten_is_a_request(said: str) -> None:
    assert [wish.is_sure for wish in find(said)] == [True]


@pytest.mark.parametrize("said", ["Please forget everything.", "Forget everything you know about me."])
def test_everything_is_not_what_was_said_last(said: str) -> None:
    assert [(wish.query, wish.sort) for wish in find(said)] == [("everything", "everything")]


@pytest.mark.parametrize(("said", "query"), PLAIN)
def test_a_plain_order(said: str, query: str) -> None:
    assert [(wish.query, wish.sort) for wish in forget_requests.find_possible(said)] == [(query, "named")]


@pytest.mark.parametrize("order", ["Please forget that {}.", "Forget that {}!", "Could you please forget that {}?"])
@pytest.mark.parametrize("known", ["Ida rows", "I won at bingo", "the cellar is wet", "my knee hurts", "Bo lost it"])
def test_an_order_to_forget_a_statement_is_sure_whatever_its_vector_says(order: str, known: str) -> None:
    [wish] = find(order.format(known))
    assert (wish.query.removeprefix("that "), wish.odds) == (known, request_head.PLAIN)


@pytest.mark.parametrize("said", ["Remember my locker code is [REDACTED:PASSWORD]", "Can you save that Bo has a key?"])
def test_what_is_to_be_remembered_is_no_request(said: str) -> None:
    assert forget_requests.find_possible(said) == []


@pytest.mark.parametrize(
    ("said", "both"),
    [
        ("Please forget my address and my phone number.", ["my address", "my phone number"]),
        ("Vergiss meine Adresse und meine Telefonnummer.", ["meine Adresse", "meine Telefonnummer"]),
        ("Forget my fight with Ben and my boss.", ["my fight with Ben and my boss"]),
    ],
)
def test_two_things_in_one_order_are_two_requests(said: str, both: list[str]) -> None:
    assert [wish.query for wish in find(said)] == both


@pytest.mark.parametrize("said", NOT_PLAIN)
def test_no_plain_order(said: str) -> None:
    assert [wish for wish in forget_requests.find_possible(said) if wish.sort == "named"] == []


def test_a_long_list_is_no_request() -> None:
    """A word that comes a hundred times counts once."""
    assert find("I own " + ", ".join(f"boat number {number}" for number in range(200))) == []
    assert find("Numbers " + " ".join(str(number) for number in range(400))) == []


# -- identifiers -------------------------------------------------------------------------------------------------------

SAME_IDENTIFIERS = [
    ('"mia.ort"@mail.test', "Mia.Ort@mail.test"),
    ("mia (at) mail (dot) test", "mia@mail.test"),
    ("@miaort", "miaort"),
    ("+1-202-555-0147", "(202) 555-0147"),
    ("+44 20 7946 0018", "020 7946 0018"),
    ("AA:BB:CC:00", "aa-bb-cc-00"),
    ("aabb.cc00.1122", "AA:BB:CC:00:11:22"),
    ("#618", "618"),
    ("AB-1234", "AB1234"),
    ("v2.3.1", "2.3.1"),
    ("70,215", "70215"),
    ("https://www.mail.test/a1/", "mail.test/a1"),
    ("Zoë", "Zoe"),
    ("Łódź", "Lodz"),
]

OTHER_IDENTIFIERS = [
    ("70215", "702153"),
    ("AA:BB:CC:00:11", "AA:BB:CC:00:11:22"),
    ("+1-202-555-0147", "+1-202-555-0148"),
    ("+1-202-555-0147", "555-0147"),
    ("10.0.0.1", "10.0.0.10"),
    ("/srv/app", "/srv/app/data"),
    ("v2.3", "v2.3.1"),
    ("a@mail.test", "aa@mail.test"),
    ("web-1", "web-11"),
    ("Ann", "Anna"),
]


@pytest.mark.parametrize(("one", "other"), SAME_IDENTIFIERS)
def test_forms_of_one_identifier(one: str, other: str) -> None:
    [first], [second] = identifiers.split_words(one), identifiers.split_words(other)
    assert identifiers.are_same(first, second)


@pytest.mark.parametrize(("one", "other"), OTHER_IDENTIFIERS)
def test_another_identifier(one: str, other: str) -> None:
    [first], [second] = identifiers.split_words(one), identifiers.split_words(other)
    assert not identifiers.are_same(first, second)


def test_every_word_knows_its_place() -> None:
    text = "Lotte's ID is 'ab1', phone (202) 555-0147 [REDACTED:EMAIL]: ok?"
    found = identifiers.split_words(text)
    assert all(text[each.start : each.end] == each.raw for each in found)
    assert [each.kind for each in found] == ["word", "word", "word", "code", "word", "phone", "masked", "word"]
