"""Secrets and personal data that must be found whole and under their label; `{}` marks where the value stands.

In code rather than in a corpus file: the tokens are put together at run time, so that no scanner takes them for leaks.
"""

from __future__ import annotations

from service.redaction import detection

MIXED = "q7Zr2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uEo0iQw7Zr2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uEo0iQwZ"
HEX = "3f9a1c7e5b2d8f604a6c9e1b7d3f5a8c2e4b6d809f1a3c5e7b9d2f4a6c8e0b1d"
CAPS = "Q7ZR2LMX4VKP5TNB2SWD3HCY6JFG7RTA"
LETTERS = "qZrLmXvKpTnBsWdHcYjFgRtAuEoQwRtYpLkM"
UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

KEYS = [
    "AK" + "IA" + CAPS[:16],
    "AS" + "IA" + CAPS[:16],
    "gh" + "p_" + MIXED[:36],
    "gh" + "o_" + MIXED[:36],
    "github" + "_pat_" + MIXED[:22] + "_" + MIXED[:59],
    "gl" + "pat-" + MIXED[:20],
    "gl" + "rt-" + MIXED[:20],
    "xo" + "xb-123456789012-123456789012-" + MIXED[:24],
    "xo" + "xp-123456789012-123456789012-123456789012-" + HEX[:32],
    "xa" + "pp-1-A012BCDEFGH-1234567890123-" + HEX,
    "https://hooks.slack.com/" + "services/T01234567/B01234567/" + MIXED[:24],
    "sk" + "_live_" + MIXED[:24],
    "rk" + "_live_" + MIXED[:24],
    "pk" + "_test_" + MIXED[:24],
    "wh" + "sec_" + MIXED[:32],
    "sk" + "-" + MIXED[:20] + "T3Blbk" + "FJ" + MIXED[:20],
    "sk" + "-proj-" + MIXED[:48],
    "sk" + "-ant-api03-" + MIXED[:60] + "AA",
    "AI" + "za" + MIXED[:35],
    "ya" + "29." + MIXED[:60],
    "GOC" + "SPX-" + MIXED[:28],
    "S" + "K" + HEX[:32],
    "S" + "G." + MIXED[:22] + "." + MIXED[:43],
    "ke" + "y-" + HEX[:32],
    HEX[:32] + "-us" + "14",
    "np" + "m_" + MIXED[:36],
    "py" + "pi-AgEIcHlwaS5vcmc" + MIXED[:60],
    "h" + "f_" + LETTERS[:34],
    "do" + "p_v1_" + HEX,
    "da" + "pi" + HEX[:32],
    "shp" + "at_" + HEX[:32],
    "sq" + "0atp-" + MIXED[:22],
    "123456789:" + "AAH" + MIXED[:32],
    "MT" + MIXED[:22] + "." + MIXED[:6] + "." + MIXED[:27],
    "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9." + MIXED[:43],
    "hv" + "s." + MIXED[:90],
    "gs" + "k_" + MIXED[:52],
    "li" + "n_api_" + MIXED[:40],
    "PM" + "AK-" + HEX[:24] + "-" + HEX[:34],
    "dck" + "r_pat_" + MIXED[:27],
    "NR" + "AK-" + CAPS[:27],
    "sh" + "a256~" + MIXED[:43],
    "AGE-" + "SECRET-KEY-1" + (CAPS * 2)[:58],
    "gl" + "sa_" + MIXED[:32] + "_" + HEX[:8],
    "pp" + "lx-" + MIXED[:48],
    "acme" + "_live_" + MIXED[:30],
]

IN_CONTEXT = [
    ("aws_secret_access_key = {}", MIXED[:20] + "/" + MIXED[:19]),
    ('"api_key": "{}"', HEX[:32]),
    ("API_KEY={}", MIXED[:24]),
    ("export SERVICE_TOKEN='{}'", MIXED[:30]),
    ("X-API-Key: {}", MIXED[:24]),
    ("Authorization: Bearer {}", MIXED[:40]),
    ("Authorization: Token {}", HEX[:40]),
    ("Authorization: Basic {}", "Ym9iOlN1bW1lcjIwMjQhIQ=="),
    ("my api key is {}", MIXED[:20]),
    ("The API key for the staging server is {}.", HEX[:32]),
    ("the key is {}", HEX[:32]),
    ("the access token is now {}, valid until May", MIXED[:26]),
    ("heroku_api_key: {}", UUID),
    ("client_secret={}&grant_type=password", MIXED[:24]),
    ("AccountName=acme;AccountKey={};EndpointSuffix=core", MIXED[:64] + "=="),
    ('datadog.apiKey = "{}"', HEX[:32]),
    ('System.setProperty("API_TOKEN", "{}")', MIXED[:28]),
    ("<apiToken>{}</apiToken>", MIXED[:28]),
    ('token := "{}"', MIXED[:28]),
    ('"secretKey" => "{}"', MIXED[:28]),
    ("deploy --token {} --now", MIXED[:28]),
    ('meraki_key = "{}"', HEX[:40]),
    ('encryption_key: "{}"', MIXED[:43] + "="),
    ("The bot uses the token `{}` in staging.", MIXED[:28]),
]

