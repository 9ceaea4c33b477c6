//! `--decrypt` with keys of ssh, and with the keyring of GnuPG.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use moorline_test_support::command::Folder;
use moorline_test_support::programs;
use moorline_test_support::sops::{AGE_KEYS, DATA_KEY, encrypt_yaml};
use serde_json::{Value, json};

use crate::decrypt::{PLANTED, run};

const ED25519: [&str; 3] = [
    include_str!("../../crates/sops/tests/files/ssh/ed25519.key"),
    include_str!("../../crates/sops/tests/files/ssh/ed25519.pub"),
    include_str!("../../crates/sops/tests/files/ssh/ed25519.age"),
];
const RSA: [&str; 3] = [
    include_str!("../../crates/sops/tests/files/ssh/rsa.key"),
    include_str!("../../crates/sops/tests/files/ssh/rsa.pub"),
    include_str!("../../crates/sops/tests/files/ssh/rsa.age"),
];
const LOCKED: &str = include_str!("../../crates/sops/tests/files/ssh/locked.key");

/// A Secret in a file that is encrypted for these keys.
fn encrypted(name: &str, keys: &Value) -> String {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": PLANTED}});
    encrypt_yaml(&secret, &["stringData"], keys)
}

fn for_ssh([_, recipient, enc]: [&str; 3]) -> Value {
    json!({"age": [{"recipient": recipient.trim(), "enc": enc}]})
}

fn render(folder: &Folder, path: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
    run(folder, &["render", path, "--decrypt"], variables)
}

#[test]
fn ssh_keys_are_those_that_are_named_or_in_the_home_folder() {
    let folder = Folder::new(
        "decrypt-ssh",
        &[
            ("one/a.yaml", encrypted("a", &for_ssh(ED25519)).as_bytes()),
            ("two/b.yaml", encrypted("b", &for_ssh(RSA)).as_bytes()),
            ("keys/ed25519", ED25519[0].as_bytes()),
            ("keys/rsa", RSA[0].as_bytes()),
            ("home/.ssh/id_ed25519", ED25519[0].as_bytes()),
            ("home/.ssh/id_rsa", RSA[0].as_bytes()),
            ("half/.ssh/id_rsa", RSA[0].as_bytes()),
        ],
    );
    let path = |path: &str| folder.0.join(path).to_str().unwrap().to_owned();
    let (home, half) = (path("home"), path("half"));
    for (file, variable) in [
        ("one", ("SOPS_AGE_SSH_PRIVATE_KEY_FILE", "keys/ed25519")),
        ("two", ("SOPS_AGE_SSH_PRIVATE_KEY_FILE", "keys/rsa")),
        ("one", ("HOME", &home)),
        ("two", ("HOME", &home)),
        ("two", ("HOME", &half)),
    ] {
        let (code, data, words) = render(&folder, file, &[variable]);
        assert!(code == 0 && data.contains(PLANTED) && words.is_empty(), "{file} {variable:?} {words}");
    }
    // A key of another kind, and a named file in place of those of the home folder.
    let (code, data, words) = render(&folder, "one", &[("HOME", &half)]);
    assert!(
        code == 1 && data.is_empty() && words.contains("there is no ssh key; set SOPS_AGE_SSH"),
        "{words}"
    );
    let named = [("HOME", home.as_str()), ("SOPS_AGE_SSH_PRIVATE_KEY_FILE", "keys/rsa")];
    let (code, data, words) = render(&folder, "one", &named);
    assert!(code == 1 && data.is_empty() && words.contains("no key here opens this file"), "{words}");
}

#[test]
fn an_ssh_key_that_cannot_be_used_is_named_and_only_read_if_it_is_needed() {
    let folder = Folder::new(
        "decrypt-ssh-refused",
        &[
            ("one/a.yaml", encrypted("a", &for_ssh(ED25519)).as_bytes()),
            ("age/c.yaml", encrypted("c", &AGE_KEYS[0].metadata()).as_bytes()),
            ("locked", LOCKED.as_bytes()),
            ("words", b"hunter2"),
        ],
    );
    let named = |file| ("SOPS_AGE_SSH_PRIVATE_KEY_FILE", file);
    for (file, problem) in [
        ("locked", "locked: line 1: ssh keys with a passphrase are not served"),
        ("words", "words: line 1: this is not an identity of age"),
        ("nowhere", "nowhere: it cannot be read"),
    ] {
        let (code, data, words) = render(&folder, "one", &[named(file)]);
        assert!(code == 1 && data.is_empty() && words.contains(problem), "{file}: {words}");
        let quoted = LOCKED.lines().any(|line| words.contains(line)) || words.contains("hunter2");
        assert!(!quoted, "{file}: {words}");
        let identity = ("SOPS_AGE_KEY", AGE_KEYS[0].identity);
        let (code, data, words) = render(&folder, "age", &[named(file), identity]);
        assert!(code == 0 && data.contains(PLANTED), "{file}: {words}");
    }
}

/// A keyring of GnuPG with one key. Its agent ends with it.
struct Keyring {
    gpg: PathBuf,
    // The path of the agent's socket has to be short.
    home: tempfile::TempDir,
}

impl Keyring {
    fn new(gpg: &Path) -> Self {
        let keyring = Self { gpg: gpg.to_owned(), home: tempfile::tempdir().unwrap() };
        let key =
            ["--pinentry-mode", "loopback", "--passphrase", "", "--quick-gen-key", "shop", "future-default"];
        keyring.gpg(&key, b"");
        keyring
    }

