"""Well-known names that need no rule to be recognised.

Hand-written and small on purpose: names that turn up in notes of people and teams. `NAMES` maps a lower-case name to
its type and usual spelling. Names that are ordinary words as well ("Go", "Slack", "Nice") count only when capitalised;
the others ("postgres", "jenkins") in any case.
"""

from __future__ import annotations

from typing import NamedTuple

from service.language import wordlists


class KnownName(NamedTuple):
    """A listed name: its usual spelling, its type, and whether it must be capitalised to count."""

    name: str
    type: str
    capital_only: bool


_ANY_CASE: dict[str, str] = {
    "technology": """
    Python, TypeScript, JavaScript, Kotlin, Scala, Haskell, Clojure, Erlang, OCaml, Fortran, COBOL, Golang, PHP, C++,
    C#, F#, SQL, GraphQL, gRPC, HTML, CSS, YAML, TOML, Protobuf, Node.js, NodeJS, Deno, React.js, React Native,
    Next.js, Nuxt, Vue.js, Svelte, SvelteKit, AngularJS, jQuery, Django, FastAPI, Pydantic, SQLAlchemy, Alembic,
    NumPy, pandas, PyTorch, TensorFlow, Keras, scikit-learn, spaCy, LangChain, LlamaIndex, Ruby on Rails, Laravel,
    Symfony, Spring Boot, Hibernate, Tailwind, Tailwind CSS, Webpack, Postgres, PostgreSQL, pgvector, MySQL, MariaDB,
    SQLite, MongoDB, DynamoDB, CockroachDB, Neo4j, FalkorDB, Qdrant, Pinecone, Weaviate, Milvus, Elasticsearch,
    OpenSearch, ClickHouse, BigQuery, Redis, Memcached, Kafka, Apache Kafka, RabbitMQ, Apache Spark, Airflow,
    Kubernetes, k8s, Linux, Ubuntu, Debian, Fedora, macOS, iOS, OAuth, OAuth2, JWT, WebSocket, WebSockets,
    WebAssembly, OpenAPI, ONNX, OpenTelemetry, HNSW, BM25, NextAuth, NextAuth.js, Bluetooth, Wi-Fi, Arduino, Raspberry
    Pi, blockchain, PyPI, asyncio, asyncpg, uvicorn, Gunicorn, Nginx, HAProxy, Istio, PgBouncer, Supabase, Firebase,
    .NET, ASP.NET
    """,
    "tool": """
    Docker, Docker Compose, Terraform, Ansible, Pulumi, Jenkins, GitHub, GitHub Actions, GitLab, GitLab CI, Bitbucket,
    CircleCI, ArgoCD, Argo CD, Grafana, Datadog, Splunk, Kibana, PagerDuty, Jira, Trello, Asana, Figma, Airtable,
    Confluence, Google Docs, Google Drive, Google Calendar, Google Sheets, Google Meet, Microsoft Teams, VS Code,
    VSCode, Visual Studio Code, PyCharm, IntelliJ, IntelliJ IDEA, Xcode, Neovim, Vim, Emacs, Postman, pytest, mypy,
    eslint, npm, pnpm, pip, kubectl, tmux, Photoshop, PowerPoint, Gmail, Dropbox, WhatsApp, Evernote, Zapier,
    Mailchimp, HubSpot, QuickBooks, Duolingo, Zotero, Playwright, Jupyter, Power BI, dbt, Vercel, Netlify, Heroku,
    Cloudflare, Git, Release Please, Dependabot, SonarQube, LaTeX, ChatGPT, GitHub Copilot
    """,
    "location": """
    Afghanistan, Albania, Algeria, Argentina, Armenia, Australia, Austria, Azerbaijan, Bangladesh, Belarus, Belgium,
    Bolivia, Bosnia, Brazil, Bulgaria, Cambodia, Cameroon, Canada, Chile, Colombia, Croatia, Cuba, Cyprus, Czech
    Republic, Czechia, Denmark, Ecuador, Egypt, England, Estonia, Ethiopia, Finland, France, Germany, Ghana, Greece,
    Guatemala, Haiti, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, Jamaica,
    Japan, Kazakhstan, Kenya, Kosovo, Kuwait, Laos, Latvia, Lebanon, Libya, Lithuania, Luxembourg, Malaysia, Malta,
    Mexico, Moldova, Mongolia, Morocco, Mozambique, Myanmar, Namibia, Nepal, Netherlands, New Zealand, Nicaragua,
    Nigeria, North Korea, Norway, Pakistan, Palestine, Panama, Paraguay, Peru, Philippines, Poland, Portugal, Qatar,
    Romania, Russia, Rwanda, Saudi Arabia, Scotland, Senegal, Serbia, Singapore, Slovakia, Slovenia, Somalia, South
    Africa, South Korea, Spain, Sri Lanka, Sudan, Sweden, Switzerland, Syria, Taiwan, Tanzania, Thailand, Tunisia,
    Uganda, Ukraine, United Arab Emirates, United Kingdom, United States, Uruguay, Uzbekistan, Venezuela, Vietnam,
    Wales, Yemen, Zambia, Zimbabwe, Gaza, Crimea, Hong Kong, Tibet, Africa, Asia, Europe, North America, South
    America, Antarctica, Middle East, Bay Area, Silicon Valley, Scandinavia, Alabama, Alaska, Arizona, Arkansas,
    California, Colorado, Connecticut, Delaware, Florida, Hawaii, Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky,
    Louisiana, Maryland, Massachusetts, Michigan, Minnesota, Mississippi, Missouri, Montana, Nebraska, Nevada, New
    Hampshire, New Jersey, New Mexico, New York, New York City, North Carolina, North Dakota, Ohio, Oklahoma, Oregon,
    Pennsylvania, Rhode Island, South Carolina, South Dakota, Tennessee, Texas, Utah, Vermont, Virginia, Wisconsin,
    Wyoming, Bavaria, Catalonia, Tuscany, Sicily, Provence, Bali, Ontario, Quebec, British Columbia, Amsterdam,
    Athens, Atlanta, Auckland, Austin, Baghdad, Baltimore, Bangalore, Bangkok, Beijing, Beirut, Belgrade, Berlin,
    Bogotá, Bogota, Boston, Bratislava, Brisbane, Brooklyn, Manhattan, Brussels, Bucharest, Budapest, Buenos Aires,
    Cairo, Calgary, Cape Town, Chicago, Cincinnati, Copenhagen, Dallas, Damascus, Delhi, New Delhi, Denver, Detroit,
    Dhaka, Dubai, Dublin, Düsseldorf, Edinburgh, Frankfurt, Geneva, Glasgow, Gothenburg, Hamburg, Hanoi, Havana,
    Helsinki, Houston, Istanbul, Ankara, Izmir, Jakarta, Jerusalem, Johannesburg, Kabul, Karachi, Kathmandu, Kyiv,
    Kiev, Kyoto, Lagos, Lahore, Las Vegas, Leeds, Leipzig, Lisbon, Liverpool, Ljubljana, London, Los Angeles, Lyon,
    Madrid, Malaga, Manchester, Manila, Marseille, Melbourne, Mexico City, Miami, Milan, Montreal, Moscow, Mumbai,
    Munich, Nairobi, Naples, Nashville, New Orleans, Osaka, Oslo, Ottawa, Oxford, Paris, Perth, Philadelphia,
    Pittsburgh, Porto, Prague, Pyongyang, Rio de Janeiro, Rome, Rotterdam, San Diego, San Francisco, San Jose,
    Santiago, Sao Paulo, São Paulo, Sarajevo, Seattle, Seoul, Shanghai, Shenzhen, Sofia, St. Petersburg, Stockholm,
    Stuttgart, Sydney, Tallinn, Tehran, Tel Aviv, Tokyo, Toronto, Valencia, Vancouver, Venice, Vienna, Vilnius,
    Warsaw, Wellington, Zagreb, Zurich, Zürich, Heathrow, Golden Gate Bridge, Central Park, Times Square, Eiffel
    Tower, Grand Canyon, Yosemite, Yellowstone, Niagara Falls, Himalayas, Pacific Ocean, Atlantic Ocean, Mediterranean
    """,
}

