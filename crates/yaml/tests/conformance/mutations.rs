//! Broken YAML never breaks the reader.
//!
//! In: the recorded inputs, changed at random places with a fixed seed. Out: nothing but values
//! and errors, and what was read is written and read again as the same value. The same properties
//! run without a bound under `fuzz/`.

use moorline_yaml::{Dialect, read, write};
use serde_json::Value;

#[derive(serde::Deserialize)]
struct Input {
    input: String,
}

/// Number of changed texts that are read, in each dialect.
const MUTATIONS: usize = 12_000;

/// Pieces that the grammar cares about.
const PIECES: &[&str] = &[
    ":",
    ": ",
    "- ",
    "? ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "!!str ",
    "!!binary ",
    "!x ",
    "! ",
    "|",
    ">",
    "|+2\n",
    "'",
    "\"",
    "\\",
    "\\x4",
    "#",
    " #",
    "%",
    "@",
    "\n",
    "\r\n",
    "\t",
    " ",
    "    ",
    "---\n",
    "...\n",
    "<<: ",
    "<<: *a\n",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "\0",
    "é",
    "0x",
    "1e9",
    "~",
    "=",
    "\n- ",
    "\n  ",
];

/// Numbers without chance: the same sequence in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn mutated(sequence: &mut Sequence, inputs: &[Input]) -> Vec<u8> {
    let mut bytes = inputs[sequence.below(inputs.len())].input.clone().into_bytes();
    for _ in 0..=sequence.below(3) {
        let at = sequence.below(bytes.len() + 1);
        match sequence.below(5) {
            0 => bytes.truncate(at),
            1 => {
                let end = bytes.len().min(at + 1 + sequence.below(6));
                bytes.drain(at..end);
            }
            2 => {
                let other = inputs[sequence.below(inputs.len())].input.as_bytes();
                let start = sequence.below(other.len());
                let end = other.len().min(start + sequence.below(30));
                bytes.splice(at..at, other[start..end].iter().copied());
            }
            3 if at < bytes.len() => bytes[at] = sequence.below(256) as u8,
            _ => {
                let piece = PIECES[sequence.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
        }
    }
    bytes
}

#[test]
fn mutations_end_in_values_or_errors() {
    let inputs: Vec<Input> =
        serde_json::from_str(include_str!("../../../../tests/yaml/inputs.json")).expect("inputs.json");
    let mut sequence = Sequence(7);
    let (mut values, mut errors) = (0, 0);
    for _ in 0..MUTATIONS {
        let bytes = mutated(&mut sequence, &inputs);
        for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
            match read("changed.yaml", &bytes, dialect) {
                Ok(documents) => {
                    values += 1;
                    documents.iter().for_each(|document| again(&document.value, dialect));
                }
                Err(error) => {
                    errors += 1;
                    assert!(error.line() >= 1 && error.column() >= 1);
                }
            }
        }
    }
    // Both outcomes must stay common, or the mutations test nothing.
    assert!(values > MUTATIONS / 4 && errors > MUTATIONS / 4, "{values} values, {errors} errors");
}

/// A value that was read survives being written.
fn again(value: &Value, dialect: Dialect) {
    let text = write(value);
    let documents =
        read("again.yaml", text.as_bytes(), dialect).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(documents.first().map(|document| &document.value), Some(value), "{text}");
}
