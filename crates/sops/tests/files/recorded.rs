//! Files that the library of SOPS encrypted, kept beside the tests with their plain form.

use std::path::Path;

use moorline_sops::{AgeIdentities, Format, read};
use serde_json::json;

use crate::library::{IDENTITIES, Library, name};

fn check(file: &str, encrypted: &[u8], plain: &[u8]) {
    let keys = AgeIdentities::read(&format!("{}\n{}\n", IDENTITIES[0].0, IDENTITIES[1].0)).expect("reads");
    let found = read(file, encrypted, Format::of_path(file)).expect(file).expect("is encrypted");
    let key = found.data_key(&[&keys]).expect(file);
    let decrypted = found.decrypt(&key).expect(file);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(decrypted.as_bytes()), text(plain), "{file}");
}

macro_rules! recorded {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[test]
            fn $name() {
                check($file, include_bytes!(concat!("recorded/", $file)), include_bytes!(concat!("recorded/plain/", $file)));
            }
        )*
    };
}

recorded! {
    a_secret_is_decrypted: "secret.yaml",
    several_documents_are_decrypted: "documents.yaml",
    comments_are_decrypted: "comments.yaml",
    key_groups_are_put_together: "groups.yaml",
    json_is_decrypted: "config.json",
    variables_are_decrypted: "prod.env",
    sections_are_decrypted: "config.ini",
    bytes_are_decrypted: "logo.bin",
}

/// Rules and groups of the files, the others have the first key and no rule.
fn request(file: &str) -> serde_json::Value {
    let [one, two, three] = IDENTITIES.map(|(_, recipient)| recipient);
    let mut request = json!({"op": "encrypt", "format": name(Format::of_path(file)), "groups": [[one]]});
    match file {
        "secret.yaml" => {
            request["rule"] = "encrypted_regex".into();
            request["pattern"] = "^(data|stringData)$".into();
            request["only_encrypted"] = true.into();
        }
        "comments.yaml" => {
            request["rule"] = "encrypted_comment_regex".into();
            request["pattern"] = "^ encrypt:".into();
        }
        "groups.yaml" => {
            request["groups"] = json!([[three], [three, two], [one]]);
            request["threshold"] = 2.into();
        }
        _ => {}
    }
    request
}

#[test]
#[ignore = "writes the recorded files again; needs the program of crates/sops/tests/oracle in MOORLINE_SOPS_ORACLE"]
fn record_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/recorded");
    let mut library = Library::start(&format!("{}\n{}", IDENTITIES[0].0, IDENTITIES[1].0));
    for entry in std::fs::read_dir(folder.join("plain")).expect("lists") {
        let path = entry.expect("lists").path();
        let file = path.file_name().expect("has a name").to_string_lossy().into_owned();
        let plain = std::fs::read(&path).expect("reads");
        let encrypted = library.ask(request(&file), &plain).expect(&file);
        let back = library.decrypt(Format::of_path(&file), &encrypted).expect(&file);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&back), text(&plain), "{file} must have the form that SOPS writes");
        std::fs::write(folder.join(file), encrypted).expect("writes");
    }
}