# Ordinary words or short letter groups as well: only with a capital, and no common word at the start of a sentence.
_CAPITAL_ONLY: dict[str, str] = {
    "technology": """
    Go, Swift, Ruby, Rails, Java, Perl, Julia, React, Vue, Angular, Flask, Express, Spring, Spark, Next, Node, Elixir,
    Dart, Flutter, Zig, Lua, Bash, Azure, AWS, GCP, S3, EC2, Lambda, Redux, Rust, Ray, Flink, Solidity, Bun, Android,
    Windows, Bitcoin, Ethereum, Claude, Gemini, Llama, Whisper, Chroma, Lucene, Solr, Swagger, Jest, Bootstrap, Sass,
    Celery, Vite, Cassandra, Envoy
    """,
    "tool": """
    Slack, Notion, Linear, Zoom, Discord, Teams, Word, Sketch, Miro, Sentry, Vault, Consul, Chrome, Safari, Firefox,
    Signal, Telegram, Cursor, Calendly, Stripe, Twilio, Shopify, Todoist, Strava, Headspace, Black, Bazel, Prometheus,
    ruff, yarn, Poetry, Helm, Lightroom, Excel, Outlook, Obsidian, Cypress, Selenium, Tableau, Snowflake, Renovate,
    Copilot
    """,
    "product": """
    iPhone, iPad, MacBook, MacBook Pro, MacBook Air, Apple Watch, AirPods, PlayStation, PlayStation 5, Xbox, Nintendo
    Switch, GoPro, Fitbit, Chromebook, ThinkPad, Tesla Model 3, Toyota Prius, Subaru Outback, Ford Mustang, Roomba,
    Instagram, TikTok, YouTube, Netflix, Spotify, Minecraft, Fortnite, Catan, Game of Thrones, Harry Potter, Lord of
    the Rings, Star Wars, Star Trek, Stranger Things, Alexa, Siri, Pixel, Surface, Civic, Corolla, Prius, Monopoly,
    Scrabble, Twitter, Facebook, Reddit, Lego, Legos, Frozen, Titanic, Inception, Switch, Kindle
    """,
    "organization": """
    Google, Microsoft, IBM, Nvidia, Netflix Inc, OpenAI, Anthropic, DeepMind, Hugging Face, Mistral AI, Samsung,
    Toyota, Volkswagen, BMW, Airbnb, Spotify AB, Salesforce, Accenture, Deloitte, McKinsey, Siemens, Bosch, IKEA,
    Nestlé, Starbucks, McDonald's, Walmart, Costco, Pfizer, Moderna, NASA, ESA, UNESCO, UNICEF, NATO, FBI, CIA, BBC,
    CNN, Reuters, MIT, Stanford, Harvard, Yale, Princeton, Oxford University, UCLA, ETH Zurich, Red Cross, United
    Nations, European Union, World Bank, World Health Organization, White House, Goldman Sachs, JPMorgan, Deutsche
    Bank, Bank of America, PayPal, FedEx, UPS, DHL, Boeing, Airbus, SpaceX, Y Combinator, Linux Foundation, Mozilla,
    Red Hat, Hezbollah, Taliban, Hamas, Greenpeace, Amnesty International, LinkedIn, eBay, AT&T, Manchester United,
    Real Madrid, Barcelona FC, Apple, Amazon, Meta, Oracle, Intel, Tesla, Ford, Honda, Target, Visa, Nike, Adidas,
    Lyft, Shell, Congress, Parliament, Senate, Pentagon, Kremlin, Interpol, Arsenal, Chelsea, Lakers, Yankees, UN, EU,
    WHO, IMF, IRS, Uber
    """,
    "location": """
    Chad, Georgia, Jordan, Turkey, China, Guinea, Niger, Togo, Nice, Bath, Reading, Cork, Phoenix, Portland, Orlando,
    Charlotte, Lincoln, Jackson, Washington, Maine, Sheffield, Cambridge, Bristol, Essen, Bergen, Nancy, US, USA, UK,
    UAE, LA, NYC, SF, Mars, Florence, Granada, Split, Victoria, Queens, Bronx, Harlem, Mali, Oman, Barcelona, Cologne,
    Lima, Alps
    """,
    "event": """
    Christmas, Thanksgiving, Easter, Halloween, Hanukkah, Ramadan, Diwali, New Year's Eve, Valentine's Day, World Cup,
    Super Bowl, Olympics, Olympic Games, Black Friday, World War II, World War I, Brexit, Oktoberfest, Comic-Con,
    Burning Man, Coachella, Wimbledon, Tour de France
    """,
}

