//! A file with any bit of an encrypted field changed is refused.

use moorline_sops::Format;

use crate::documents::{self, Chance};
use crate::encryption::{self, Options};

const FORMATS: [Format; 5] = [Format::Yaml, Format::Json, Format::Dotenv, Format::Ini, Format::Binary];

/// Returns the ranges of encrypted fields: values and the MAC.
fn fields(text: &str) -> Vec<std::ops::Range<usize>> {
    let starts = text.match_indices("ENC[").map(|(at, _)| at);
    starts.map(|at| at..at + text[at..].find(']').expect("has an end") + 1).collect()
}

#[test]
fn own_files_are_decrypted() {
    let mut chance = Chance::new(3);
    for nth in 0..400 {
        let format = FORMATS[nth % FORMATS.len()];
        let documents = documents::random(&mut chance, format);
        let options = match format {
            Format::Binary => Options { rule: None, only_encrypted: false },
            _ => Options::random(&mut chance),
        };
        let file = encryption::encrypt(&documents, format, &options);
        let plain = encryption::decrypted("f", file.as_bytes(), format);
        let plain = plain.unwrap_or_else(|error| panic!("{error}\n{options:?}\n{file}"));
        if format == Format::Yaml {
            let expect = crate::writing::write(&documents, None, format);
            let found = String::from_utf8(plain).expect("is text");
            let expect = crate::library::values(&expect, moorline_yaml::Dialect::Kustomize);
            crate::library::assert_has_values(&found, &expect, &file);
        }
    }
}

#[test]
fn every_changed_bit_of_a_field_is_refused() {
    let mut chance = Chance::new(5);
    let mut flipped = 0;
    for nth in 0..250 {
        let format = FORMATS[nth % FORMATS.len()];
        let documents = documents::random(&mut chance, format);
        let rule = match format {
            Format::Binary => None,
            _ => Options::random(&mut chance).rule,
        };
        let options = Options { rule, only_encrypted: chance.below(2) == 0 };
        let file = encryption::encrypt(&documents, format, &options).into_bytes();
        let text = std::str::from_utf8(&file).expect("is text");
        for field in fields(text) {
            for _ in 0..20 {
                let (at, bit) = (field.start + chance.below(field.len()), chance.below(8));
                let mut changed = file.clone();
                changed[at] ^= 1 << bit;
                flipped += 1;
                if let Ok(plain) = encryption::decrypted("f", &changed, format) {
                    let plain = String::from_utf8_lossy(&plain).into_owned();
                    panic!("bit {bit} of byte {at} is not noticed:\n{plain}\n{text}");
                }
            }
        }
    }
    assert!(flipped > 10_000, "{flipped} bits");
}

#[test]
fn random_damage_never_panics() {
    let mut chance = Chance::new(7);
    let signs = b"\n\r\t #:-[]{},'\"|>&*!?%@`\\=;\x00\xff\xc3aE";
    for nth in 0..300 {
        let format = FORMATS[nth % FORMATS.len()];
        let documents = documents::random(&mut chance, format);
        let style = crate::writing::Style::random(&mut chance);
        let rule = Options { rule: None, only_encrypted: chance.below(2) == 0 };
        let file = encryption::encrypt_styled(&documents, format, &rule, style).into_bytes();
        for _ in 0..40 {
            let mut changed = file.clone();
            for _ in 0..1 + chance.below(4) {
                if changed.is_empty() {
                    break;
                }
                let at = chance.below(changed.len());
                match chance.below(4) {
                    0 => changed[at] = signs[chance.below(signs.len())],
                    1 => changed.insert(at, signs[chance.below(signs.len())]),
                    2 => drop(changed.remove(at)),
                    _ => changed.truncate(at.max(1)),
                }
            }
            for format in FORMATS {
                let _ = encryption::decrypted("f", &changed, format);
            }
        }
    }
}