PASSWORDS = [
    ("my password is {}", "hunter2"),
    ("My password is {}.", "sunshine"),
    ("my password is {} and my name is Ann", "Tr0ub4dor&3"),
    ("My wifi password is {}!", "blue-Bird-77"),
    ("The password for the router is {}", "admin1234"),
    ("password: {}", "hunter"),
    ("Password: {}", "S3cure!Gate"),
    ("password={}", "abc123"),
    ("DB_PASSWORD={}", "letmein"),
    ("export PGPASSWORD={}", "MyDogSpot"),
    ('"password": "{}"', "correct horse battery staple"),
    ("password = '{}'", "Summer(2024)"),
    ("its password '{}' allowed access", "Portal#Door9"),
    ("The login was bob and the password was '{}'.", "Winter_2023!"),
    ("Server=db;User Id=app;Password={};Timeout=5", "x9!kLm"),
    ("https://example.org/login?user=bob&password={}&next=1", "s3cr3t"),
    ("mysql --user=bob --password={} shop", "Kroko4dil"),
    ("mysql --password {} shop", "Kroko4dil"),
    ("I changed my password to {} today", "Frosch99!"),
    ("{} is my password", "Frosch99!"),
    ("use {} as the admin password", "Frosch99!"),
    ("My passphrase is {}", "purple monkey dishwasher lamp"),
    ("The passphrase: {}", "purple monkey dishwasher lamp"),
    ("Das Passwort ist: {}", "Frosch99!"),
    ("Mein Passwort: {}", "geheim"),
    ("Password:\n{}", "Frosch99!"),
    ("**Password:** {}", "Frosch99!"),
    ("- password: `{}`", "Frosch99!"),
    ('if (db_pass !== "{}") {{', "k}}o)p${e]fin"),
    ('<add key="Password" value="{}" />', "Uqnrgxpkqrh4"),
    ("<password>{}</password>", "Frosch99"),
    ("credentials: admin / {}", "Frosch99!"),
    ("My PIN is {}", "4821"),
    ("PIN: {}", "482193"),
    ("the door code is {}", "4821"),
    ("my card pin is {}", "4821"),
    ("my gmail password is '{}'", "open sesame"),
    ("the password I use is {}", "banana"),
    ("seed phrase: {}", "ocean tiger lamp river stone cloud mirror apple train guitar window forest"),
    ("Your verification code is {}.", "482913"),
    ("sshpass -p x; passwd: {}", "qwertz12"),
]

EMAILS = [
    ("Write to {}.", "ann.lee+news@mail.example.co.uk"),
    ("<{}>", "bob@example.org"),
    ("mailto:{}?subject=x", "bob@example.org"),
    ("email={}&x=1", "bob_smith@example.io"),
    ("Contact:{}, please", "x@xn--bcher-kva.example"),
    ("schreib an {}", "jürgen@müller-bäcker.de"),
    ("reach me: {}", "ann (at) example (dot) org"),
    ("reach me: {}", "ann [at] example.org"),
    ("'{}'", "o'neil@example.ie"),
]

PHONES = [
    ("Call me at {}", "555-0134"),
    ("call {} now", "+49 30 901820"),
    ("{}", "+1 (212) 555-0187"),
    ("{}", "(212) 555-0187"),
    ("{}", "212-555-0187"),
    ("{}", "212.555.0187"),
    ("{} is the front desk", "1-800-555-0199"),
    ("Desk: {}", "212-555-0187 ext. 42"),
    ("Desk: {}", "212-555-0187x42"),
    ("Tel. {}", "030/901820-12"),
    ("Telefon: {}", "0171 1234567"),
    ("phone={}", "2125550187"),
    ('"phone": "{}"', "2125550187"),
    ("My number is {}.", "2125550187"),
    ("text her on {}", "07700 900123"),
    ("You can reach us under {}", "0911 99 88 77"),
    ("{} (mobile)", "0911 99 88 77"),
    ("{} office", "45 12 98 76"),
    ("Mobile:\n{}", "612 345 678"),
    ("They are not answering at {}", "96 237 271"),
    ("+ WhatsApp {}", "+91 98765 43210"),
    ("ring me back on {}", "020 7946 0018"),
    ("numero de {}", "+34 612 34 56 78"),
    ("Fax: {}", "+33 (0)1 23 45 67 89"),
    ("the international form is {}", "0044 20 7946 0018"),
    ("tel:{}", "+12125550187"),
    ("stop sending messages to {}", "447 1190"),
]

