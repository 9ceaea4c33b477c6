#!/usr/bin/env bash
# Records a session of the real helm-controller: tests/helm/helm_controller.json. Its program is built from its published Go module, with
# the API of the same version in place of the one in its repository, and with chartutil 1.28.0, because the module proxy has no 1.27.0.
# The test plays source-controller: it serves the chart, and writes the status of its OCIRepository. Needs Go, helm and the control plane
# of the tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=${1:-v1.6.0}
module=github.com/fluxcd/helm-controller
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

mkdir "$work/source"
cd "$work/source"
go mod init record >/dev/null 2>&1
folder=$(go mod download -json "$module@$version" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
cp -r "$folder/." "$work/source"
chmod -R u+w "$work/source"
go mod edit -dropreplace "$module/api" -require "$module/api@$version" -require github.com/fluxcd/pkg/chartutil@v1.28.0
CGO_ENABLED=0 go build -mod=mod -trimpath -o "$work/helm-controller" .
cd - >/dev/null

MOORLINE_RECORD_HELM_CONTROLLER="$work/helm-controller" \
    cargo test --locked --test cluster_prune adopt::recorded_release::the_session_is_recorded
