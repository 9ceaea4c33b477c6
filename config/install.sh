#!/bin/sh
# Installs the program moorline of a release for this user: downloads it, checks its checksum, and
# copies one file.
#
#   MOORLINE_URL=URL sh install.sh VERSION
#
# MOORLINE_URL  the folder with the tarballs and SHA256SUMS of the version
# MOORLINE_BIN  the folder that gets the program, ~/.local/bin if it is not set
# MOORLINE_VERSION may name the version instead.
set -eu

refuse() {
    echo "moorline is not installed: $1" >&2
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }
place() { mkdir -p "$2" && cp "$1" "$2/moorline.new" && chmod 755 "$2/moorline.new" && mv "$2/moorline.new" "$2/moorline"; }

main() {
    version=${1:-${MOORLINE_VERSION:-}} url=${MOORLINE_URL:-} bin=${MOORLINE_BIN:-${HOME:-}/.local/bin}
    [ -n "$version" ] || refuse "name the version, as in: sh install.sh 0.1.0"
    [ -n "$url" ] || refuse "set MOORLINE_URL to the folder with the tarballs of the release"
    for tool in awk gzip mktemp tar uname; do has "$tool" || refuse "the program $tool is missing"; done

    case "$(uname -s)" in
        Linux) system=unknown-linux-musl ;;
        Darwin) system=apple-darwin ;;
        *) refuse "there is no binary for the system $(uname -s)" ;;
    esac
    case "$(uname -m)" in
        x86_64 | amd64) name=moorline-$version-x86_64-$system ;;
        aarch64 | arm64) name=moorline-$version-aarch64-$system ;;
        *) refuse "there is no binary for the architecture $(uname -m)" ;;
    esac

    if has curl; then fetch() { curl -fsL -o "$2" "$1"; }
    elif has wget; then fetch() { wget -q -O "$2" "$1"; }
    else refuse "the program curl or wget is missing"; fi
    if has sha256sum; then checksum() { sha256sum "$1"; }
    elif has shasum; then checksum() { shasum -a 256 "$1"; }
    else refuse "the program sha256sum or shasum is missing"; fi

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    fetch "$url/SHA256SUMS" "$work/SHA256SUMS" || refuse "$url/SHA256SUMS cannot be downloaded"
    wanted=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$work/SHA256SUMS")
    [ -n "$wanted" ] || refuse "$url/SHA256SUMS does not list $name.tar.gz"
    fetch "$url/$name.tar.gz" "$work/$name.tar.gz" || refuse "$url/$name.tar.gz cannot be downloaded"
    found=$(checksum "$work/$name.tar.gz")
    [ "${found%% *}" = "$wanted" ] || refuse "the checksum of $name.tar.gz is ${found%% *}, not $wanted"
    tar -xzf "$work/$name.tar.gz" -C "$work" "$name/moorline" 2>/dev/null ||
        refuse "$name.tar.gz has no program moorline"
    place "$work/$name/moorline" "$bin" 2>/dev/null || refuse "$bin cannot be written"
    case ":$PATH:" in *":$bin:"*) hint= ;; *) hint=", which is not on PATH" ;; esac
    echo "installed $bin/moorline$hint"
}

# The last line, so that a script that was cut off on its way does nothing.
main "$@"
