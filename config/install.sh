#!/bin/sh
# Installs the program moorline from a release: MOORLINE_URL=https://.../v0.1.0 MOORLINE_VERSION=0.1.0 sh install.sh
#   MOORLINE_URL      address of the folder with the tarballs and SHA256SUMS
#   MOORLINE_VERSION  version of the release
#   MOORLINE_BIN      where the program goes; ~/.local/bin without it
set -eu

refuse() {
    echo "install.sh: $1" >&2
    exit 1
}

url=${MOORLINE_URL:-}
version=${MOORLINE_VERSION:-}
[ -n "$url" ] || refuse "MOORLINE_URL is not set; it is the address of the folder with SHA256SUMS"
[ -n "$version" ] || refuse "MOORLINE_VERSION is not set, such as 0.1.0"
bin=${MOORLINE_BIN:-$HOME/.local/bin}

system=$(uname -s)
machine=$(uname -m)
case "$system $machine" in
    "Linux x86_64") target=x86_64-unknown-linux-musl ;;
    "Linux aarch64" | "Linux arm64") target=aarch64-unknown-linux-musl ;;
    "Darwin x86_64") target=x86_64-apple-darwin ;;
    "Darwin arm64") target=aarch64-apple-darwin ;;
    *) refuse "there is no binary for $system on $machine; build it from the source with cargo" ;;
esac
for tool in curl tar; do
    command -v "$tool" >/dev/null 2>&1 || refuse "$tool is missing"
done
if command -v sha256sum >/dev/null 2>&1; then
    sum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null 2>&1; then
    sum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
    refuse "sha256sum and shasum are missing, so the download cannot be checked"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=moorline-$version-$target
for file in SHA256SUMS "$name.tar.gz"; do
    curl -fsSL -o "$work/$file" "$url/$file" || refuse "$url/$file cannot be downloaded"
done
wanted=$(awk -v file="$name.tar.gz" '$2 == file { print $1 }' "$work/SHA256SUMS")
[ -n "$wanted" ] || refuse "SHA256SUMS does not list $name.tar.gz"
found=$(sum "$work/$name.tar.gz")
[ "$found" = "$wanted" ] || refuse "$name.tar.gz is not the file of the release: its checksum is $found, not $wanted"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$bin"
install -m 755 "$work/$name/moorline" "$bin/moorline"
"$bin/moorline" --version
case ":$PATH:" in *":$bin:"*) ;; *) echo "$bin is not on PATH" >&2 ;; esac