FIRST_NAMES = wordlists.words("""
    aaron abby abdul abigail adam adrian agnes ahmed aidan aisha akira alan albert alberto alejandro alex alexander
    alexandra alexis alfred ali alice alicia alina alison allison amanda amber amelia amina amir amy ana andrea
    andreas andrei andrew andy angela angelica anita anja ann anna anne annie anthony antonio anya april ariana
    arjun arthur asha ashley astrid audrey ava barbara barry beatrice ben benjamin bernard beth betty bianca bill
    billy bob bobby brad brandon brenda brian bridget bruce bruno bryan caleb calvin cameron camila carl carla
    carlos carmen carol caroline carolyn carter catherine cathy cecilia celia charles charlie charlotte chen chloe
    chris christian christina christine christopher cindy claire clara claudia clay cody colin connor courtney craig
    cynthia daisy damian dan dana daniel daniela danielle danny daria dave david dean deborah debra denise dennis
    derek diana diane diego dieter dmitri dmitry dominic donald donna dora doris dorothy doug douglas duncan dylan
    ed eddie edgar edith eduardo edward edwin eileen elaine elena eli elias elif elijah elizabeth ella ellen ellie
    elsa emil emilia emily emma enrique eric erica erik erin esther ethan eva evan eve evelyn fatima felix fernando
    fiona frances francesca francis francisco frank fred frederick gabriel gabriela gail gary gavin gemma george
    gerald gina giovanni giulia glen gloria gordon grace graham greg gregory greta guillermo gustavo hana hank hanna
    hannah hans harold harriet harry hassan heather hector heidi helen helena helga henry hiroshi holly howard hugo
    ian ibrahim ida ines ingrid irene irina iris isaac isabel isabella ivan ivy jack jackie jacob jacqueline jaime
    jake jakob james jamie jan jane janet janice jasmine jason javier jean jeff jeffrey jennifer jenny jeremy jerome
    jerry jess jesse jessica jill jim jimmy jin joan joanna joe joel johan johanna john johnny jon jonas jonathan
    jorge jose josé joseph josh joshua juan juanita judith judy julia julian julie jun justin kai karen karim karin
    karl kate katherine kathleen kathy katie katja kayla keith kelly ken kenji kenneth kevin khalid kim kimberly
    klaus kofi kristen kristin kurt kyle lara larry lars laura lauren laurie layla lea leah lee leila lena leo leon
    leonard leslie liam lily linda lisa liu liz logan lois lorenzo louis louise luca lucas lucia lucy luis luke luna
    lydia lynn madison mae malik manuel marc marco marcus margaret maria mariam mariana marie marina mario marion
    marissa marjorie mark marta martha martin martina marty mary mateo mathias matt matteo matthew maureen maurice
    max maya megan mehmet mei melanie melissa mia michael michelle miguel mike mila milan mindy miranda miriam
    mitchell mohamed mohammed molly monica monika morgan muhammad nadia nancy naomi natalia natalie natasha nathan
    neha neil nicholas nick nicolas nicole nigel nikhil niklas nina noah noel nora norman olga oliver olivia omar
    oscar otto owen pablo pam pamela paolo pat patricia patrick paul paula pauline pedro peggy penny pete peter
    petra phil philip philippa phoebe pierre piotr polly priya quentin rachel rafael rahul raj ralph ramon randy
    raul raymond rebecca regina rene ricardo richard rick rita rob robert roberta roberto robin rodrigo roger roland
    roman ron ronald rosa rosie ross roy rupert russell ruth ryan sabine sabrina sally salma sam samantha samir
    samuel sandra sanjay santiago sara sarah sasha scott sean sebastian selena serena sergei sergio seth shannon
    sharon shauna sheila shelly sherry shirley sidney simon sofia sonia sonja sophia sophie stacy stan stanley
    stefan stefanie stella stephanie stephen steve steven stuart sue sunil susan susanne suzanne sven svetlana
    sylvia tamara tanya tara tatiana ted teresa terry thea theo theodore theresa thomas tiffany tim timothy tina
    tobias todd tom tomas tommy toni tony tracy trevor tyler ulrich ursula valentina valerie vanessa vera veronica
    victor victoria vikram vincent vivian vladimir walter wanda wayne wendy wei wilhelm will william willow xavier
    yasmin yolanda yuki yusuf yves zach zachary zara zoe zoey barack austin brooklyn florence georgia jordan paris
    sydney virginia shinzo narendra keir emmanuel
""")

