//! Bad files are refused with a message that says where and what to do, and never quotes contents.

use moorline_sops::{
    AgeIdentities, Format, MAX_ENCRYPTED_VALUES, MAX_FILE_BYTES, MAX_PATH_BYTES, MAX_VALUES, read,
};

use crate::documents::Tree;
use crate::encryption::{self, KEY, MODIFIED, Options, decrypted, seal};

/// Begin of an encrypted value, in files that are never decrypted.
const MARK: &str = "ENC[AES256_GCM,";

fn options() -> Options {
    Options { rule: None, only_encrypted: false }
}

fn text(text: &str) -> Tree {
    Tree::Text(text.to_owned())
}

fn map(fields: &[(&str, Tree)]) -> Tree {
    Tree::Map(fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

/// Two passwords, in YAML.
fn file() -> String {
    let data = map(&[("user", text("shop-user")), ("password", text("shop-password"))]);
    let documents = [map(&[("kind_unencrypted", text("Secret")), ("data", data)])];
    encryption::encrypt(&documents, Format::Yaml, &options())
}

fn refused(text: &str) -> String {
    let error = decrypted("app/secret.yaml", text.as_bytes(), Format::Yaml).expect_err(text);
    assert!(!error.contains("shop-") && !error.contains("ENC["), "{error}");
    error
}

#[test]
fn changes_without_the_key_are_refused() {
    let good = file();
    let plain = decrypted("f", good.as_bytes(), Format::Yaml).expect("decrypts");
    let expect =
        "\"kind_unencrypted\": \"Secret\"\ndata:\n    user: shop-user\n    password: shop-password\n";
    assert_eq!(String::from_utf8_lossy(&plain), expect);

    let lines: Vec<&str> = good.lines().collect();
    let without = |nth: usize| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != nth).map(|(_, line)| *line);
        kept.collect::<Vec<_>>().join("\n")
    };
    let mac = "the MAC does not fit: a value was added, removed, moved or changed without sops; \
               restore the file from Git, or edit it with `sops edit`";
    let line = lines.iter().position(|line| line.contains("mac:")).expect("has a MAC");
    assert_eq!(refused(&without(2)), format!("app/secret.yaml:{line}: {mac}"));
    assert_eq!(refused(&without(0)), format!("app/secret.yaml:{line}: {mac}"));
    let added = good.replace("data:\n", "extra_unencrypted: 1\ndata:\n");
    assert_eq!(refused(&added), format!("app/secret.yaml:{}: {mac}", line + 2));

    let swapped = good
        .replace("    user:", "    x:")
        .replace("    password:", "    user:")
        .replace("    x:", "    password:");
    let forged = "cannot be decrypted with the data key of this file: it was changed, moved, or copied from another file";
    assert_eq!(refused(&swapped), format!("app/secret.yaml:3: data.password {forged}"));
    let plain = good.replace("data:\n", "data:\n    extra: shop-extra\n");
    let must = "must be encrypted by the rule of this file, but is not; edit the file with `sops edit`";
    assert_eq!(refused(&plain), format!("app/secret.yaml:3: data.extra {must}"));
    let number = good.replace("data:\n", "data:\n    extra: 5\n");
    assert_eq!(refused(&number), format!("app/secret.yaml:3: data.extra {must}"));
}

#[test]
fn other_layouts_of_a_file_are_decrypted() {
    let good = file();
    let (values, metadata) = good.split_once("sops:\n").expect("has metadata");
    let moved = format!("sops:\n{metadata}{values}");
    let cases = [
        good.replace('\n', "\r\n"),
        good.trim_end().to_owned(),
        moved.trim_end().to_owned(),
        moved,
        format!("\u{feff}{good}"),
        format!("# head\n---\n{good}...\n"),
        format!("{good}---\n"),
        format!("{good}---\n# nothing\n---\n"),
        good.replace("sops:\n", "sops :\n"),
        good.replace("sops:\n", "? sops\n:\n"),
        good.replace("    user: ", "    ? user\n    : "),
        good.replace("    user: ", "    user:\n        "),
        good.replace("    user: ", "    user: !!str "),
        good.replace("    user: ", "    user: &name "),
    ];
    for text in cases {
        let plain =
            decrypted("f", text.as_bytes(), Format::Yaml).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let plain = String::from_utf8(plain).expect("is text");
        assert!(!plain.contains("sops") && !plain.contains("mac"), "{plain}");
        let expect = serde_json::json!({
            "kind_unencrypted": "Secret", "data": {"user": "shop-user", "password": "shop-password"},
        });
        crate::library::assert_has_values(&plain, &[expect], &text);
    }
}

