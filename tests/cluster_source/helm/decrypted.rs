//! Values of encrypted files for helm: they are in memory alone, in no cache on disk and in no message.

use std::path::Path;

use moorline::helm::{Helm, IsolationLevel};
use moorline::render::helm::{Capabilities, HelmOptions};
use moorline::render::{RenderOptions, Rendered};
use moorline::tree::{DecryptedBytes, FileTree, TreeEntry};

use crate::helm::script;

const PLANTED: &str = "hunter2-planted";

fn tree(values: TreeEntry) -> FileTree {
    let chart = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
    [("chart/Chart.yaml", TreeEntry::File(chart.as_bytes().into())), ("values.yaml", values)]
        .into_iter()
        .collect()
}

fn options() -> RenderOptions {
    let helm = HelmOptions { values_files: vec!["/values.yaml".to_owned()], ..HelmOptions::default() };
    RenderOptions { path: "chart".into(), helm, ..RenderOptions::default() }
}

/// A helm of these lines, with a cache on disk.
fn helm_of(folder: &Path, lines: &str) -> Helm {
    let helm =
        Helm::with_disk_cache(script(folder, lines), env!("CARGO_BIN_EXE_moorline"), folder.join("work"));
    helm.with_isolation(IsolationLevel::BestEffort)
}

/// The texts of all files below a folder.
fn texts(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(texts(&path)),
            path => found.push(std::fs::read(path).unwrap()),
        }
    }
    found
}

const PRINTS: &str = "read -r line < values/0.yaml
printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: a}\\ndata: {place: \"%s\", key: \"%s\"}\\n' \"$PWD\" \"$line\"";

#[tokio::test]
async fn decrypted_values_are_in_memory_alone() {
    let folder = tempfile::tempdir().unwrap();
    let helm = helm_of(folder.path(), PRINTS);
    let ask =
        async |values: TreeEntry| match helm.render(tree(values), options(), Capabilities::default()).await {
            Ok(Rendered::Complete(complete)) => {
                let object = complete.objects()[0].object();
                let text = |field: &str| object.body["data"][field].as_str().unwrap().to_owned();
                (complete.objects()[0].contains_secret, text("place"), text("key"))
            }
            other => panic!("{other:?}"),
        };
    let (secret, place, key) = ask(TreeEntry::Decrypted(DecryptedBytes::new(PLANTED.as_bytes()))).await;
    assert!(secret && key == PLANTED && place.starts_with("/dev/shm/moorline-"), "{secret} {place} {key}");
    assert!(!Path::new(&place).exists(), "the folder is removed");
    assert!(texts(&folder.path().join("work")).is_empty(), "nothing is in the cache on disk");
    // Without such values it is as it always was.
    let (secret, place, _) = ask(TreeEntry::File(b"open".as_slice().into())).await;
    assert!(!secret && place.starts_with(folder.path().to_str().unwrap()), "{secret} {place}");
    assert_eq!(texts(&folder.path().join("work")).len(), 1);
}

#[tokio::test]
async fn a_message_that_may_quote_a_decrypted_value_is_not_shown() {
    for lines in [
        "read -r line < values/0.yaml; echo \"Error: $line\" >&2; exit 1",
        "read -r line < values/0.yaml; echo \"panic: $line\" >&2; exit 2",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let helm = helm_of(folder.path(), lines);
        let values = TreeEntry::Decrypted(DecryptedBytes::new(PLANTED.as_bytes()));
        let failure = helm.render(tree(values), options(), Capabilities::default()).await.unwrap_err();
        assert!(!failure.to_string().contains(PLANTED), "{failure}");
    }
}

#[tokio::test]
async fn a_values_file_that_stays_encrypted_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let helm = helm_of(folder.path(), PRINTS);
    let ask =
        async |values: TreeEntry| match helm.render(tree(values), options(), Capabilities::default()).await {
            Ok(Rendered::Incomplete(incomplete)) => incomplete.problems[0].to_string(),
            other => panic!("{other:?}"),
        };
    let error = "values.yaml:3: no key here opens this file".to_owned();
    let closed = TreeEntry::Encrypted { bytes: b"sops".as_slice().into(), error: error.clone().into() };
    assert_eq!(ask(closed).await, error);
    let text = "a: ENC[AES256_GCM,data:x]\nsops:\n  mac: x\n";
    let told = ask(TreeEntry::File(text.as_bytes().into())).await;
    assert!(told.starts_with("values.yaml:2:1: the file is encrypted with SOPS"), "{told}");
}
