#!/bin/sh
# Builds the control plane of the tests into target/control-plane/ of this repository, unless it is there
# already. Out: one program, its three names (etcd, kube-apiserver, kube-controller-manager) as links to it,
# and `digest`, which says of which sources it was built and is written last: without it nothing is finished.
# With an argument such as 1.35 it builds that minor version of Kubernetes, from minors/1.35.mod, into
# target/control-plane-1.35/, with the flags of its API server in minors/1.35.flags, if there are any.
set -eu

sources=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$sources/../.." && pwd)/target/control-plane
modules=go
if [ $# -gt 0 ]; then
    modules=minors/$1
    target=$target-$1
    [ -f "$sources/$modules.mod" ] || { echo "$0: there is no $modules.mod" >&2; exit 1; }
fi
names='etcd kube-apiserver kube-controller-manager'

# Relative names in a fixed order, so that two checkouts of the same sources have the same digest.
digest() (
    cd "$sources"
    LC_ALL=C
    export LC_ALL
    sha256sum "$modules.mod" "$modules.sum" ./*.go | sha256sum | cut -d ' ' -f 1
)

finished() {
    [ -f "$target/digest" ] && [ "$(cat "$target/digest")" = "$wanted" ] || return 1
    for name in $names; do
        [ -x "$target/$name" ] || return 1
    done
}

wanted=$(digest)
mkdir -p "$target"
if [ -f "$sources/$modules.flags" ]; then
    cp "$sources/$modules.flags" "$target/api-server-flags"
fi
if finished; then
    exit 0
fi

# A second build waits for the first and then finds it finished. Without flock both build, which only costs
# time: every file below gets its name by a rename.
if command -v flock >/dev/null 2>&1; then
    exec 9>"$target/lock"
    flock 9
    if finished; then
        exit 0
    fi
fi

building=$(mktemp -d "$target/building.XXXXXX")
trap 'rm -rf "$building"' EXIT
trap 'exit 1' HUP INT TERM

cd "$sources"
version=$(go list -modfile="$modules.mod" -m -f '{{.Version}}' k8s.io/kubernetes)
numbers=${version#v}
major=${numbers%%.*}
minor=${numbers#*.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
echo "building the control plane of the tests, Kubernetes $version: some minutes the first time" >&2
# Without C the program needs no compiler but Go's, and runs on any Linux of this architecture.
CGO_ENABLED=0 go build -modfile="$modules.mod" -trimpath -buildvcs=false -o "$building/control-plane" -ldflags \
    "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" .

rm -f "$target/digest"
mv -f "$building/control-plane" "$target/control-plane"
for name in $names; do
    ln -s control-plane "$building/$name"
    mv -f "$building/$name" "$target/$name"
done
echo "$wanted" >"$building/digest"
mv -f "$building/digest" "$target/digest"
