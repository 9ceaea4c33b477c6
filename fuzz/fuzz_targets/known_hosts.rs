//! Any text as a file of known hosts.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| moorline_fuzz::known_hosts(text));
