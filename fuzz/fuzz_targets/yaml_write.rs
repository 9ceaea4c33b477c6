//! Fuzz target: any text as YAML.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| moorline_fuzz::yaml_write(text));
