"""The shapes that vendors give their keys, so that leaks can be found: prefix, alphabet, least length.

As the vendors' pages give them, with the least length a little short so that a truncated paste is found, too.
"""

from __future__ import annotations

_WORD = "[A-Za-z0-9]"
_URL = r"[\w-]"
_HEX = "[0-9a-fA-F]"
_B64 = "[A-Za-z0-9+/=_-]"
_UUID = f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"

# prefix, alphabet, least number of characters after the prefix
OWN: tuple[str, str, int] = (r"lox[a-z]{0,2}_", _URL, 20)
"""The keys and tokens of this service."""

PREFIXED: tuple[tuple[str, str, int], ...] = (
    OWN,
    # source hosting, build and packages
    (r"gh[opusr]_", _WORD, 30),
    (r"github_pat_", r"\w", 30),
    (r"gl(?:pat|dt|cbt|ptt|ft|imt|agent|soat|oas|rt|rtr|ffct|wt)-", r"[\w.-]", 16),
    (r"GR1348941", _URL, 18),
    (r"npm_", _WORD, 30),
    (r"pypi-", _URL, 50),
    (r"rubygems_", _HEX, 40),
    (r"CLOJARS_", _WORD, 50),
    (r"dckr_(?:pat|oat)_", _URL, 20),
    (r"ATATT3|ATCTT3|ATBB", _B64, 24),
    (r"sq[upa]_", _HEX, 40),
    (r"sgp_(?:local_|[0-9a-fA-F]{16}_)?", _HEX, 40),
    (r"sntry[su]_", _B64, 40),
    (r"pul-", _HEX, 40),
    (r"pnu_", _WORD, 32),
    (r"CCIPAT_", r"\w", 40),
    (r"(?:snyk|sonar|codecov|circleci|bkua)_", _WORD, 30),
    # clouds and hosts
    (r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])", "[A-Z0-9]", 16),
    (r"ABSK|bedrock-api-key-", _B64, 60),
    (r"amzn\.mws\.", "[0-9a-f-]", 36),
    (r"AIza", _URL, 33),
    (r"ya29\.", r"[\w.-]", 20),
    (r"GOCSPX-", _URL, 20),
    (r"LTAI", _WORD, 16),
    (r"AKID", _WORD, 28),
    (r"AQVN", _URL, 32),
    (r"do[opr]_v1_", _HEX, 40),
    (r"HRKU-", _URL, 30),
    (r"dapi", _HEX, 32),
    (r"hv[sbr]\.", _URL, 20),
    (r"nf[pucbo]_", _WORD, 30),
    (r"dnkey-", _URL, 40),
    (r"pscale_(?:tkn|pw|oauth)_", r"[\w=.-]", 30),
    (r"sbp_|e2b_", _HEX, 40),
    (r"sb_secret_", _URL, 20),
    (r"napi_", _WORD, 40),
    (r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"[\w.-]", 38),
    (r"ops_eyJ", _B64, 100),
    (r"HCP[A-Z0-9]{0,4}_", _WORD, 30),
    (r"AGE-SECRET-KEY-1", "[A-Z0-9]", 50),
    # models and search
    (r"sk-(?:proj|svcacct|admin|None|or-v1|lf|ant-[a-z0-9]{3,8})-", _URL, 20),
    (r"sk-", _WORD, 20),
    (r"(?:hf|api_org)_", _WORD, 30),
    (r"pplx-", _WORD, 40),
    (r"gsk_", _WORD, 40),
    (r"tgp_v\d_", _URL, 40),
    (r"sk_", "[0-9a-f]", 48),
    (r"xai-", _WORD, 60),
    (r"nvapi-", _URL, 50),
    (r"csk-", _WORD, 40),
    (r"lsv2_(?:pt|sk)_", r"\w", 30),
    (r"pcsk_", r"\w", 40),
    (r"jina_", r"\w", 40),
    (r"tvly-", _URL, 24),
    # chat, mail and telephony
    (r"xox[abeoprscd](?:\.xox[abp])?-", _URL, 14),
    (r"xapp-\d-", _URL, 20),
    (r"SG\.[\w-]{14,40}\.", _URL, 20),
    (r"SK", "[0-9a-f]", 32),
    (r"xkeysib-|xsmtpsib-", "[a-zA-Z0-9-]", 50),
    # payment and shops
    (r"(?:sk|rk|pk|rzp)_(?:live|test|prod)_", _WORD, 10),
    (r"whsec_", _B64, 24),
    (r"shp(?:at|ca|pa|ss|tka|ua)_", _WORD, 28),
    (r"sq0(?:atp|csp|idp)-", _URL, 20),
    (r"EAAA", _B64, 50),
    (r"EZ[AT]K", _WORD, 50),
    (r"FLW(?:SECK|PUBK)(?:_TEST)?-", "[A-Za-z0-9-]", 12),
    (r"duffel_(?:live|test)_", r"[\w=-]", 40),
    (r"shippo_(?:live|test)_", _HEX, 36),
    (r"access_token\$(?:production|sandbox)\$", r"[\w$]", 30),
    # everything else
    (r"pat-(?:na|eu)\d-", "[0-9a-f-]", 36),
    (r"NR(?:AK|II|JS|AL|RA)-", _URL, 19),
    (r"dt0[a-z]\d{2}\.[A-Z0-9]{20,28}\.", "[A-Z0-9]", 50),
    (r"lin_(?:api|oauth)_", _WORD, 32),
    (r"PMAK-[0-9a-f]{20,28}-", "[0-9a-f]", 30),
    (r"ntn_", _WORD, 40),
    (r"secret_", _WORD, 40),
    (r"tfp_", r"[\w.=-]", 50),
    (r"gl(?:sa|c)_", r"[\w+/=]", 32),
    (r"eyJrIjoi", _B64, 60),
    (r"fig[dou]_", _URL, 36),
    (r"fio-u-", _URL, 60),
    (r"CFPAT-", _URL, 40),
    (r"ph[cx]_", _WORD, 40),
    (r"rdme_", _WORD, 60),
    (r"pat[A-Za-z0-9]{14}\.", "[0-9a-f]", 60),
)

