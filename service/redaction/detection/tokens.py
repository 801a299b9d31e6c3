"""Recognises keys by their own shape, in any context.

The shapes are from the vendors' documentation, with a slightly shorter minimum length, so that a truncated paste is
found too. A candidate must also look random: `ghp_xxxxxxxx` in a manual is not a secret.

All patterns run over long unbroken runs only, which ordinary prose hardly has. Quantifiers are possessive or bounded,
so that no text can make them slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from service.redaction.detection.findings import API_KEY, Finding
from service.redaction.detection.value_shapes import entropy_bits

_WORD = "[A-Za-z0-9]"
_URL = r"[\w-]"
_HEX = "[0-9a-fA-F]"
_ANY = r"[\w.+/=$-]"
_RANDOM = r"(?=[a-z\d_-]{0,80}[A-Z])(?=(?:[A-Za-z]{0,40}\d+[A-Za-z]){2})"
_UUID = f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"

# prefix, alphabet, least number of characters after the prefix
OWN: tuple[str, str, int] = (r"lox[a-z]{0,2}_", _URL, 20)
"""The keys and tokens of this service."""

# prefixes that share an alphabet and the least number of characters after them
PREFIXED: tuple[tuple[str, str, int], ...] = (
    OWN,
    (r"(?:sk|rk|pk|rzp)_(?:live|test|prod)_", _WORD, 10),
    (r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])|LTAI", _WORD, 16),
    (r"AKID|sk-|shp(?:at|ca|pa|ss|tka|ua)_", _WORD, 20),
    (
        r"gh[opusr]_|npm_|pnu_|(?:snyk|sonar|codecov|circleci|bkua)_|nf[pucbo]_|HCP[A-Z0-9]{0,4}_"
        r"|(?:hf|api_org)_|lin_(?:api|oauth)_",
        _WORD,
        30,
    ),
    (
        r"CLOJARS_|napi_|AGE-SECRET-KEY-1|pplx-|gsk_|csk-|EZ[AT]K|dt0[a-z]\d{2}\.[A-Z0-9]{20,28}\.|ntn_"
        r"|secret_|ph[cx]_",
        _WORD,
        40,
    ),
    (r"xai-|rdme_", _WORD, 60),
    (r"dapi|SK|shippo_(?:live|test)_|PMAK-[0-9a-f]{20,28}-", _HEX, 30),
    (r"rubygems_|sq[upa]_|sgp_(?:local_|[0-9a-fA-F]{16}_)?|pul-|do[opr]_v1_|sbp_|e2b_|sk_", _HEX, 40),
    (r"pat[A-Za-z0-9]{14}\.", _HEX, 60),
    (r"FLW(?:SECK|PUBK)(?:_TEST)?-", _URL, 10),
    (r"xox[abeoprscd](?:\.xox[abp])?-", _URL, 14),
    (r"GR1348941|NR(?:AK|II|JS|AL|RA)-", _URL, 16),
    (
        r"dckr_(?:pat|oat)_|GOCSPX-|hv[sbr]\.|sb_secret_"
        r"|sk-(?:proj|svcacct|admin|None|or-v1|lf|ant-[a-z0-9]{3,8})-|tvly-|xapp-\d-|SG\.[\w-]{14,40}\."
        r"|sq0(?:atp|csp|idp)-",
        _URL,
        20,
    ),
    (r"github_pat_|amzn\.mws\.|AIza|AQVN|HRKU-|lsv2_(?:pt|sk)_|pat-(?:na|eu)\d-|fig[dou]_", _URL, 30),
    (r"pypi-|CCIPAT_|dnkey-|tgp_v\d_|nvapi-|pcsk_|jina_|xkeysib-|xsmtpsib-|CFPAT-", _URL, 40),
    (r"fio-u-", _URL, 60),
    (r"gl(?:pat|dt|cbt|ptt|ft|imt|agent|soat|oas|rt|rtr|ffct|wt)-", _ANY, 16),
    (r"ATATT3|ATCTT3|ATBB|ya29\.|whsec_", _ANY, 20),
    (
        r"pscale_(?:tkn|pw|oauth)_|dp\.(?:pt|st|ct|sa|scim|audit)\.|access_token\$(?:production|sandbox)\$"
        r"|gl(?:sa|c)_",
        _ANY,
        30,
    ),
    (r"sntry[su]_|EAAA|duffel_(?:live|test)_|tfp_", _ANY, 40),
    (r"ABSK|bedrock-api-key-|ops_eyJ|eyJrIjoi", _ANY, 60),
)

# Ambiguous prefixes: in a text they begin a key, in an id they may belong to the id.
COMMON_PREFIXES: tuple[tuple[str, str, int], ...] = (
    (r"A(?:GPA|IDA|ROA)|endr\+|sm_(?:pat|sat|aat)_|(?:pat|sat)\.[\w-]{20,24}\.[0-9a-f]{24}\.", _WORD, 16),
    (
        r"API-|rnd_|vc[pkiar]_|aio_|access_key_|secret_key_|api_key_|apikey_|token_"
        r"|[a-z]{2,12}_(?:live|test|prod|sandbox)_",
        _WORD,
        20,
    ),
    (
        r"[a-z]{2,12}_(?:live|test|prod|sandbox|sec(?:ret)?|[sp]k|pat|tok)_(?=(?:[A-Za-z]*\d+[A-Za-z]){2})",
        _WORD,
        12,
    ),
    (r"4b1d|sess-|r8_|p8e-|ico-", _WORD, 30),
    (r"cmVmd", _WORD, 40),
    (r"AKCp\d|EAA[CM]", _WORD, 60),
    (r"fc-|AC|(?:pub)?key-|private-|c[ks]_", _HEX, 30),
    (r"s-s4t2(?:ud|af)-", _HEX, 60),
    (rf"1//0[a-z0-9]?|(?:sdk|mob|api)-(?={_UUID})|access-(?:sandbox|development|production)-", _URL, 30),
    (r"sha256~|tk-us-|pa-", _URL, 40),
    (r"v1\.0-|sl\.", _URL, 40),
    (r"fo1_|fm1[ar]_|fm2_|live_", _ANY, 30),
    (r"[sp]k\.(?:eyJ)?|(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.", _ANY, 40),
    (r"ZXlK|ZXlB|ZXdv|t1\.[\w-]{2,400}=*\.", _ANY, 60),
    (rf"(?=[a-z]{{3,14}}+[_-])[a-z]{{0,8}}(?:key|tok(?:en)?|secret|auth)[_-](?:[a-z]{{2,8}}[_-])?{_RANDOM}", _URL, 14),
    (rf"[a-z]{{2,8}}+[.-]{_RANDOM}", _URL, 38),
)

# With a fixed length, or unique words in the middle: found even right after a letter, as in `pAKIA...`.
UNMISTAKABLE: tuple[str, ...] = (
    r"lox_[\w-]{43}(?![\w-])",
    rf"gh[opusr]_{_WORD}{{36}}(?!\w)",
    rf"github_pat_{_WORD}{{22}}_{_WORD}{{59}}(?!\w)",
    r"glpat-[\w-]{20}(?![\w-])",
    rf"npm_{_WORD}{{36}}(?!\w)",
    r"pypi-AgEIcHlwaS5vcmc[\w-]{50,}+",
    r"dckr_pat_[\w-]{27}(?![\w-])",
    r"A(?<![A-Z0-9]A)(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"AIza(?<![A-Z0-9]AIza)[\w-]{35}(?![\w-])",
    r"GOCSPX-[\w-]{28}(?![\w-])",
    r"do[opr]_v1_[0-9a-f]{64}(?!\w)",
    r"sk-ant-[a-z]{3,6}\d\d-[\w-]{80,}+",
    r"sk-[\w-]{20,90}?T3BlbkFJ[\w-]{20,}+",
    rf"[sr]k_live_51{_WORD}{{80,}}+",
    r"xox[bp]-\d{10,13}-\d{10,13}-[\w-]{20,}+",
    r"SG\.(?<![A-Z0-9]SG\.)[\w-]{22}\.[\w-]{43}(?![\w-])",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?!\w)",
    r"sq0(?:atp|csp)-[\w-]{22,43}+(?![\w-])",
    r"(?<!\d)\d{8,10}:A[A-H][\w-]{33}(?![\w-])",  # Telegram bot, after `/bot` in a URL
    r"AGE-SECRET-KEY-1(?<![A-Z0-9]AGE-SECRET-KEY-1)[A-Z0-9]{58}(?!\w)",
)

# Formats without a telling prefix: the whole shape is the sign.
SHAPES: tuple[str, ...] = (
    r"(?:eyJ|eyA|ewo)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w+/=-]*+)?",  # JWT, with or without signature
    r"[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,42}",  # Discord bot
    r"[0-9a-f]{32}-us\d{1,2}(?!\w)",  # Mailchimp
    r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])",  # Mailgun
    rf"A3-[A-Z0-9]{{6}}-{_WORD}{{5,11}}(?:-{_WORD}{{5}}){{3,4}}(?!\w)",  # 1Password secret key
    rf"{_WORD}{{6}}_{_WORD}{{29}}_mmk",  # MaxMind
    rf"{_WORD}{{14}}\.atlasv1\.[\w=-]{{40,}}+",  # Terraform Cloud
    r"[\w~.]{3}[0-9]Q~[\w~.-]{30,}+",  # Azure AD client secret
    r"YC[\w-]{38}(?![\w/+-])",  # Yandex Cloud
    rf"{_WORD}{{76}}AZDO{_WORD}{{4}}(?!\w)",  # Azure DevOps
    rf"{_WORD}{{52}}JQQJ99{_WORD}{{26}}(?!\w)",  # Azure services, keys that say whose they are
    r"[0-2]/\d{15,17}(?:/\d{15,17})?:[0-9a-f]{32}",  # Asana
    r"(?:https?://)?hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,}+",
    r"(?:https?://)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,22}/[\w-]{20,}+",
    r"(?:https?://)?[\w-]{1,60}\.webhook\.office\.com/webhookb2/[\w@/-]{60,}+",
    r"(?:https?://)?hooks\.zapier\.com/hooks/catch/[\w/]{8,}+",
    r"A{20,22}[A-Za-z0-9%]{80,}+",  # Twitter bearer
    r"(?<=_gitlab_session=)[0-9a-f]{32}",
    r"(?<=CONTRIBSYS__COM=)[0-9a-f]{8}:[0-9a-f]{8}",  # Sidekiq
    r"softlayer\.com/soap/v3(?:\.1)?/[a-z0-9]{64}",
)

# A run of token characters; anything shorter cannot be one of the above.
_RUN = re.compile(r"""[^\s"'`<>(){}\[\],;|\\]{16,}+""")


