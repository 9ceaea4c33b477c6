//! Fuzz target: any bytes as the documents of a signature.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| _ = moorline_fuzz::signatures(bytes));
