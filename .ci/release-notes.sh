#!/bin/sh
# Prints what CHANGELOG.md says of a version: `release-notes.sh 1.2.3`. Refuses a version that is not the one of Cargo.toml and of
# the chart, that has no section with a date, or whose section is empty.
set -eu
cd "$(dirname "$0")/.."

refuse() {
    echo "CHANGELOG.md: $1" >&2
    exit 1
}

version=${1:?a version such as 1.2.3}
grep -qx "version = \"$version\"" Cargo.toml || refuse "$version is not the version of Cargo.toml"
for key in version appVersion; do
    grep -qx "$key: $version" charts/moorline/Chart.yaml || refuse "$version is not the $key of the chart"
done
heading=$(grep -F "## [$version]" CHANGELOG.md) || refuse "there is no section [$version]"
echo "$heading" | grep -Eq '^## \[[^]]+\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$' ||
    refuse "the section [$version] has no date such as 2026-01-31"
notes=$(awk -v begin="## [$version]" '/^## \[/ { inside = index($0, begin) == 1; next } inside' CHANGELOG.md)
[ -n "$(echo "$notes" | tr -d '[:space:]')" ] || refuse "the section [$version] is empty"
echo "$notes"
