#!/bin/sh
# Installs the programs that tests start and that are missing: a PostgreSQL server, a browser.
# Says nothing and does nothing when they are there.
set -eu

has_postgres() {
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

has_browser() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
        command -v google-chrome >/dev/null 2>&1
}

missing=""
has_postgres || missing="$missing postgresql"
has_browser || missing="$missing chromium"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "tests that need these programs are skipped; install them to run all:$missing" >&2
    exit 0
fi

echo "installing for the tests:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086  # one word a package
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "could not install:$missing" >&2
    exit 1
fi
