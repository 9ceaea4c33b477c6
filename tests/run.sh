#!/bin/sh
# Runs every test program of the workspace as `cargo test` does, but JOBS of them at a time: those with a control plane wait for
# most of their time. What a program prints comes in one piece, when it has ended. Programs that compare times run last, while no
# other does, and then the simulation tells STORIES stories, the same ones in each run. Ends with the reasons and the names of
# those that failed, and with the number of tests that were left out, which is a failure, too.
# The modules that SANDBOX_TESTS names as ROOM/MODULE run a second time, with the sandbox in the place of the real control plane.
set -eu
cd "$(dirname "$0")/.."

# Compares times, holds them to bars in milliseconds, or counts requests that a busy machine multiplies.
ALONE=alone
# The longest: they begin first, so that none of them is the only one that still runs.
FIRST='cluster_survive cluster_prune cluster_apply cluster_rollout cluster_source page cluster_systems cluster_ops'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
built=$work/built
programs() { sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$built"; }
${CARGO:-cargo} test --workspace --locked --no-run 2>"$built" || { cat "$built" >&2; exit 1; }
grep -v Executable "$built" >&2 || true
named() { programs | grep -E "/($(echo "$1" | tr ' ' '|'))-[0-9a-f]+\$"; }
simulation=$(named simulation)

# A panic names its line. A backtrace would hide the log of the daemon.
export RUST_BACKTRACE=0

# Runs one program, and keeps its name if it fails.
cat >"$work/one" <<'ONE'
work=$1 program=${2#on-the-sandbox:} plane=
[ "$program" = "$2" ] || plane=sandbox
out=$work/${program##*/}$plane
begun=$(date +%s)
set -- "$program"
[ "$program" != "$SIMULATION" ] ||
    set -- env MOORLINE_SIMULATION_FIXED="${STORIES:-66}" "$program" --nocapture
if [ -n "$plane" ]; then
    room=${program##*/}
    for module in $SANDBOX_TESTS; do
        [ "${module%/*}" != "${room%-*}" ] || set -- "$@" "${module#*/}::"
    done
fi
MOORLINE_TEST_PLANE=$plane "$@" >"$out" 2>&1 </dev/null || echo "$program${plane:+ on the $plane}" >>"$work/failed"
until mkdir "$work/turn" 2>/dev/null; do sleep 0.1; done
echo "     Running $program${plane:+ on the $plane} ($(($(date +%s) - begun)) s)"
cat "$out"
rmdir "$work/turn"
ONE
export SIMULATION="$simulation" SANDBOX_TESTS="${SANDBOX_TESTS:-}"
alone() { named "$ALONE"; }
first() { for room in $FIRST; do named "$room"; done; }
rooms=$(for module in $SANDBOX_TESTS; do echo "${module%/*}"; done | sort -u | tr '\n' ' ' | sed 's/ $//')
{
    first
    [ -z "$rooms" ] || named "$rooms" | grep -vxF "$(alone)" | sed 's/^/on-the-sandbox:/'
    programs | grep -v /simulation- | grep -vxF "$(alone; first)"
} | xargs -P "${JOBS:-6}" -n 1 sh "$work/one" "$work"
alone | xargs -n 1 sh "$work/one" "$work"
! echo " $rooms " | grep -q " $ALONE " || alone | sed 's/^/on-the-sandbox:/' | xargs -n 1 sh "$work/one" "$work"
# A story that gets no processor for two minutes is broken off.
sh "$work/one" "$work" "$simulation"
${CARGO:-cargo} test --workspace --locked --doc || echo "the examples in the documentation" >>"$work/failed"

# On the sandbox a test may be left out: it has run on the real control plane.
left_out=$(find "$work" -type f ! -name '*sandbox' ! -name failed ! -name one ! -name built -exec cat {} + |
    grep -cE '(^|\.\.\. )skipped [A-Za-z0-9_:]+: ' || true)
[ "$left_out" -eq 0 ] || echo "left out: $left_out tests; the lines that begin with \"skipped\" say why" | tee -a "$work/failed"

[ -s "$work/failed" ] || exit 0

# The panic of each failed test, and the last lines of its daemon's log. Lines of the API server are left out.
cat >"$work/reason" <<'AWK'
function show(at) {
    if (!name) return
    print "---- " name
    for (at = 0; at < panic; at++) print first[at]
    for (at = lines > KEPT ? lines - KEPT : 0; at < lines; at++) print last[at % KEPT]
    name = ""
}
BEGIN { KEPT = 12 }
/^---- .* stdout ----$/ { show(); name = $2; panic = lines = 0; next }
/^failures:$/ { show() }
!name || /^$/ || /^[IWE][0-9][0-9][0-9][0-9] / { next }
/ panicked at / { panic = 0 }
panic < 4 && (panic || / panicked at /) { first[panic++] = $0; next }
{ last[lines++ % KEPT] = $0 }
AWK
find "$work" -type f -exec grep -lE '^test result: FAILED' {} + | xargs -n 1 awk -f "$work/reason"
echo "failed:"
sed 's/^/    /' "$work/failed"
exit 1
