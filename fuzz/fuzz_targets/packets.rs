//! Fuzz target: any bytes as pkt-lines of a Git server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moorline_fuzz::packets(bytes));
