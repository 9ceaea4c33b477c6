//! Folders as no git would write them, from a server that serves them all the same: names that climb, that are there twice or differ in
//! case alone, and links and submodules that lead to themselves.

use std::fs;
use std::process::Command;

use moorline::render::{RenderOptions, Rendered, render};
use moorline::tree::TreeEntry;
use moorline_test_support::git_bench::{Bench, look, soon};

/// Writes a folder as it is given, unchecked: mode, name and id of each entry.
fn folder(bench: &Bench, entries: &[(&str, &str, &str)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        let digits: Vec<u8> = id.bytes().map(|digit| (digit as char).to_digit(16).unwrap() as u8).collect();
        bytes.extend(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]));
    }
    object(bench, "tree", &bytes)
}

fn object(bench: &Bench, kind: &str, bytes: &[u8]) -> String {
    let file = bench.root.path().join("object");
    fs::write(&file, bytes).unwrap();
    git(bench, &["hash-object", "-t", kind, "-w", "--literally", &file.to_string_lossy()])
}

fn git(bench: &Bench, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(&bench.work.bare)
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.com")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn manifest(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n")
}

/// Returns the content of a folder: the names of the objects, or what is wrong with it.
async fn rendered(bench: &Bench, root: &str) -> Result<Vec<String>, String> {
    let commit = git(bench, &["commit-tree", root, "-m", "x"]);
    git(bench, &["update-ref", "refs/heads/main", &commit]);
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    let found = repository.read(&revision, &[""], soon()).await.map_err(|error| error.to_string())?;
    for (path, entry) in found.files.entries() {
        let climbs = path.split('/').any(|part| part == ".." || part.is_empty());
        assert!(!climbs || matches!(entry, TreeEntry::Unreadable { .. }), "{path}: {entry:?}");
    }
    match render(&found.files, &RenderOptions::default()) {
        Rendered::Complete(complete) => {
            Ok(complete.objects().iter().map(|object| object.id.name().to_owned()).collect())
        }
        Rendered::Incomplete(incomplete) => Err(format!("{incomplete:?}")),
    }
}

#[tokio::test]
async fn names_that_no_git_writes_make_no_complete_render() {
    let bench = Bench::new();
    let blob = |name: &str| object(&bench, "blob", manifest(name).as_bytes());
    let (good, evil) = (blob("good"), blob("evil"));
    let inner = folder(&bench, &[("100644", "evil.yaml", &evil)]);
    for name in ["..", ".", "", "a/b", "../b", "/etc"] {
        for (mode, id) in [("40000", &inner), ("100644", &evil), ("120000", &evil)] {
            let root = folder(&bench, &[(mode, name, id), ("100644", "good.yaml", &good)]);
            let found = rendered(&bench, &root).await;
            assert!(found.is_err(), "{mode} {name:?}: {found:?}");
        }
    }
}

#[tokio::test]
async fn a_name_that_is_there_twice_is_in_doubt() {
    let bench = Bench::new();
    let blob = |name: &str| object(&bench, "blob", manifest(name).as_bytes());
    let (one, other) = (blob("one"), blob("other"));
    let inner = folder(&bench, &[("100644", "c.yaml", &other)]);
    let twice = folder(&bench, &[("100644", "a.yaml", &one), ("100644", "a.yaml", &other)]);
    let both = folder(&bench, &[("100644", "a.yaml", &one), ("40000", "a.yaml", &inner)]);
    let folders = folder(&bench, &[("40000", "a", &inner), ("40000", "a", &inner)]);
    for root in [twice, both, folders] {
        let found = rendered(&bench, &root).await;
        assert!(found.is_err(), "{found:?}");
    }
    // Names that differ in case alone are two files, as Git has them.
    let cases = folder(&bench, &[("100644", "A.yaml", &one), ("100644", "a.yaml", &other)]);
    let mut found = rendered(&bench, &cases).await.unwrap();
    found.sort();
    assert_eq!(found, ["one", "other"]);
}

#[tokio::test]
async fn links_and_modules_that_lead_to_themselves_end() {
    let bench = Bench::new();
    let blob = |text: &str| object(&bench, "blob", text.as_bytes());
    let good = blob(&manifest("good"));
    let (here, above, itself, other) = (blob("."), blob(".."), blob("loop.yaml"), blob("b.yaml"));
    let back = blob("a.yaml");
    let commit = git(&bench, &["rev-parse", "refs/heads/main"]);
    let modules = blob("[submodule \"x\"]\n\tpath = m\n\turl = ./\n");
    for entries in [
        vec![("120000", "here", &*here), ("100644", "good.yaml", &good)],
        vec![("120000", "above", &*above), ("100644", "good.yaml", &good)],
        vec![("120000", "loop.yaml", &*itself), ("100644", "good.yaml", &good)],
        vec![("120000", "a.yaml", &*other), ("120000", "b.yaml", &back), ("100644", "good.yaml", &good)],
        vec![("100644", ".gitmodules", &*modules), ("100644", "good.yaml", &good), ("160000", "m", &commit)],
    ] {
        let root = folder(&bench, &entries);
        let begun = std::time::Instant::now();
        let found = rendered(&bench, &root).await;
        assert!(begun.elapsed().as_secs() < 10, "{entries:?}");
        println!("{:?}: {found:?}", entries[0].1);
        assert!(found.as_ref().is_err() || found.as_ref().is_ok_and(|all| all == &["good"]), "{found:?}");
    }
}
