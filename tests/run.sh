#!/bin/sh
# Runs every test program of the workspace as `cargo test` does, but JOBS of them at a time: those with a control plane wait for
# most of their time. What a program prints comes in one piece, when it has ended. Programs that compare times run last, while no
# other does, and then the simulation, built as OPTIMISED says, tells STORIES stories, the same ones in each run. Ends with the
# names of those that failed.
# The programs that SANDBOX_TESTS names run a second time, with the sandbox in the place of the real control plane.
set -eu
cd "$(dirname "$0")/.."

# Compare times, hold them to bars in milliseconds, or count requests that a busy machine multiplies.
ALONE='git_shares hundred_syncs dependencies hooks stops deadline moves_across'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
built=$work/built
programs() { sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$built"; }
# Before the others: of the two daemons that are built, theirs is to lie where they look for it.
env ${OPTIMISED:-} ${CARGO:-cargo} test --locked --test simulation --no-run 2>"$built" || { cat "$built" >&2; exit 1; }
simulation=$(programs)
${CARGO:-cargo} test --workspace --locked --no-run 2>"$built" || { cat "$built" >&2; exit 1; }
grep -v Executable "$built" >&2 || true

# Runs one program, and keeps its name if it fails.
cat >"$work/one" <<'ONE'
work=$1 program=${2#on-the-sandbox:} plane=
[ "$program" = "$2" ] || plane=sandbox
out=$work/${program##*/}$plane
begun=$(date +%s)
set -- "$program"
[ "$program" != "$SIMULATION" ] ||
    set -- env MOORLINE_SIMULATION_FIXED="${STORIES:-66}" "$program" --nocapture
MOORLINE_TEST_PLANE=$plane "$@" >"$out" 2>&1 </dev/null || echo "$program${plane:+ on the $plane}" >>"$work/failed"
until mkdir "$work/turn" 2>/dev/null; do sleep 0.1; done
echo "     Running $program${plane:+ on the $plane} ($(($(date +%s) - begun)) s)"
cat "$out"
rmdir "$work/turn"
ONE
export SIMULATION="$simulation"
named() { programs | grep -E "/($(echo "$1" | tr ' ' '|'))-[0-9a-f]+\$"; }
alone() { named "$ALONE"; }
{
    programs | grep -v /simulation- | grep -vxF "$(alone)"
    [ -z "${SANDBOX_TESTS:-}" ] || named "$SANDBOX_TESTS" | sed 's/^/on-the-sandbox:/'
} | xargs -P "${JOBS:-4}" -n 1 sh "$work/one" "$work"
alone | xargs -n 1 sh "$work/one" "$work"
# A story that gets no processor for two minutes is broken off.
sh "$work/one" "$work" "$simulation"
${CARGO:-cargo} test --workspace --locked --doc || echo "the examples in the documentation" >>"$work/failed"

[ ! -s "$work/failed" ] || { echo "failed:"; sed 's/^/    /' "$work/failed"; exit 1; }
