#!/bin/sh
# Prints the notes of a version from CHANGELOG.md, and refuses a version that is not ready to be
# released.
#
#   sh .ci/release-notes.sh VERSION [CHANGELOG]
#
# Out: the section of the version without its heading. Exit code 1, with a sentence: the version is
# not that of Cargo.toml and of the chart, or its section is missing, empty, undated, dated with a day that does not
# exist or is yet to come, or dated before an older version.
set -eu
cd "$(dirname "$0")/.."
version=${1:?VERSION is missing, such as 0.1.0}
changelog=${2:-CHANGELOG.md}

packed=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$version" = "$packed" ] || { echo "the version $version is not that of Cargo.toml, $packed" >&2; exit 1; }
for key in version appVersion; do
    grep -qx "$key: $version" charts/moorline/Chart.yaml || { echo "the $key of the chart is not $version" >&2; exit 1; }
done

LC_ALL=C awk -v version="$version" -v today="$(date -u +%F)" '
function refuse(sentence) { print sentence >"/dev/stderr"; refused = 1; exit 1 }
function exists(date, part, leap) {
    if (date !~ /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/) return 0
    split(date, part, "-")
    leap = part[1] % 4 == 0 && (part[1] % 100 != 0 || part[1] % 400 == 0)
    split("31 " (leap ? 29 : 28) " 31 30 31 30 31 31 30 31 30 31", days, " ")
    return part[2] >= 1 && part[2] <= 12 && part[3] >= 1 && part[3] <= days[part[2] + 0]
}
/^## / {
    if (found && !older) {
        older = $4
        if (exists(older) && older > date) refuse(version ", of " date ", is dated before " $2 ", of " older)
    }
    inside = $2 == "[" version "]"
    if (!inside) next
    if (found) refuse(version " has two sections")
    found = 1
    date = $4
    if ($3 != "-" || !exists(date)) refuse("the section of " version " has no date such as 2026-01-31: " $0)
    if (date > today) refuse("the section of " version " is dated " date ", and today is " today)
    next
}
inside && (lines || NF) { text = text $0 "\n"; if (NF) { last = length(text); lines++; if (!/^#/) entries++ } }
END {
    if (refused) exit 1
    if (!found) refuse("the changelog has no section ## [" version "] - YYYY-MM-DD")
    if (!entries) refuse("the section of " version " is empty")
    printf "%s", substr(text, 1, last)
}' "$changelog"