def _any_of(prefixed: Iterable[tuple[str, str, int]]) -> re.Pattern[str]:
    forms = [*SHAPES, *(f"(?:{prefix}){chars}{{{least},}}+" for prefix, chars, least in prefixed)]
    return re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z0-9_~.%])(?:" + "|".join(forms) + ")", re.ASCII)


_TELLING = _any_of(PREFIXED)
_TOKEN = _any_of([*PREFIXED, *COMMON_PREFIXES])
_GLUED = re.compile("|".join(UNMISTAKABLE), re.ASCII)
# Azure shared access: the parameter before it says what it is, and the run it ends may be long.
_SIGNATURE = re.compile(r"[?&]sig=([\w%+/=-]{30,}+)", re.ASCII)
# test_returns_201_when_nothing_changed: four words and more are a name, not a key.
_SPOKEN = re.compile(
    r"(?:(?:[a-z]+\d{0,2}|[A-Z]+\d{0,2}|[A-Z][a-z]+|\d{1,4}[a-z]{0,2})[_.-]){3,}(?:[a-z]+|[A-Z]+|[A-Z][a-z]+|\d{1,4}[a-z]{0,2})$"
)
_AWS_ID = re.compile(r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}")
_AWS_SECRET = re.compile(r"(?<![\w/+=])[A-Za-z0-9/+]{40}(?![\w/+=])")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_BASE64_OF_ADDRESSES = re.compile(r"[\w+/-]*", re.ASCII)
_AWS_REACH_CHARS = 300  # the distance of a secret from its access key id in a credentials file or a table

