//! Fuzz target: any bytes as an artifact of a registry.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moorline_fuzz::artifacts(bytes));
