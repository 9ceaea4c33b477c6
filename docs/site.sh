#!/bin/sh
# Makes the pages of docs/SUMMARY.md into a site in target/site.
#
#   sh docs/site.sh          builds the site
#   sh docs/site.sh mdbook   fetches only the program that builds it, where it is not on PATH, into target/tools
#
# MOORLINE_SOURCE  address of the repository: links to its other files lead there. Without it, these are plain text.
# SITE             the folder of the site, target/site if it is not set; it is deleted first
set -eu
cd "$(dirname "$0")/.."
root=$PWD
MDBOOK=0.5.4

mdbook=$root/target/tools/mdbook
if command -v mdbook >/dev/null 2>&1; then
    mdbook=mdbook
elif [ ! -x "$mdbook" ]; then
    mkdir -p target/tools
    cargo install mdbook --quiet --locked --version "$MDBOOK" --root target/mdbook-program
    mv target/mdbook-program/bin/mdbook "$mdbook"
    rm -r target/mdbook-program
fi
[ "${1:-}" != mdbook ] || exit 0

# The pages keep their places, so that links between them hold.
site=${SITE:-$root/target/site}
stage=$site-source
rm -rf "$stage" "$site"
mkdir -p "$stage/src/docs" "$stage/theme/fonts"
cp docs/book.toml "$stage"
cp docs/theme/* "$stage/theme"
cp src/serve/page/icon.svg "$stage/theme/favicon.svg"
echo '/* The fonts are those of the system. */' >"$stage/theme/fonts/fonts.css"
cp -R docs/images "$stage/src/docs"
sed -e 's|](|](docs/|' -e 's|](docs/\.\./|](|' docs/SUMMARY.md >"$stage/src/SUMMARY.md"
pages=$(sed -n 's/.*](\(.*\.md\)).*/\1/p' "$stage/src/SUMMARY.md")
for page in $pages; do
    mkdir -p "$stage/src/$(dirname "$page")"
    awk -v page="$page" -v pages="$pages" -v source="${MOORLINE_SOURCE:-}" -f docs/site.awk "$page" >"$stage/src/$page"
done
"$mdbook" build "$stage" --dest-dir "$site"
echo "$site/index.html"
