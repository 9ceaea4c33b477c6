//! Any kustomization, resource and patch: built or refused, and never the end of the program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moorline::render::kustomization;
use moorline::tree::FileTree;

/// What stands between the files.
const BETWEEN: &str = "\n===\n";

fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, BETWEEN);
    let mut part = || parts.next().unwrap_or_default();
    let files = [("kustomization.yaml", part()), ("a.yaml", part()), ("p.yaml", part())];
    drop(kustomization(&FileTree::from_texts(files), ""));
});