# Prefixes too common to tell whose they are: in a text what follows them is a key, in an id it may be the id.
COMMON_PREFIXES: tuple[tuple[str, str, int], ...] = (
    (r"cmVmd", _WORD, 50),
    (r"AKCp\d", _WORD, 60),
    (r"API-", "[A-Z0-9]", 25),
    (r"1//0[a-z0-9]?", _URL, 30),
    (r"v1\.0-", "[0-9a-f-]", 60),
    (r"fo1_|fm1[ar]_|fm2_", _B64, 30),
    (r"rnd_", _WORD, 24),
    (r"vc[pkiar]_", _WORD, 24),
    (r"sha256~", _URL, 40),
    (r"tk-us-", _URL, 40),
    (r"4b1d", _WORD, 38),
    (r"s-s4t2(?:ud|af)-", _HEX, 60),
    (r"sess-", _WORD, 38),
    (r"r8_", _WORD, 35),
    (r"pa-", _URL, 40),
    (r"fc-", _HEX, 32),
    (r"AC", "[0-9a-f]", 32),
    (r"A(?:GPA|IDA|ROA)", "[A-Z0-9]", 16),
    (r"aio_", _WORD, 26),
    (r"(?:pub)?key-", "[0-9a-f]", 32),
    (r"EAA[CM]", _WORD, 90),
    (r"live_", r"[\w=-]", 35),
    (r"(?:sdk|mob|api)-(?=" + _UUID + ")", "[0-9a-f-]", 36),
    (r"access-(?:sandbox|development|production)-", "[0-9a-f-]", 36),
    (r"p8e-", _WORD, 32),
    (r"ico-", _WORD, 32),
    (r"endr\+", _WORD, 16),
    (r"sm_(?:pat|sat|aat)_", _WORD, 16),
    (r"(?:pat|sat)\.[\w-]{20,24}\.[0-9a-f]{24}\.", _WORD, 18),
    (r"sl\.", _URL, 100),
    (r"[sp]k\.(?:eyJ)?", r"[\w.-]", 40),
    (r"ZXlK|ZXlB|ZXdv", _B64, 60),
    (r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.", r"[\w.+/=-]", 40),
    (r"t1\.[\w-]{2,400}=*\.", _B64, 80),
    (r"access_key_|secret_key_|api_key_|apikey_|token_", _WORD, 24),
    # the custom of `<vendor>_live_<body>`, started by Stripe
    (r"[a-z]{2,12}_(?:live|test|prod|sandbox)_", _WORD, 20),
)

# Of a fixed length, or with words in the middle that nothing else has: found behind a letter, too, as in `pAKIA...`.
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
    r"(?<!\d)\d{8,10}:A[A-H][\w-]{33}(?![\w-])",  # Telegram bot, behind `/bot` in an address
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
    r"[\w-]{1,60}\.webhook\.office\.com/webhookb2/[\w@/-]{60,}+",
    r"(?:https?://)?hooks\.zapier\.com/hooks/catch/[\w/]{8,}+",
    r"A{20,22}[A-Za-z0-9%]{80,}+",  # Twitter bearer
    r"(?<=_gitlab_session=)[0-9a-f]{32}",
    r"(?<=CONTRIBSYS__COM=)[0-9a-f]{8}:[0-9a-f]{8}",  # Sidekiq
    r"softlayer\.com/soap/v3(?:\.1)?/[a-z0-9]{64}",
)