# Below this a body is a mask or a filler. Real tokens of 20 characters have 3.5 to 4.3 bits.
_MIN_BITS = 2.6


def find(text: str) -> Iterator[Finding]:
    """Keys that vendors have made recognisable, AWS secrets near their key id, and signatures of addresses."""
    for found in _find_shaped(text, _TOKEN):
        yield found
        yield from _aws_secrets(text, found)
    if "sig=" in text:
        for match in _SIGNATURE.finditer(text):
            yield Finding(match.start(1), match.end(1), API_KEY)


def find_telling(name: str) -> Iterator[Finding]:
    """Finds only keys with a unique prefix or shape."""
    yield from _find_shaped(name, _TELLING)


def _find_shaped(text: str, pattern: re.Pattern[str]) -> Iterator[Finding]:
    for run in _RUN.finditer(text):
        for shape in (pattern, _GLUED):
            for match in shape.finditer(text, run.start(), run.end()):
                if _is_disordered(match.group()) and not _is_within_base64(text, match.start()):
                    yield Finding(match.start(), match.end(), API_KEY)


def _is_within_base64(text: str, start: int) -> bool:
    """Whether a match continues Base64: in a long image every short prefix occurs by chance."""
    before = text[max(0, start - 40) : start]
    if len(before) < 40 or not (before[-1] in "+/" or before[-1].isalnum()):
        return False
    alphabet = _BASE64_OF_ADDRESSES if before[-1].isalnum() else _BASE64
    return alphabet.fullmatch(before) is not None and _is_mixed(before)


def _is_mixed(text: str) -> bool:
    return all(sum(map(kind, text)) >= 3 for kind in (str.isupper, str.islower, str.isdigit))


def _is_disordered(token: str) -> bool:
    if _AWS_ID.fullmatch(token):  # base 32: one in thirty has no digit
        return entropy_bits(token[4:]) >= _MIN_BITS
    body = token[4:400]
    varied = any(map(str.isdigit, body)) or (any(map(str.isupper, body)) and any(map(str.islower, body)))
    return varied and entropy_bits(body) >= _MIN_BITS and not _SPOKEN.match(token[:400])


def _aws_secrets(text: str, found: Finding) -> Iterator[Finding]:
    if not _AWS_ID.fullmatch(text, found.start, found.end):
        return
    for match in _AWS_SECRET.finditer(text, found.end, min(len(text), found.end + _AWS_REACH_CHARS)):
        body = match.group()
        if any(map(str.isdigit, body)) and any(map(str.isupper, body)) and any(map(str.islower, body)):
            yield Finding(match.start(), match.end(), API_KEY)
