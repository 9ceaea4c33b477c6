#!/bin/sh
# Runs the core tests on control planes of other minor versions of Kubernetes: those of its arguments, or all that the
# project supports. Ends with a line for each version, and with exit code 1 if the tests failed on one.
set -eu
cd "$(dirname "$0")/../.."

own=$(sed -n 's/^\tk8s.io\/kubernetes v\(1\.[0-9]*\)\..*/\1/p' tests/control-plane/go.mod)
all=$({ echo "$own"; for file in tests/control-plane/minors/*.mod; do basename "$file" .mod; done; } | sort -V)
summary=
failed=0
for minor in ${*:-$all}; do
    if [ "$minor" = "$own" ]; then
        assets=target/control-plane
        sh tests/control-plane/build.sh
    else
        assets=target/control-plane-$minor
        sh tests/control-plane/build.sh "$minor"
    fi
    begun=$(date +%s)
    result=passed
    # Skipped tests are failures here as they are in `make test`.
    CI=true KUBEBUILDER_ASSETS=$PWD/$assets ${CARGO:-cargo} test --locked --no-fail-fast \
        --test cluster_apply --test cluster_prune --test cluster_rollout || { result=failed; failed=1; }
    summary="$summary
Kubernetes $minor: $result ($(($(date +%s) - begun)) s)"
done
echo "$summary"
exit "$failed"
