"""Keys made by the grammars that vendors publish, to see whether redaction finds them; it knows no pattern of ours."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Callable, Iterator

UPPER, LOWER, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
HEX = "0123456789abcdef"
BASE32 = UPPER + "234567"
BASE62 = DIGITS + UPPER + LOWER
BASE64 = UPPER + LOWER + DIGITS + "+/"
URL = UPPER + LOWER + DIGITS + "-_"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

Maker = Callable[[random.Random], str]


def of(prefix: str, alphabet: str, length: int, suffix: str = "") -> Maker:
    """Prefix, so many random characters, suffix."""
    return lambda chance: prefix + "".join(chance.choices(alphabet, k=length)) + suffix


def joined(*parts: Maker | str) -> Maker:
    """The parts one after the other."""
    return lambda chance: "".join(part if isinstance(part, str) else part(chance) for part in parts)


def one_of(*makers: Maker) -> Maker:
    return lambda chance: chance.choice(makers)(chance)


def uuid(chance: random.Random) -> str:
    text = "".join(chance.choices(HEX, k=32))
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def github(prefix: str) -> Maker:
    """30 random characters and their CRC-32 in six of base 62."""

    def make(chance: random.Random) -> str:
        body = "".join(chance.choices(BASE62, k=30))
        rest, check = zlib.crc32(body.encode()), ""
        for _ in range(6):
            rest, place = divmod(rest, 62)
            check = BASE62[place] + check
        return prefix + body + check

    return make


def jwt(chance: random.Random) -> str:
    head = {"alg": chance.choice(["HS256", "RS256", "ES256"]), "typ": "JWT"}
    body = {"sub": str(chance.randrange(10**9)), "iat": 1_700_000_000 + chance.randrange(10**7)}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (head, body))
    return ".".join([*parts, of("", URL, 43)(chance)])


def telegram(chance: random.Random) -> str:
    return f"{chance.randrange(10**8, 10**10)}:AA{of('', URL, 33)(chance)}"


def discord(chance: random.Random) -> str:
    who = base64.urlsafe_b64encode(str(chance.randrange(10**17, 10**19)).encode()).decode().rstrip("=")
    return f"{who}.{of('', URL, 6)(chance)}.{of('', URL, chance.choice([27, 38]))(chance)}"


def private_key(kind: str) -> Maker:
    def make(chance: random.Random) -> str:
        lines = [of("", BASE64, 64)(chance) for _ in range(5)]
        return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])

    return make


def address(scheme: str, host: str) -> Maker:
    def make(chance: random.Random) -> str:
        password = of("", BASE62 + "!%*.", chance.randrange(8, 24))(chance)
        return f"{scheme}://{of('', LOWER, 6)(chance)}:{password}@{host}"

    return make


SHAPES: dict[str, Maker] = {
    "own key": of("lox_", URL, 43),
    "AWS access key": one_of(*(of(prefix, BASE32, 16) for prefix in ("AKIA", "ASIA", "ABIA", "ACCA"))),
    "AWS Bedrock": of("ABSK", BASE64, 128),
    "GitHub classic": one_of(*(github(prefix) for prefix in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"))),
    "GitHub fine-grained": joined(of("github_pat_", BASE62, 22), "_", of("", BASE62, 59)),
    "GitLab personal": of("glpat-", URL, 20),
    "GitLab routable": joined(of("glpat-", URL, 40), ".", of("", LOWER + DIGITS, 9)),
    "GitLab pipeline": of("glptt-", HEX, 40),
    "GitLab runner": one_of(of("glrt-", URL, 20), of("GR1348941", URL, 20)),
    "GitLab deploy": of("gldt-", URL, 20),
    "Slack bot": joined(of("xoxb-", DIGITS, 12), "-", of("", DIGITS, 13), "-", of("", BASE62, 24)),
    "Slack user": joined(
        of("xoxp-", DIGITS, 12), "-", of("", DIGITS, 12), "-", of("", DIGITS, 13), "-", of("", HEX, 32)
    ),
    "Slack app": joined(of("xapp-1-A", UPPER + DIGITS, 10), "-", of("", DIGITS, 13), "-", of("", HEX, 64)),
    "Slack webhook": joined(
        of("https://hooks.slack.com/services/T", UPPER + DIGITS, 8), of("/B", UPPER + DIGITS, 8), of("/", BASE62, 24)
    ),
    "Stripe": joined(one_of(of("sk_live_", "", 0), of("rk_live_", "", 0), of("sk_test_", "", 0)), of("", BASE62, 24)),
    "Stripe long": of("sk_live_51", BASE62, 97),
    "Stripe webhook": of("whsec_", BASE62, 32),
    "OpenAI": joined(of("sk-", BASE62, 20), of("T3BlbkFJ", BASE62, 20)),
    "OpenAI project": joined(of("sk-proj-", URL, 74), of("T3BlbkFJ", URL, 74)),
    "OpenAI service account": joined(of("sk-svcacct-", URL, 74), of("T3BlbkFJ", URL, 74)),
    "Anthropic": of("sk-ant-api03-", URL, 93, "AA"),
    "Anthropic admin": of("sk-ant-admin01-", URL, 93, "AA"),
    "Google API": of("AIza", URL, 35),
    "Google OAuth secret": of("GOCSPX-", URL, 28),
    "Google OAuth token": of("ya29.", URL, 120),
    "Azure client secret": joined(of("", BASE62, 3), of("8Q~", BASE62 + "_~.-", 34)),
    "Azure storage": joined(
        of("DefaultEndpointsProtocol=https;AccountName=", LOWER, 8), of(";AccountKey=", BASE64, 86, "==")
    ),
    "Azure service bus": joined(
        of("Endpoint=sb://", LOWER, 8), ".servicebus.windows.net/;SharedAccessKeyName=Root;",
        of("SharedAccessKey=", BASE64, 43, "="),
    ),
    "Azure DevOps": joined(of("", BASE62, 76), of("AZDO", BASE62, 4)),
    "Azure annotated": joined(of("", BASE62, 52), of("JQQJ99", BASE62, 26)),
    "Azure shared access": joined("https://x.blob.core.windows.net/c?sv=2022-11-02&sig=", of("", BASE62, 43, "%3D")),
    "npm": of("npm_", BASE62, 36),
    "PyPI": of("pypi-AgEIcHlwaS5vcmc", URL, 120),
    "SendGrid": joined(of("SG.", URL, 22), of(".", URL, 43)),
    "Twilio": of("SK", HEX, 32),
    "Hugging Face": of("hf_", LOWER + UPPER, 34),
    "DigitalOcean": one_of(of("dop_v1_", HEX, 64), of("doo_v1_", HEX, 64), of("dor_v1_", HEX, 64)),
    "Shopify": one_of(*(of(prefix, HEX, 32) for prefix in ("shpat_", "shpca_", "shppa_", "shpss_"))),
    "Databricks": of("dapi", HEX, 32, "-2"),
    "Linear": of("lin_api_", BASE62, 40),
    "Notion": joined(of("ntn_", DIGITS, 11), of("", BASE62, 35)),
    "Notion internal": of("secret_", BASE62, 43),
    "Telegram bot": telegram,
    "Discord bot": discord,
    "Discord webhook": joined(of("https://discord.com/api/webhooks/", DIGITS, 18), of("/", URL, 68)),
    "JWT": jwt,
    "age": of("AGE-SECRET-KEY-1", BECH32, 58),
    "Vault": one_of(of("hvs.", URL, 91), of("hvb.", URL, 138)),
    "Terraform": joined(of("", BASE62, 14), ".atlasv1.", of("", URL, 67)),
    "Docker": of("dckr_pat_", URL, 27),
    "Grafana": joined(of("glsa_", BASE62, 32), "_", of("", HEX, 8)),
    "New Relic": of("NRAK-", UPPER + DIGITS, 27),
    "Sentry user": of("sntryu_", HEX, 64),
    "Postman": joined(of("PMAK-", HEX, 24), "-", of("", HEX, 34)),
    "Mailgun": of("key-", HEX, 32),
    "Mailchimp": of("", HEX, 32, "-us14"),
    "Square": one_of(of("sq0atp-", URL, 22), of("EAAA", URL, 60)),
    "Groq": of("gsk_", BASE62, 52),
    "xAI": of("xai-", BASE62, 80),
    "Perplexity": of("pplx-", BASE62, 48),
    "Replicate": of("r8_", BASE62, 37),
    "OpenRouter": of("sk-or-v1-", HEX, 64),
    "Together": of("tgp_v1_", URL, 43),
    "ElevenLabs": of("sk_", HEX, 48),
    "Pinecone": joined(of("pcsk_", BASE62, 6), of("_", BASE62, 63)),
    "LangSmith": joined(of("lsv2_pt_", HEX, 32), of("_", HEX, 10)),
    "Supabase": one_of(of("sbp_", HEX, 40), of("sb_secret_", URL, 31)),
    "Netlify": of("nfp_", BASE62, 36),
    "Heroku": of("HRKU-AA", URL, 58),
    "PlanetScale": of("pscale_tkn_", URL, 43),
    "Doppler": of("dp.pt.", BASE62, 43),
    "Figma": of("figd_", URL, 40),
    "Airtable": joined(of("pat", BASE62, 14), of(".", HEX, 64)),
    "Atlassian": joined(of("ATATT3", URL, 178), of("=", UPPER + DIGITS, 8)),
    "RubyGems": of("rubygems_", HEX, 48),
    "Dynatrace": joined(of("dt0c01.", BASE32, 24), of(".", BASE32, 64)),
    "Alibaba": of("LTAI", BASE62, 20),
    "HubSpot": joined("pat-na1-", uuid),
    "Razorpay": of("rzp_live_", BASE62, 14),
    "PostHog": of("phx_", BASE62, 43),
    "Sonar": of("sqp_", HEX, 40),
    "CircleCI": joined(of("CCIPAT_", BASE62, 22), of("_", HEX, 40)),
    "Asana": joined(of("2/", DIGITS, 16), of("/", DIGITS, 16), of(":", HEX, 32)),
    "1Password": of("ops_eyJ", BASE64, 300),
    "SSH private key": private_key("OPENSSH PRIVATE KEY"),
    "RSA private key": private_key("RSA PRIVATE KEY"),
    "PGP private key": private_key("PGP PRIVATE KEY BLOCK"),
    "Postgres address": address("postgresql", "db.example.org:5432/app"),
    "MongoDB address": address("mongodb+srv", "cluster0.example.net/app"),
    "Redis address": address("redis", "cache.example.org:6379/0"),
    "AMQP address": address("amqps", "queue.example.org/vhost"),
}  # fmt: skip

SENTENCES = (
    "Here it is: {}",
    "We deployed with {} on Friday.",
    "please use {}, thanks",
    "The value ({}) is in the vault now",
    'config = "{}"',
    "{}",
    "Notes\n- {}\n- call Ana",
)


def samples(shape: str, count: int = 200) -> Iterator[tuple[str, str]]:
    """Values of a shape and sentences around them; the same on every run."""
    chance = random.Random(shape)
    for place in range(count):
        value = SHAPES[shape](chance)
        yield value, SENTENCES[place % len(SENTENCES)].format(value)
