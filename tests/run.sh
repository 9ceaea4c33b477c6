#!/bin/sh
# Runs every test program of the workspace as `cargo test` does, but JOBS of them at a time: those with a control plane wait for
# most of their time. What one prints comes in one piece, when it has ended. Ends with the names of those that failed.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
built=$work/built
${CARGO:-cargo} test --workspace --locked --no-run 2>"$built" || { cat "$built" >&2; exit 1; }
grep -v Executable "$built" >&2 || true

# Runs one program, and keeps its name if it fails.
cat >"$work/one" <<'ONE'
work=$1 program=$2
out=$work/${program##*/}
begun=$(date +%s)
"$program" >"$out" 2>&1 </dev/null || echo "$program" >>"$work/failed"
until mkdir "$work/turn" 2>/dev/null; do sleep 0.1; done
echo "     Running $program ($(($(date +%s) - begun)) s)"
cat "$out"
rmdir "$work/turn"
ONE
sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$built" | xargs -P "${JOBS:-3}" -n 1 sh "$work/one" "$work"
${CARGO:-cargo} test --workspace --locked --doc || echo "the examples in the documentation" >>"$work/failed"

[ ! -s "$work/failed" ] || { echo "failed:"; sed 's/^/    /' "$work/failed"; exit 1; }
