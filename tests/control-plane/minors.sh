#!/bin/sh
# Runs the core tests on control planes of other minor versions of Kubernetes: those of its arguments, or all that the
# project supports. Ends with a line for each version, and with exit code 1 if the tests failed on one.
set -eu
cd "$(dirname "$0")/../.."

own=$(sed -n 's/^\tk8s.io\/kubernetes v\(1\.[0-9]*\)\..*/\1/p' tests/control-plane/go.mod)
all=$({ echo "$own"; for file in tests/control-plane/minors/*.mod; do basename "$file" .mod; done; } | sort -V)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${CARGO:-cargo} test --locked --no-run --test cluster_apply --test cluster_prune --test cluster_rollout 2>"$work/built" ||
    { cat "$work/built" >&2; exit 1; }

# Each program starts a control plane of its own, and waits for most of its time.
cat >"$work/one" <<'ONE'
work=$1 program=$2
begun=$(date +%s)
"$program" >"$work/out" 2>&1 </dev/null || echo "$program" >>"$work/failed"
echo "     Running $program ($(($(date +%s) - begun)) s)"
grep -E '^(test .*FAILED|test result:|failures:|skipped )' "$work/out" || true
[ ! -e "$work/failed" ] || cat "$work/out"
ONE
summary=
status=0
for minor in ${*:-$all}; do
    if [ "$minor" = "$own" ]; then
        assets=target/control-plane
        sh tests/control-plane/build.sh
    else
        assets=target/control-plane-$minor
        sh tests/control-plane/build.sh "$minor"
    fi
    begun=$(date +%s)
    rm -rf "$work"/program-*
    sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$work/built" | while read -r program; do
        place=$work/program-${program##*/}
        mkdir "$place"
        printf '%s\n%s\n' "$place" "$PWD/$program"
        # Skipped tests are failures here as they are in `make test`.
    done | CI=true KUBEBUILDER_ASSETS=$PWD/$assets xargs -P "${JOBS:-3}" -n 2 sh "$work/one"
    result=passed
    if ls "$work"/program-*/failed >/dev/null 2>&1; then
        result=failed
        status=1
    fi
    summary="$summary
Kubernetes $minor: $result ($(($(date +%s) - begun)) s)"
done
echo "$summary"
exit "$status"
