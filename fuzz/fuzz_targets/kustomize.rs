//! Fuzz target: any kustomization, resource and patch.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    moorline_fuzz::kustomize(text);
});
