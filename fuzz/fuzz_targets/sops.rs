//! Fuzz target: any bytes as an encrypted file of each format, and as a file of keys.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moorline_fuzz::sops(bytes));
