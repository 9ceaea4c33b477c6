//! Random documents in both directions between the crate and the library of SOPS.

use moorline_sops::{AgeIdentities, Format, SopsError, read};
use serde_json::json;

use crate::documents::{self, Chance};
use crate::encryption::{KEY, MODIFIED, Options};
use crate::library::{IDENTITIES, Library, RSA, assert_has_values, name};
use crate::{encryption, writing};

const FORMATS: [Format; 5] = [Format::Yaml, Format::Json, Format::Dotenv, Format::Ini, Format::Binary];

/// Number of documents, and the first seed.
fn scope() -> (u64, u64) {
    let number = |name: &str, default| {
        std::env::var(name)
            .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
    };
    (number("MOORLINE_SOPS_DOCUMENTS", 500), number("MOORLINE_SOPS_SEED", 1))
}

/// Returns a rule, comment rules included, for a request.
fn rule(chance: &mut Chance) -> Option<(&'static str, &'static str)> {
    match chance.below(7) {
        0 => Some(("encrypted_comment_regex", "about [0-4]")),
        1 => Some(("unencrypted_comment_regex", "about [0-4]$")),
        _ => Options::random(chance).rule,
    }
}

fn decrypted(file: &[u8], format: Format, identities: &str) -> Result<Vec<u8>, String> {
    let keys = AgeIdentities::read(identities).map_err(|error| error.to_string())?;
    let plain = || -> Result<_, SopsError> {
        let found = read("file", file, format)?.expect("is encrypted");
        found.decrypt(&found.data_key(&[&keys])?)
    };
    plain().map(|plain| plain.as_bytes().to_vec()).map_err(|error| error.to_string())
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "needs the program of crates/sops/tests/oracle in MOORLINE_SOPS_ORACLE"]
fn files_of_the_library_are_decrypted_alike() {
    let identities = [IDENTITIES[0].0, IDENTITIES[1].0].join("\n");
    let mut library = Library::start(&identities);
    let (identities, rsa) = (format!("{identities}\n{}", RSA.0), RSA.1.trim());
    let (count, first) = scope();
    let (mut same, mut yaml, mut refused) = (0_u64, 0_u64, 0_u64);
    for seed in first..first + count {
        let mut chance = Chance::new(seed);
        // Half of the documents are of YAML.
        let format = FORMATS[chance.below(2 * FORMATS.len() - 2).saturating_sub(FORMATS.len() - 2)];
        let documents = documents::random(&mut chance, format);
        let style = writing::Style::random(&mut chance);
        let plain = writing::write_styled(&documents, None, format, style);
        let plain = match format {
            Format::Binary => binary(&mut chance),
            _ => plain.into_bytes(),
        };
        let rule = if format == Format::Binary { None } else { rule(&mut chance) };
        let recipients = IDENTITIES.map(|(_, recipient)| recipient);
        let (groups, threshold) = match chance.below(6) {
            0 => (vec![vec![recipients[0]], vec![recipients[2], recipients[1]], vec![recipients[2]]], 2),
            1 => (vec![vec![recipients[2], recipients[0]]], 0),
            2 => (vec![vec![recipients[2], rsa]], 0),
            3 => (vec![vec![recipients[0]], vec![recipients[2]], vec![rsa]], 2),
            _ => (vec![vec![recipients[0]]], 0),
        };
        let request = json!({
            "op": "encrypt", "format": name(format), "groups": groups, "threshold": threshold,
            "rule": rule.map_or("", |(name, _)| name), "pattern": rule.map_or("", |(_, pattern)| pattern),
            // With a rule about comments, this is refused.
            "only_encrypted": chance.below(2) == 0 && !rule.is_some_and(|(name, _)| name.ends_with("comment_regex")),
        });
        // The library refuses some documents, such as a comment rule that fits encrypted text.
        let Ok(file) = library.ask(request.clone(), &plain) else {
            refused += 1;
            continue;
        };
        let expect = match library.decrypt(format, &file) {
            Ok(expect) => expect,
            // A file that the library cannot read back is no measure.
            Err(_) => {
                refused += 1;
                continue;
            }
        };
        let found = decrypted(&file, format, &identities);
        let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{request}\n{}", show(&file)));
        same += u64::from(found == expect);
        if found != expect && std::env::var("MOORLINE_SOPS_SHOW").is_ok() {
            println!("seed {seed} differs in bytes:\n{}\n---- library\n{}", show(&found), show(&expect));
        }
        if format == Format::Yaml {
            yaml += 1;
            let expect = library.values(format, &file).expect("has values");
            assert_has_values(&show(&found), &expect, &format!("seed {seed}: {}", show(&file)));
        } else {
            let (found, expect) = (show(&found), show(&expect));
            assert_eq!(found, expect, "seed {seed}: {}\n{request}", show(&file));
        }
    }
    println!("{count} documents, {refused} left out, {same} byte for byte, {yaml} of YAML");
    assert!(refused * 50 < count, "{refused} of {count} were left out");
}