#[test]
fn a_document_of_metadata_alone_is_empty() {
    let file = encryption::encrypt(&[map(&[]), map(&[("a", text("x"))])], Format::Yaml, &options());
    let plain = decrypted("f", file.as_bytes(), Format::Yaml).expect("decrypts");
    assert_eq!(String::from_utf8_lossy(&plain), "{}\n---\na: x\n");
}

#[test]
fn damaged_metadata_is_refused() {
    let good = file();
    let end = "encrypt the file again with sops";
    let gone = |field: &str| {
        let kept = good.lines().filter(|line| !line.trim_start().starts_with(field));
        kept.collect::<Vec<_>>().join("\n")
    };
    let missing = "sops.mac is missing, so changes of the file cannot be noticed";
    assert_eq!(refused(&gone("mac:")), format!("app/secret.yaml:5: {missing}; {end}"));
    let time = "sops.lastmodified must be a time such as 2026-01-02T03:04:05Z";
    assert_eq!(refused(&gone("lastmodified:")), format!("app/secret.yaml:5: {time}; {end}"));
    let kind = good.replace("type:str]\n    \"password\"", "type:map]\n    \"password\"");
    let kind = kind.replacen("type:str", "type:map", 1);
    let damaged = "is cut off or damaged: its type is unknown; restore it from Git or encrypt the file again";
    assert_eq!(refused(&kind), format!("app/secret.yaml:3: data.user {damaged}"));
    let foreign = good.replace("F00D", "BEEF");
    let nobody = "no key here opens this file: OpenPGP key BEEF (not here); \
                  add a key, or run `sops updatekeys` with one that is here";
    assert_eq!(refused(&foreign), format!("app/secret.yaml:5: {nobody}"));
    let twice = format!("{good}sops: {{}}\n");
    let line = twice.lines().count();
    let form = "found a second field sops, which SOPS does not write: remove one of them";
    assert_eq!(refused(&twice), format!("app/secret.yaml:{line}: {form}"));
}

#[test]
fn a_key_that_decrypts_half_is_refused() {
    let other = seal(b"shop-other", "str", "data:user:", &[8; 32]);
    let good = file();
    let user = good.lines().nth(2).and_then(|line| line.split_once(": ")).expect("has a user").1.to_owned();
    let error = refused(&good.replace(&user, &other));
    assert!(error.starts_with("app/secret.yaml:3: data.user cannot be decrypted"), "{error}");
}

#[test]
fn forms_of_yaml_that_sops_does_not_write_are_refused() {
    let good = file();
    let with = |line: &str| format!("{line}\n{good}");
    let cases = [
        (with("a_unencrypted: &x 1\nb_unencrypted: *x"), "2: found an alias"),
        (with("a_unencrypted: {<<: {b: 1}}"), "1: found a merge key"),
        (with("1: x"), "1: found a key that is not text"),
        (with("? [a]\n: x"), "1: found a key that is not text"),
        (with("a_unencrypted: !!int x"), "1: found a value that does not fit its tag"),
        (format!("{good}---\n- 1\n"), "found a document that is not a map"),
    ];
    for (text, expect) in cases {
        let error = refused(&text);
        assert!(error.contains(expect) && error.contains("which SOPS does not write"), "{error}");
    }
    let braces = "{\"a_unencrypted\": 1, \"sops\": {\"mac\": \"x\"}}";
    assert!(refused(braces).contains("found a document of YAML in braces"), "{}", refused(braces));
    let broken = good.replace("data:", "data: [");
    assert!(refused(&broken).contains("the encrypted file cannot be read"), "{}", refused(&broken));
}

