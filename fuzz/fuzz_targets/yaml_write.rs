//! Any text, as a value and as a key, is written so that both dialects read it back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moorline::yaml::{Dialect, read, write};
use serde_json::json;

fuzz_target!(|text: &str| {
    // Kustomize drops the key `<<` however it is written.
    let key = if text == "<<" { "merge" } else { text };
    let value = json!({"a": [text, [text]], "b": {key: text, "z": [{key: 1}]}});
    let written = write(&value);
    for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
        let documents = read("fuzz.yaml", written.as_bytes(), dialect).expect("what is written is read");
        assert_eq!(documents.first().map(|document| &document.value), Some(&value), "{written}");
    }
});
