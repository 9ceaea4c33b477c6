//! Fuzz target: any bytes as a pack.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moorline_fuzz::packs(bytes));