#[test]
fn files_are_bounded() {
    let many: Vec<Tree> = (0..=MAX_ENCRYPTED_VALUES).map(|_| text("x")).collect();
    let file = encryption::encrypt(&[map(&[("list", Tree::List(many))])], Format::Json, &options());
    let error = decrypted("f.json", file.as_bytes(), Format::Json).expect_err("has too many values");
    assert_eq!(error, "f.json:10003: found more than 10000 encrypted values in one file");
    let large = format!("{}{}", self::file(), "#".repeat(MAX_FILE_BYTES));
    let error = decrypted("f", large.as_bytes(), Format::Yaml).expect_err("is large");
    assert!(error.ends_with("bytes; at most 5242880 are decrypted"), "{error}");
    let sealed = |key: &str| {
        let file = encryption::encrypt(&[map(&[(key, text("x"))])], Format::Json, &options());
        decrypted("f.json", file.as_bytes(), Format::Json)
    };
    assert!(sealed(&"k".repeat(MAX_PATH_BYTES - 1)).is_ok());
    let error = sealed(&"k".repeat(MAX_PATH_BYTES)).expect_err("has a long path");
    assert_eq!(error, "f.json:2: found more than 16384 bytes in the keys of one path");
    let refused = |format, text: String| decrypted("f", text.as_bytes(), format).expect_err("is too much");
    let values = format!("{{\"a\": [{}1], \"sops\": \"{MARK}\"}}", "1,".repeat(MAX_VALUES));
    let found = refused(Format::Json, values);
    assert_eq!(found, "f:1: the encrypted file cannot be read: there are more than 200000 values");
    let yaml = format!("sops:\n    mac: {MARK}\na: [{}1]\n", "1,".repeat(MAX_VALUES));
    let found = refused(Format::Yaml, yaml);
    assert_eq!(found, "f:3: the encrypted file cannot be read: found more than 200000 nodes in the file");
    for format in [Format::Dotenv, Format::Ini] {
        let found = refused(format, format!("{}sops_mac={MARK}", "\n".repeat(MAX_VALUES + 1)));
        assert_eq!(found, "f:200001: found more than 200000 lines");
    }
    let flat: String = (0..5000).map(|nth| format!("sops_mac{nth}=x\n")).collect();
    let found = refused(Format::Dotenv, format!("{flat}sops_mac={MARK}\n"));
    assert_eq!(found, "f:1: found more than 4000 fields of metadata");
}

#[test]
fn files_that_are_not_encrypted_are_left() {
    let cases = [
        ("a.yaml", "kind: ConfigMap\n"),
        ("values.yaml", "sops:\n    enabled: true\n"),
        ("chart.yaml", "# sops:\n{{ if .Values.sops }}\nsops: {{ .Values.x }}\n{{ end }}\n"),
        ("a.json", "{\"sops\": {\"enabled\": true}}"),
        ("a.env", "sops_enabled=true\n"),
        ("b.env", "# sops\nexport NAME\n"),
        ("b.ini", "[sops]\nNAME\n"),
        ("b.json", "{\"sops\": 1, // a comment\n}"),
        ("a.ini", "[sops]\nenabled = true\n"),
        ("a.bin", "{\"sops\": {\"mac\": \"x\"}, \"data\": \"x\", \"more\": 1}"),
        ("b.bin", "sops is a tool"),
    ];
    for (file, text) in cases {
        let found = read(file, text.as_bytes(), Format::of_path(file)).expect(file);
        assert!(found.is_none(), "{file}");
    }
    for file in ["a.yaml", "a.json", "a.env", "a.ini", "a.bin"] {
        let found = read(file, b"\xff sops: sops_", Format::of_path(file)).expect(file);
        assert!(found.is_none(), "{file}");
    }
}

#[test]
fn comments_are_authentic_or_refused() {
    let good = file();
    let sealed = |path: &str| seal(b" shop-note", "comment", path, &KEY);
    let at = |path: &str| good.replace("    password:", &format!("    #{}\n    password:", sealed(path)));
    let plain = |text: &str| {
        let plain = decrypted("f", text.as_bytes(), Format::Yaml).expect(text);
        String::from_utf8(plain).expect("is text")
    };
    assert!(plain(&at("data:")).contains("    # shop-note\n    password: shop-password\n"));
    // The comment of an outer level, which a formatter moved.
    assert!(plain(&at(":")).contains("    # shop-note\n"));
    let error = refused(&at("other:"));
    assert!(error.starts_with("app/secret.yaml:4: the comment cannot be decrypted"), "{error}");
    let damaged = at("data:").replace("type:comment", "type:com");
    assert!(refused(&damaged).contains("the comment is cut off or damaged"), "{}", refused(&damaged));
}

#[test]
fn keys_that_are_not_served_are_named() {
    let key = "    age:\n        - recipient: ssh-ed25519 AAAA\n          enc: x\n    lastmodified:";
    let file = file().replace("    lastmodified:", key);
    let read = read("f.yaml", file.as_bytes(), Format::Yaml).expect("reads").expect("is encrypted");
    let none: Result<_, _> = AgeIdentities::read("");
    assert!(none.is_err());
    assert_eq!(read.metadata().groups()[0].len(), 2);
    assert_eq!(read.metadata().threshold(), 1);
    let error = read.data_key(&[]).expect_err("has no key").to_string();
    assert!(error.contains("ssh-ed25519 AAAA (not here), OpenPGP key F00D (not here)"), "{error}");
    assert!(!error.contains(MODIFIED));
}
