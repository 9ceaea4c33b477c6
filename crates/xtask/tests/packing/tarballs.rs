//! The tarball of a target, its list of components, and the checksums.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::support::{TARGET, binary, done, folder, refused, word};

fn stem() -> String {
    format!("moorline-{}-{TARGET}", env!("CARGO_PKG_VERSION"))
}

fn pack(out: &Path) -> Option<()> {
    done(&["pack", "--target", TARGET, "--binary", word(binary()?), "--out", word(out)]);
    Some(())
}

#[test]
fn a_tarball_is_the_same_each_time_and_has_all_that_a_user_needs() {
    let (one, two) = (folder("tarball-one"), folder("tarball-two"));
    let (Some(()), Some(())) = (pack(&one), pack(&two)) else { return };
    for name in [format!("{}.tar.gz", stem()), format!("{}.cdx.json", stem()), "SHA256SUMS".into()] {
        let read =
            |folder: &Path| fs::read(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(read(&one) == read(&two), "{name} differs");
    }

    let file = fs::File::open(one.join(format!("{}.tar.gz", stem()))).expect("the tarball");
    let mut names = BTreeSet::new();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    for entry in archive.entries().expect("entries") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").display().to_string();
        let name =
            path.strip_prefix(&format!("{}/", stem())).expect("everything is in one folder").to_owned();
        let mut text = Vec::new();
        entry.read_to_end(&mut text).expect("content");
        match &*name {
            "THIRD-PARTY-LICENSES.txt" => {
                let text = String::from_utf8(text).expect("text");
                for part in [
                    "libgit2-sys",
                    "kube-client",
                    "GNU GENERAL PUBLIC LICENSE",
                    "Permission is hereby granted",
                ] {
                    assert!(text.contains(part), "the licences do not have {part}");
                }
                assert!(!text.contains("moorline-core"), "the licences list a crate of this repository");
            }
            "completions/moorline.bash" => assert!(String::from_utf8_lossy(&text).contains("complete -F")),
            _ => {}
        }
        names.insert(name);
    }
    for name in ["LICENSE", "README.md", "completions/_moorline", "completions/moorline.fish", "moorline"] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }

    let components = fs::read(one.join(format!("{}.cdx.json", stem()))).expect("the list of components");
    let components: Value = serde_json::from_slice(&components).expect("JSON");
    assert_eq!((&components["bomFormat"], &components["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let list = components["components"].as_array().expect("a list");
    let git = list.iter().find(|component| component["name"] == "git2").expect("git2 is in the program");
    assert_eq!(git["hashes"][0]["content"].as_str().map(str::len), Some(64), "{git}");
    assert!(!list.iter().any(|component| component["name"] == "proptest"), "a crate of the tests is listed");
    let listed: BTreeSet<Option<&str>> = list.iter().map(|component| component["bom-ref"].as_str()).collect();
    assert_eq!(listed.len(), list.len(), "a component is listed twice");
}

#[test]
fn what_was_changed_after_packing_is_refused() {
    let out = folder("tampered");
    let Some(()) = pack(&out) else { return };
    assert!(done(&["verify", word(&out)]).contains("2 files"));
    let tarball = out.join(format!("{}.tar.gz", stem()));
    let mut bytes = fs::read(&tarball).expect("the tarball");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&tarball, bytes).expect("a changed tarball");
    let (code, reason) = refused(&["verify", word(&out)]);
    assert_eq!(code, 1);
    assert!(reason.contains(&format!("{}.tar.gz: its checksum is", stem())), "{reason}");
}

#[test]
fn a_binary_of_another_machine_and_an_unknown_target_are_refused() {
    let out = folder("other-machine");
    let Some(binary) = binary() else { return };
    let other = if cfg!(target_arch = "aarch64") {
        "x86_64-unknown-linux-musl"
    } else {
        "aarch64-unknown-linux-musl"
    };
    let (_, reason) = refused(&["pack", "--target", other, "--binary", word(binary), "--out", word(&out)]);
    assert!(reason.contains("the program is for another machine"), "{reason}");
    let (code, reason) =
        refused(&["pack", "--target", "sparc", "--binary", word(binary), "--out", word(&out)]);
    assert_eq!(code, 64);
    assert!(reason.contains("sparc is no target of a release"), "{reason}");
    let (_, reason) = refused(&["image", "--without-helm", "--binary", &format!("{other}={}", word(binary))]);
    assert!(reason.contains("the program is for another machine"), "{reason}");
}
