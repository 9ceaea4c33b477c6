//! Fuzz target: any text as a known_hosts file.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| moorline_fuzz::known_hosts(text));
