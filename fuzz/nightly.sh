#!/bin/sh
# Runs every fuzz target for a while, with coverage, as a nightly job. Needs nightly Rust and cargo-fuzz.
#
#   sh fuzz/nightly.sh [TARGET...]     without a name: all targets
#
# FUZZ_SECONDS  seconds for each target, 600 if it is not set
# FUZZ_CORPUS   the folder that keeps the inputs from night to night, target/fuzz/corpus if it is not set
#
# An input that crashes a target is moved to fuzz/fixtures/TARGET: `cargo test --test render fuzz::` fails until the bug is fixed, and
# keeps the input as a regression test.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${FUZZ_SECONDS:-600}
corpus=${FUZZ_CORPUS:-$PWD/target/fuzz/corpus}
found=$PWD/target/fuzz/found

command -v cargo-fuzz >/dev/null 2>&1 || { echo "cargo-fuzz is needed: cargo install cargo-fuzz --locked" >&2; exit 1; }
cargo +nightly --version >/dev/null 2>&1 || { echo "nightly Rust is needed: rustup toolchain install nightly" >&2; exit 1; }
if [ $# -eq 0 ]; then
    for file in fuzz/fuzz_targets/*.rs; do set -- "$@" "$(basename "$file" .rs)"; done
fi

failed=0
for target in "$@"; do
    fixtures=fuzz/fixtures/$target
    mkdir -p "$corpus/$target" "$found/$target"
    # Libfuzzer writes new inputs to the first folder, and only reads the second.
    set -- "$corpus/$target"
    [ -d "$fixtures" ] && set -- "$@" "$PWD/$fixtures"
    echo "== $target, $seconds s"
    # Without a sanitizer: the code is safe Rust, and an instrumented build takes several times as long.
    if cargo +nightly fuzz run --sanitizer none --target-dir target/fuzz/build "$target" "$@" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$found/$target/"; then
        # Minimizes the corpus for the next night: removes inputs that reach no new code.
        cargo +nightly fuzz cmin --sanitizer none --target-dir target/fuzz/build "$target" "$corpus/$target" ||
            echo "$target: the corpus stays as large as it is" >&2
    else
        failed=1
        echo "$target: failed" >&2
    fi
    for input in "$found/$target"/*; do
        [ -f "$input" ] || continue
        mkdir -p "$fixtures"
        mv "$input" "$fixtures/"
        echo "$target: $fixtures/$(basename "$input")" >&2
    done
done
exit $failed
