#!/usr/bin/env bash
# Records signed commits and tags as real tools make them, with keys that are thrown away: the public halves go to keys/, the
# objects, as Git stores them, to objects/. Needs git, ssh-keygen and gpg.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
work=$(mktemp -d)
trap 'gpgconf --kill all >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
rm -rf keys objects
mkdir keys objects
export GNUPGHOME=$work/gnupg HOME=$work GIT_CONFIG_NOSYSTEM=1
mkdir -m 700 "$GNUPGHOME"

for key in ann:ed25519: bob:ecdsa:256 rsa:rsa:2048 eve:ed25519:; do
    IFS=: read -r name type bits <<<"$key"
    ssh-keygen -q -t "$type" ${bits:+-b "$bits"} -N '' -C "$name@example.com" -f "$work/$name"
    cp "$work/$name.pub" "keys/$name.pub"
done

gpg() { command gpg --batch --quiet --pinentry-mode loopback --passphrase '' "$@"; }
generate() { gpg --quick-generate-key "$1 <$1@example.com>" "$2" "$3" "$4"; }
fingerprint() { gpg --list-keys --with-colons "$1@example.com" | awk -F: '$1 == "fpr" { print $10; exit }'; }
public() { gpg --armor --export "$1@example.com" >"keys/$1.asc"; }

git -c init.defaultBranch=main init -q "$work/repository"
cd "$work/repository"
git config user.name Ann
git config user.email ann@example.com
export GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' GIT_COMMITTER_DATE='2026-01-02T03:04:05Z'
tree=$(git hash-object -t tree -w /dev/null)

# commit NAME FORMAT KEY: a commit of nothing, and the object that it is.
commit() {
    local id
    id=$(git -c "gpg.format=$2" -c "user.signingKey=$3" commit-tree ${3:+-S} -m "signed: $1" "$tree")
    git cat-file commit "$id" >"$here/objects/$1.commit"
    echo "$id"
}
# tag NAME FORMAT KEY COMMIT
tag() {
    git -c "gpg.format=$2" -c "user.signingKey=$3" tag -s -m "release $1" "$1" "$4"
    git cat-file tag "$1" >"$here/objects/$1.tag"
}

for name in ann bob rsa eve; do commit "ssh-$name" ssh "$work/$name.pub" >/dev/null; done
plain=$(commit unsigned ssh '')
tag v1 ssh "$work/ann.pub" "$plain"

cd "$here"
generate gina ed25519 sign never
generate hugo rsa2048 cert never
gpg --quick-add-key "$(fingerprint hugo)" rsa2048 sign never
generate late ed25519 sign seconds=5
generate gone ed25519 sign never
public gina
public hugo
public late
cd "$work/repository"
for name in gina hugo late gone; do commit "openpgp-$name" openpgp "$name@example.com" >/dev/null; done
tag v2 openpgp gina@example.com "$plain"
cd "$here"
# As it was taken back by its owner afterwards.
sed 's/^:---/---/' "$GNUPGHOME/openpgp-revocs.d/$(fingerprint gone).rev" | gpg --import
public gone

# A signature that was made for something else than Git.
payload=$work/payload
sed 's/signed: ssh-ann/signed: for a file/' objects/unsigned.commit | sed 's/signed: unsigned/signed: for a file/' >"$payload"
ssh-keygen -q -Y sign -n file -f "$work/ann" "$payload"
{
    sed '/^$/,$d' "$payload"
    sed '1s/^/gpgsig /; 2,$s/^/ /' "$payload.sig"
    sed -n '/^$/,$p' "$payload"
} >objects/ssh-file.commit