CALENDAR = wordlists.words("""
    january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur
    thurs fri sat sun mondays tuesdays wednesdays thursdays fridays saturdays sundays spring summer autumn fall
    winter
""")

# Capitalised by spelling rule, not because they name a thing; and roles that a transcript starts its lines with.
PLAIN_CAPITALS = wordlists.words("""
    english american british french german italian spanish portuguese dutch swedish norwegian danish finnish polish
    czech russian ukrainian greek turkish arabic arab hebrew israeli palestinian iranian iraqi syrian libyan
    egyptian african asian european indian pakistani chinese japanese korean vietnamese thai filipino indonesian
    australian canadian mexican brazilian argentine cuban irish scottish welsh swiss austrian belgian hungarian
    romanian bulgarian serbian croatian latin catholic christian muslim jewish buddhist hindu islamic republican
    democrat democratic western eastern northern southern mandarin cantonese hindi urdu bengali tamil swahili afghan
    nigerian kenyan user users assistant system client customer human ai agent bot admin note todo fixme warning
    info error debug mr mrs ms dr ok fyi asap am pm utc gmt est pst cet edt pdt api apis url urls uri pr prs ci cd
    id ids uuid pdf csv json xml http https ssl tls tcp udp ip dns cpu gpu ram ssd ui ux db orm crud rest sdk cli
    gui ide os qa hr ceo cto cfo coo vp tv dvd diy faq rsvp ptsd adhd dna bbq atm gps sim q1 q2 q3 q4 h1 h2 fy kpi
    kpis okr okrs roi b2b b2c mvp poc sla slo rfc readme http2 why how what who where when not and or but do never
    always must should no yes i a bc ad etc llm llms rag ml nlp ocr tdd gdpr pii eod eta wip lgtm ttl lru fifo acid
    oop mom dad grandma grandpa mum
""")


def _listed(groups: dict[str, str], *, capital_only: bool) -> dict[str, KnownName]:
    return {
        " ".join(name.split()).casefold(): KnownName(" ".join(name.split()), kind, capital_only)
        for kind, names in groups.items()
        for name in names.split(",")
        if name.strip()
    }


NAMES: dict[str, KnownName] = _listed(_CAPITAL_ONLY, capital_only=True) | _listed(_ANY_CASE, capital_only=False)
LONGEST_NAME_WORDS = max(len(name.split()) for name in NAMES)
