#!/bin/sh
# Records what Kustomize 5.8.1 makes of every case below this folder, and says which answers changed.
#
# MOORLINE_RECORD_KUSTOMIZE names the program; without it, Go builds it below target/.
set -eu

cd "$(dirname "$0")/../.."
version=5.8.1
if [ -z "${MOORLINE_RECORD_KUSTOMIZE:-}" ]; then
    bin="$PWD/target/kustomize-$version"
    [ -x "$bin/kustomize" ] || GOBIN="$bin" go install "sigs.k8s.io/kustomize/kustomize/v5@v$version"
    MOORLINE_RECORD_KUSTOMIZE="$bin/kustomize"
fi
"$MOORLINE_RECORD_KUSTOMIZE" version | grep -qxF "v$version" || {
    echo "$MOORLINE_RECORD_KUSTOMIZE is not kustomize $version" >&2
    exit 1
}
export MOORLINE_RECORD_KUSTOMIZE
cargo test --locked --test kustomize_conformance -- --exact --nocapture the_answers_are_recorded
# Those with charts, by the helm of `make tools`.
exec cargo test --locked --test cluster_source -- --exact --nocapture helm::inflated::the_answers_are_recorded