CARDS = [
    ("{}", "4111 1111 1111 1111"),
    ("{}", "4111-1111-1111-1111"),
    ("card {} expires soon", "4111111111111111"),
    ("{}", "5555555555554444"),
    ("amex {}", "3782 822463 10005"),
    ("{}", "378282246310005"),
    ("{}", "30569309025904"),
    ("{}", "6011111111111117"),
    ("{}", "3530111333300000"),
    ("cc {}", "4222222222222"),
    ("my maestro card {}", "6759649826438453"),
    ("the credit card number is {}", "4111 1111 1111 1112"),
    ("card ending: {}", "4111 **** **** 1111"),
    ("{} 12/29 123", "4111111111111111"),
    ("{} 12/29 123", "4111 1111 1111 1111"),
    ("pay with {}, thanks", "2223003122003222"),
]

SSNS = [
    ("My SSN is {}", "536-22-8134"),
    ("{}", "536-22-8134"),
    ("{}", "536 22 8134"),
    ("ssn: {}", "536228134"),
    ("social security number {}", "536228134"),
    ("SSN {}", "536 228 134"),
    ("ITIN {}", "912-70-1234"),
]

IBANS = [
    ("Pay to {} by Friday", "DE89 3704 0044 0532 0130 00"),
    ("{}", "DE89370400440532013000"),
    ("iban {}", "gb82west12345698765432"),
    ("{}.", "FR14 2004 1010 0505 0001 3M02 606"),
    ("{} X", "NL91 ABNA 0417 1643 00"),
    ("{}", "CH93-0076-2011-6238-5295-7"),
]

IPS = [
    ("The host is {}", "192.168.1.17"),
    ("http://{}:8080/x", "10.0.0.5"),
    ("{}", "203.0.113.7/24"),
    ("ping {}", "fe80::1ff:fe23:4567:890a"),
    ("[{}]:443", "2001:db8::8a2e:370:7334"),
    ("{}", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    ("listen on {}", "::1"),
    ("ssh root@{}", "10.1.2.3"),
    ("{} - - [12/May/2024:10:00:00 +0000]", "198.51.100.23"),
    ("route {}", "2001:db8::/32"),
]

CONNECTIONS = [
    ("{}", "postgresql://app:s3cr3t@db.example.org:5432/app"),
    ("DATABASE_URL={}", "mysql://root:pa/ss@10.0.0.3/shop"),
    ("use {} here", "redis://:hunter2@cache:6379/0"),
    ('"{}"', "https://bob:Frosch99@git.example.org/x.git"),
    ("the store at {}.", "mongodb+srv://u:p4ss@cluster0.example.net/?retryWrites=true"),
]

PEM = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEpAIBAAKCAQEA" + MIXED + "\n-----END RSA PRIVATE " + "KEY-----"
PRIVATE = [
    ("here:\n{}\nthanks", PEM),
    ("{}", PEM.replace("\n", "\\n")),
    ("cut off {}", PEM[:90]),
    ("{}", PEM.replace("RSA", "OPENSSH")),
]

CASES = [
    *(("API_KEY", frame, key) for key in KEYS for frame in ("{}", "use {} for now", 'KEY="{}"', "it is `{}`.")),
    *(("API_KEY", frame, key) for frame, key in IN_CONTEXT),
    *(("PASSWORD", frame, value) for frame, value in PASSWORDS),
    *(("EMAIL", frame, value) for frame, value in EMAILS),
    *(("PHONE", frame, value) for frame, value in PHONES),
    *(("CREDIT_CARD", frame, value) for frame, value in CARDS),
    *(("SSN", frame, value) for frame, value in SSNS),
    *(("IBAN", frame, value) for frame, value in IBANS),
    *(("IP", frame, value) for frame, value in IPS),
    *(("CONNECTION_STRING", frame, value) for frame, value in CONNECTIONS),
    *(("PRIVATE_KEY", frame, value) for frame, value in PRIVATE),
]


def check_taken_out(label: str, frame: str, value: str) -> None:
    """The value goes whole and under its label, and a second pass changes nothing."""
    before, after = frame.replace("{{", "{").split("{}")
    redacted = detection.redact(before + value + after)
    assert any(item.label == label for item in redacted.redactions), redacted
    kept = redacted.text.replace(f"[REDACTED:{label}]", "")
    assert value not in kept
    assert not any(part in kept for part in (value[:4] * (len(value) > 8), value[-4:] * (len(value) > 8)) if part)
    assert redacted.text.startswith(before[:1])
    assert detection.redact(redacted.text).text == redacted.text


def test_every_value_is_taken_out() -> None:
    wrong = []
    for label, frame, value in CASES:
        try:
            check_taken_out(label, frame, value)
        except AssertionError as exc:
            wrong.append(f"{label} {frame!r} {value[:6]}...: {exc}")
    assert not wrong, "\n".join(wrong)


def test_aws_secret_beside_its_id() -> None:
    secret = MIXED[:20] + "+" + MIXED[:19]
    text = f"{KEYS[0]}\n{secret}\n"
    assert detection.redact(text).text == "[REDACTED:API_KEY]\n[REDACTED:API_KEY]\n"


def test_kubernetes_secret() -> None:
    text = "apiVersion: v1\nkind: Secret\ndata:\n  username: YWRtaW5pc3Rlcg==\n  door: UzNjcmV0LWRvb3I=\n"
    assert "UzNj" not in detection.redact(text).text
