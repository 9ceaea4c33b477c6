#!/bin/sh
# Compares the readers of secrets and signatures with the programs that define them, on inputs by chance.
#
#   sh tests/oracles.sh [sops] [cosign] [moto]     without a name: all three
#
# sops    documents in both directions, with the library of SOPS (Go)
# cosign  changed signatures, with the libraries of Sigstore (Go)
# moto    requests to STS, ECR and KMS, with an emulation of AWS that checks signatures (Python, from PyPI)
#
# MOORLINE_SOPS_DOCUMENTS  documents in each direction, 10000 if it is not set
# MOORLINE_SOPS_SEED       the first seed, 1 if it is not set
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
MOTO=5.2.5
[ $# -gt 0 ] || set -- sops cosign moto

build() {
    (cd "crates/$1/tests/oracle" && go build -o "$2" .)
}

compare_sops() {
    build sops "$PWD/target/sops-oracle"
    MOORLINE_SOPS_ORACLE=$PWD/target/sops-oracle MOORLINE_SOPS_DOCUMENTS=${MOORLINE_SOPS_DOCUMENTS:-10000} \
        $CARGO test --workspace --locked --test files -- --ignored --nocapture alike
}

compare_cosign() {
    build cosign "$PWD/target/cosign-oracle"
    MOORLINE_COSIGN_ORACLE=$PWD/target/cosign-oracle \
        $CARGO test --workspace --locked --test signatures -- --ignored --nocapture
}

compare_moto() {
    folder=$PWD/target/moto
    if [ ! -x "$folder/bin/moto_server" ]; then
        python3 -m venv "$folder"
        "$folder/bin/pip" install --quiet "moto[server,kms,sts,ecr]==$MOTO"
    fi
    # The server takes a free port, and writes it into its log.
    INITIAL_NO_AUTH_ACTION_COUNT=5 "$folder/bin/moto_server" -H 127.0.0.1 -p 0 >"$folder/log" 2>&1 &
    server=$!
    trap 'kill "$server" 2>/dev/null || true' EXIT
    address=
    for _ in $(seq 300); do
        address=$(sed -n 's|.*Running on http://\(127\.0\.0\.1:[0-9]*\).*|\1|p' "$folder/log" | head -n 1)
        [ -n "$address" ] && break
        kill -0 "$server" || { cat "$folder/log" >&2; exit 1; }
        sleep 0.2
    done
    [ -n "$address" ] || { echo "moto_server does not start" >&2; cat "$folder/log" >&2; exit 1; }
    MOORLINE_MOTO=$address $CARGO test --workspace --locked --test moto -- --ignored --nocapture
}

for name in "$@"; do
    case $name in
    sops | cosign | moto) echo "== $name" && "compare_$name" ;;
    *) echo "$name is none of sops, cosign and moto" >&2 && exit 2 ;;
    esac
done
