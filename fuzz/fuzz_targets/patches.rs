//! Fuzz target: any object and patch.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    moorline_fuzz::patches(text);
});
