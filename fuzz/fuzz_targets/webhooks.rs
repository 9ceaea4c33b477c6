//! Fuzz target: any bytes as the body of a webhook.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moorline_fuzz::webhooks(bytes));
