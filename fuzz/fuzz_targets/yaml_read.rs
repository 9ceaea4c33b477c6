//! Fuzz target: any bytes as YAML.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moorline_fuzz::yaml_read(bytes));
