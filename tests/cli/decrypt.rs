//! `--decrypt`: with which keys `render` and `plan` decrypt, and what they print.

use std::process::Command;

use moorline_test_support::command::Folder;
use moorline_test_support::sops::{AGE_KEYS, encrypt_yaml};
use serde_json::json;

pub(super) const PLANTED: &str = "hunter2-planted";

/// Runs a command with these variables and no other; returns its exit code and outputs.
pub(super) fn run(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
    command.args(arguments).current_dir(&folder.0).env_clear().envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn folder(name: &str) -> Folder {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": PLANTED}});
    let file = encrypt_yaml(&secret, &["stringData"], &AGE_KEYS[0].metadata());
    let [one, two] = AGE_KEYS.map(|key| format!("# a key\n{}\n", key.identity));
    Folder::new(
        name,
        &[
            ("app/login.yaml", file.as_bytes()),
            ("keys.txt", one.as_bytes()),
            ("other.txt", two.as_bytes()),
            ("home/.config/sops/age/keys.txt", one.as_bytes()),
            ("live/none.txt", b""),
        ],
    )
}

#[test]
fn nothing_is_decrypted_without_the_flag_and_a_key() {
    let folder = folder("decrypt-refused");
    let (code, data, words) = run(&folder, &["render", "app"], &[("SOPS_AGE_KEY_FILE", "keys.txt")]);
    assert_eq!((code, data.as_str()), (1, ""));
    assert!(words.contains("app/login.yaml:") && words.contains("--decrypt"), "{words}");
    let (code, _, words) = run(&folder, &["render", "app", "--decrypt"], &[("HOME", "/nowhere")]);
    assert!(code == 1 && words.contains("--decrypt: there is no key; set SOPS_AGE_KEY_FILE"), "{words}");
    let (code, _, words) =
        run(&folder, &["render", "app", "--decrypt"], &[("SOPS_AGE_KEY_FILE", "other.txt")]);
    assert!(code == 1 && words.contains("no key here opens this file"), "{words}");
    let (code, _, words) = run(&folder, &["render", "app", "--decrypt"], &[("SOPS_AGE_KEY", "hunter2")]);
    assert!(code == 1 && words.contains("SOPS_AGE_KEY: line 1:") && !words.contains("hunter2"), "{words}");
}

#[test]
fn render_prints_decrypted_values_and_plan_does_not() {
    let folder = folder("decrypt-printed");
    for variables in [
        ("SOPS_AGE_KEY_FILE", "keys.txt"),
        ("SOPS_AGE_KEY", AGE_KEYS[0].identity),
        ("HOME", folder.0.join("home").to_str().unwrap()),
        ("XDG_CONFIG_HOME", folder.0.join("home/.config").to_str().unwrap()),
    ] {
        let (code, data, words) = run(&folder, &["render", "app", "--decrypt"], &[variables]);
        assert!(code == 0 && data.contains(PLANTED) && words.is_empty(), "{variables:?} {data} {words}");
    }
    let plan = ["plan", "app", "--against", "live", "--decrypt", "--show-all"];
    for more in [&[][..], &["--output", "json"]] {
        let (code, data, words) =
            run(&folder, &[&plan[..], more].concat(), &[("SOPS_AGE_KEY_FILE", "keys.txt")]);
        assert_eq!(code, 2, "{words}");
        assert!(data.contains("login") && !data.contains(PLANTED), "{data}");
    }
}
