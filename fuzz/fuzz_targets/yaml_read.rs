//! Any bytes are read as values or refused, and what was read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moorline::yaml::{Dialect, Step, locate, read, write};

fuzz_target!(|bytes: &[u8]| {
    for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
        let Ok(documents) = read("fuzz.yaml", bytes, dialect) else {
            continue;
        };
        for document in documents {
            let place = locate(bytes, dialect, document.index, &[Step::Key("a"), Step::Item(0)]);
            assert!(place.is_some());
            let text = write(&document.value);
            let again = read("again.yaml", text.as_bytes(), dialect).expect("what is written is read");
            assert_eq!(again.first().map(|document| &document.value), Some(&document.value), "{text}");
        }
    }
});
