#!/bin/sh
# bites.sh [SEEDS] [BUG...]: plants one bug after the other, and sees that the simulation finds each.
# For each: how many stories it took, and what was wrong. Ends with an error if one was not found.
set -u
cd "$(dirname "$0")/../.." || exit 2
seeds=${1:-1000}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- $(cd tests/simulation/bugs && ls *.patch | sed 's/\.patch$//')
missed=0
for bug in "$@"; do
    patch=tests/simulation/bugs/$bug.patch
    git apply "$patch" || exit 2
    trap 'git apply -R "$patch"; exit 1' INT TERM
    log=$(mktemp)
    if MOORLINE_SIMULATION_SEEDS=$seeds MOORLINE_SIMULATION_SHRINK=no \
        CARGO_PROFILE_DEV_OPT_LEVEL=2 CARGO_PROFILE_DEV_DEBUG=0 cargo test --locked --test simulation every_story_ends_well -- --nocapture \
        >"$log" 2>&1; then
        echo "$bug: NOT FOUND"
        missed=1
    elif found=$(grep -m1 -E '^seed [0-9]+, after' "$log"); then
        echo "$bug: $(echo "$found" | cut -c1-300)"
    else
        echo "$bug: no story was told:"
        tail -20 "$log"
        missed=1
    fi
    rm -f "$log"
    git apply -R "$patch" || exit 2
    trap - INT TERM
done
exit $missed
