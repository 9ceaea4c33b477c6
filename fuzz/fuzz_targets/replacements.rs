//! Fuzz target: any replacements.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    moorline_fuzz::replacements(text);
});
