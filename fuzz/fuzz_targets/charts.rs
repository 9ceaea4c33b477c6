//! Fuzz target: any bytes as the archive of a chart.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moorline_fuzz::charts(bytes));