    fn gpg(&self, arguments: &[&str], input: &[u8]) -> String {
        use std::io::Write as _;
        let mut command = programs::command(&self.gpg);
        command.env("GNUPGHOME", self.home.path()).args(["--batch", "--quiet", "--trust-model", "always"]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn fingerprint(&self) -> String {
        let list = self.gpg(&["--list-secret-keys", "--with-colons"], b"");
        let line = list.lines().find(|line| line.starts_with("fpr:")).unwrap();
        line.trim_end_matches(':').rsplit(':').next().unwrap().to_owned()
    }

    /// Metadata of a file that is encrypted for the key.
    fn metadata(&self) -> Value {
        let fingerprint = self.fingerprint();
        let enc = self.gpg(&["--armor", "--recipient", &fingerprint, "--encrypt"], &DATA_KEY);
        json!({"pgp": [{"fp": fingerprint, "enc": enc, "created_at": "2026-01-02T03:04:05Z"}]})
    }

    fn variable(&self) -> (&'static str, &str) {
        ("GNUPGHOME", self.home.path().to_str().unwrap())
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        let mut command = Command::new("gpgconf");
        let _ = command.args(["--kill", "all"]).env("GNUPGHOME", self.home.path()).status();
    }
}

#[test]
fn the_keyring_of_the_person_opens_what_is_for_its_key() {
    let Some(gpg) = programs::find("gpg") else { return };
    let (own, other) = (Keyring::new(&gpg), Keyring::new(&gpg));
    let keys = own.metadata();
    let both = json!({"age": AGE_KEYS[0].metadata()["age"], "pgp": keys["pgp"]});
    let folder = Folder::new(
        "decrypt-gpg",
        &[
            ("one/a.yaml", encrypted("a", &keys).as_bytes()),
            ("both/b.yaml", encrypted("b", &both).as_bytes()),
            ("live/none.txt", b""),
        ],
    );
    let program = ("SOPS_GPG_EXEC", gpg.to_str().unwrap());
    let path = ("PATH", gpg.parent().unwrap().to_str().unwrap());
    for variable in [program, path] {
        let (code, data, words) = render(&folder, "one", &[variable, own.variable()]);
        assert!(code == 0 && data.contains(PLANTED) && words.is_empty(), "{variable:?} {words}");
    }
    let plan = ["plan", "one", "--against", "live", "--decrypt", "--show-all"];
    let (code, data, words) = run(&folder, &plan, &[program, own.variable()]);
    assert!(code == 2 && data.contains("Secret default/a") && !data.contains(PLANTED), "{data} {words}");
    // Without the flag, and with the keyring of another person.
    let (code, data, _) = run(&folder, &["render", "one"], &[program, own.variable()]);
    assert_eq!((code, data.as_str()), (1, ""));
    let (code, data, words) = render(&folder, "one", &[program, other.variable()]);
    assert!(
        code == 1 && data.is_empty() && words.contains("does not decrypt it: the secret key is not there"),
        "{words}"
    );
    assert!(words.contains(&format!("OpenPGP key {}", own.fingerprint())), "{words}");
    // A key of age opens the file first, so the program is not needed.
    let identity = ("SOPS_AGE_KEY", AGE_KEYS[0].identity);
    let (code, data, words) = render(&folder, "both", &[identity, ("SOPS_GPG_EXEC", "/nowhere/gpg")]);
    assert!(code == 0 && data.contains(PLANTED), "{words}");
}

#[test]
fn a_missing_gpg_is_named_with_the_key_that_is_needed() {
    let fingerprint = "0123456789ABCDEF0123456789ABCDEF01234567";
    let keys = json!({"pgp": [{"fp": fingerprint, "enc": "-----BEGIN PGP MESSAGE-----"}]});
    let folder = Folder::new("decrypt-no-gpg", &[("one/a.yaml", encrypted("a", &keys).as_bytes())]);
    for (variable, program) in
        [(("PATH", "/nowhere"), "gpg"), (("SOPS_GPG_EXEC", "/nowhere/gpg2"), "/nowhere/gpg2")]
    {
        let (code, data, words) = render(&folder, "one", &[variable]);
        assert_eq!((code, data.as_str()), (1, ""));
        let expected =
            format!("OpenPGP key {fingerprint} (it needs the program {program} with the secret key");
        assert!(words.contains(&expected), "{words}");
    }
}

/// The program is started in one file, which only `--decrypt` of a command uses.
#[test]
fn the_daemon_has_no_way_to_gpg() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    list(&root.join("src"), &mut files);
    list(&root.join("crates"), &mut files);
    let with = |part: &str| {
        let has = |path: &&PathBuf| fs::read_to_string(path).unwrap().contains(part);
        let found =
            files.iter().filter(has).map(|path| path.strip_prefix(root).unwrap().display().to_string());
        let mut found: Vec<String> = found.collect();
        found.sort();
        found
    };
    assert_eq!(with("Gpg::new"), ["src/cli/gpg.rs", "src/cli/own_keys.rs"]);
    assert_eq!(with("decrypt_with_own_keys("), ["src/cli/manifests.rs", "src/cli/own_keys.rs"]);
    let manifests = fs::read_to_string(root.join("src/cli/manifests.rs")).unwrap();
    assert_eq!(manifests.matches("decrypt_with_own_keys(").count(), 1);
    assert!(manifests.contains("if selection.decrypt { decrypt_with_own_keys("));
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => list(&path, files),
            false if path.extension().is_some_and(|end| end == "rs") => files.push(path),
            false => {}
        }
    }
}
