"""Words next to, inside or instead of a capitalised name that show its type.

Names that no structure shows are few: tools and technologies, which are often written small ("postgres", "pytest") or
are ordinary words ("Go", "Slack"). The latter count only with a capital.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from service.language.common_words import word_set

_ANY_CASE: Mapping[str, str] = {
    "technology": """
    Python, TypeScript, JavaScript, Kotlin, Scala, Haskell, Golang, PHP, C++, C#, SQL, GraphQL, gRPC, HTML, CSS, YAML,
    Node.js, React Native, Next.js, Vue.js, Svelte, Django, FastAPI, Pydantic, SQLAlchemy, Alembic, NumPy, pandas,
    PyTorch, TensorFlow, LangChain, LlamaIndex, Laravel, Spring Boot, Tailwind, Webpack, Postgres, PostgreSQL, pgvector,
    MySQL, MariaDB, SQLite, MongoDB, DynamoDB, Neo4j, Qdrant, Pinecone, Weaviate, Milvus, Elasticsearch, ClickHouse,
    BigQuery, Redis, Kafka, RabbitMQ, Airflow, Kubernetes, k8s, Linux, Ubuntu, macOS, iOS, OAuth, JWT, WebSocket,
    OpenTelemetry, asyncpg, uvicorn, Nginx, PgBouncer, Supabase, Firebase, .NET
    """,
    "tool": """
    Docker, Terraform, Ansible, Jenkins, GitHub, GitHub Actions, GitLab, Grafana, Datadog, Jira, Trello, Figma,
    Confluence, Google Docs, Google Calendar, VS Code, PyCharm, IntelliJ, Neovim, Vim, Emacs, Postman, pytest, mypy,
    eslint, npm, pnpm, pip, kubectl, Gmail, Dropbox, WhatsApp, Duolingo, Playwright, Jupyter, Vercel, Netlify, Heroku,
    Cloudflare, Git, ChatGPT
    """,
}
_CAPITAL_ONLY: Mapping[str, str] = {
    "technology": "Go, Swift, Ruby, Java, React, Vue, Angular, Flask, Spring, Spark, Rust, Claude, Gemini, Celery",
    "tool": "Slack, Notion, Linear, Zoom, Discord, Teams, Chrome, Safari, Cursor, Stripe, Excel, Outlook, Obsidian",
}


def _names(groups: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {
        name.casefold(): (name, kind)
        for kind, block in groups.items()
        for name in (" ".join(each.split()) for each in block.split(","))
    }


NAMES = _names(_ANY_CASE)
"""Lower-case name to its usual spelling and type."""

CAPITAL_NAMES = _names(_CAPITAL_ONLY)
"""Lower-case name to its usual spelling and type, for names that are ordinary words without their capital."""

# Capitalised by spelling rule, not because they name a thing; and roles that a transcript starts its lines with.
PLAIN_CAPITALS = word_set("""
    english american british french german italian spanish portuguese dutch swedish norwegian danish polish russian
    ukrainian greek turkish arabic israeli african asian european indian chinese japanese korean thai australian
    canadian mexican brazilian irish scottish swiss latin catholic christian muslim jewish buddhist hindu islamic
    republican democrat western eastern northern southern mandarin user users assistant system client customer human ai
    agent bot admin note todo fixme warning info error debug mr mrs ms dr fyi asap pm utc api apis url urls pr prs ci cd
    pdf csv json xml http https ssl tls ip dns cpu gpu ram ui ux db orm sdk cli os qa hr ceo cto cfo vp tv diy faq gps
    q1 q2 q3 q4 kpi okr mvp sla readme llm ml eta wip mom dad grandma grandpa mum
""")

TITLES = word_set("""
    mr mrs ms miss dr prof professor sir madam captain colonel general president senator governor mayor chancellor
    minister king queen prince princess pope judge coach chef uncle aunt auntie grandma grandpa cousin father sister
    brother saint ceo cto cfo
""")


def _kinds_by_word(words: Mapping[str, str]) -> dict[str, str]:
    return {word: kind for kind, block in words.items() for word in block.split()}


# A run that ends (or begins) with one of these is of that type.
LAST_WORDS = _kinds_by_word(
    {
        "organization": """inc corp corporation llc ltd limited gmbh ag plc co company university college institute
        hospital clinic foundation school academy association agency ministry council committee commission union
        nations labs technologies systems solutions studios software ventures capital partners group bank insurance
        court police museum library theatre theater church bakery cafe café restaurant united""",
        "location": """street avenue road lane boulevard river lake mountain mountains park beach island islands city
        county province district airport station bay valley bridge square canyon forest desert ocean sea village hotel
        castle tower stadium""",
        "event": "conference conf summit festival cup olympics championship marathon awards war hackathon prix meetup",
    }
)
FIRST_WORDS = _kinds_by_word(
    {
        "project": "project operation",
        "location": "lake mount mt san santa fort port cape hotel new north south",
    }
)

# Words directly before or after a name, lower-cased, and the type they give it.
NOUNS = _kinds_by_word(
    {
        "project": "project projects repo repository codebase initiative milestone codename service microservice",
        "technology": "library framework database language protocol package api sdk model cluster orm runtime queue",
        "organization": "company startup firm agency employer university school bank vendor supplier band team",
        "event": "conference festival tournament hackathon summit meetup marathon",
    }
)
NAMING = frozenset({"named", "called", "nicknamed", "codenamed"})

PERSON_AFTER = word_set("""
    said says say told tells asked asks thinks thought wants wanted likes liked loves loved prefers preferred hates
    works worked lives lived moved joined mentioned suggested reported called went goes got bought plays played agreed
    decided invited enjoys enjoyed wrote writes speaks sent gave helped met married studies studied teaches drives
    cooks feels felt knows knew handles reviewed reviews needs needed recommended offered owns
""")
WORK_BEFORE = re.compile(
    r"\b(?:(?:works?|worked|working|employed|intern(?:ed|s|ing)?|job|role|position|engineer|manager|developer|designer"
    r"|analyst|nurse|teacher|contract\w*|consult\w*|interview\w*|offer|study|studies|studied|degree) "
    r"(?:\w+ )?(?:at|for|by|with|from)|joined|joins|joining|acquired(?: by)?|hired by|(?:employees?|ceo|cto|founder"
    r"|customers?|spokes\w+) (?:of|for)|invest(?:ed|or|ors) in) (?:the )?$",
    re.IGNORECASE,
)
PLACE_BEFORE = re.compile(
    r"\b(?:(?:in|near|around|outside|toward|towards|across|visit(?:ed|ing|s)?|leaving|explor(?:e|ed|ing))"
    r"|(?:move[ds]?|moving|fl(?:ew|y|ying|ies)|drove|driv(?:e|ing|es)|travel(?:l?ed|l?ing|s)?|trips?|went"
    r"|go(?:es|ing)?|back|relocat(?:ed|ing|e)|train|bus|ferry|flight|tickets?|way|road) (?:\w+ )?(?:to|from|for)"
    r"|from \w+ to|(?:is|are|was|were|am|comes?|came|originally|grew up) from"
    r"|capital of|(?:north|south|east|west) of) (?:the )?$",
    re.IGNORECASE,
)
AUXILIARIES = word_set("""
    is was are were has had have will would can could should may might must does did isn't wasn't doesn't didn't
    won't
""")
CONNECTORS = frozenset({"of", "de", "van", "von", "der", "del", "di", "da", "la", "le", "du", "al", "bin", "&"})