/// Returns bytes for a file that is no text.
fn binary(chance: &mut Chance) -> Vec<u8> {
    let length = chance.below(60);
    let text = chance.below(2) == 0;
    (0..length).map(|_| if text { b' ' + chance.below(95) as u8 } else { chance.below(256) as u8 }).collect()
}

#[test]
#[ignore = "needs the program of crates/sops/tests/oracle in MOORLINE_SOPS_ORACLE"]
fn own_files_are_decrypted_alike() {
    let mut library = Library::start(IDENTITIES[0].0);
    // The data key as the library encrypts it: in a file of its own, whose key is replaced.
    let (count, first) = scope();
    let (mut compared, mut refused) = (0_u64, 0_u64);
    let sealed_key = sealed_key(&mut library);
    for seed in first..first + count {
        let mut chance = Chance::new(seed ^ 0xabcd);
        // Half of the documents are of YAML.
        let format = FORMATS[chance.below(2 * FORMATS.len() - 2).saturating_sub(FORMATS.len() - 2)];
        let documents = documents::random(&mut chance, format);
        let options = match format {
            Format::Binary => Options { rule: None, only_encrypted: false },
            _ => Options::random(&mut chance),
        };
        let style = writing::Style::random(&mut chance);
        let file = encryption::encrypt_styled(&documents, format, &options, style);
        let found = encryption::decrypted("file", file.as_bytes(), format);
        let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{file}"));
        let file = for_age(&file, format, &sealed_key);
        let Ok(expect) = library.decrypt(format, file.as_bytes()) else {
            refused += 1;
            continue;
        };
        compared += 1;
        match format {
            Format::Yaml => {
                let expect = library.values(format, file.as_bytes()).expect("has values");
                assert_has_values(&show(&found), &expect, &format!("seed {seed}: {file}"));
            }
            _ => assert_eq!(show(&found), show(&expect), "seed {seed}: {file}"),
        }
    }
    println!("{compared} documents, {refused} left out");
    assert!(refused * 50 < count, "{refused} of {count} were left out");
}

/// Returns the data key of [`encryption::KEY`], encrypted for the first identity: the content of a
/// binary file is not the key, so the program has an operation for it.
fn sealed_key(library: &mut Library) -> String {
    let request = json!({"op": "seal", "groups": [[IDENTITIES[0].1]]});
    show(&library.ask(request, &KEY).expect("seals"))
}

/// Replaces the key of OpenPGP in a file by that of age.
fn for_age(file: &str, format: Format, sealed: &str) -> String {
    let pgp = "-----BEGIN PGP MESSAGE-----\\n\\nx\\n-----END PGP MESSAGE-----";
    let file = file.replace(pgp, &sealed.trim_end().replace('\n', "\\n"));
    assert!(file.contains(MODIFIED) && file.contains("AGE ENCRYPTED"), "{file}");
    match format {
        Format::Dotenv | Format::Ini => {
            let renamed = file.replace("pgp__list_", "age__list_").replace("map_fp", "map_recipient");
            renamed.replace("F00D", IDENTITIES[0].1)
        }
        Format::Yaml => file
            .replace(" pgp:\n", " age:\n")
            .replace("fp: \"F00D\"", &format!("recipient: \"{}\"", IDENTITIES[0].1)),
        Format::Json | Format::Binary => file
            .replace("\"pgp\": [", "\"age\": [")
            .replace("\"fp\": \"F00D\"", &format!("\"recipient\": \"{}\"", IDENTITIES[0].1)),
    }
}
