//! The table of kinds, made of the server's discovery document, and read for the addresses of the cases.
//!
//! In: an `APIGroupDiscoveryList`. Out: a line a group and a line a kind, as `crates/sandbox/src/kinds/builtin.rs` reads them.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::Value;

/// Group, kind, plural, and whether it has namespaces.
type Address = (String, String, String, bool);

/// The kinds of the committed table.
pub(crate) static KINDS: LazyLock<Vec<Address>> = LazyLock::new(|| {
    let (mut kinds, mut group) = (Vec::new(), "");
    for line in include_str!("../../../crates/sandbox/src/kinds/kubernetes.txt").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[0] {
            "group" => group = if words[1] == "core" { "" } else { words[1] },
            plural => kinds.push((group.to_owned(), words[2].to_owned(), plural.to_owned(), words[3] == "n")),
        }
    }
    kinds
});

/// The table of the groups in a discovery document.
pub(crate) fn table(discovery: &Value) -> String {
    let mut text = String::new();
    for group in discovery["items"].as_array().expect("groups") {
        let name = group["metadata"]["name"].as_str().filter(|it| !it.is_empty()).unwrap_or("core");
        let versions = group["versions"].as_array().expect("versions");
        let names: Vec<_> = versions.iter().filter_map(|it| it["version"].as_str()).collect();
        let tables: Vec<_> = versions.iter().map(|it| resources(&it["resources"])).collect();
        // One line for all versions says that they do not differ.
        assert!(tables.iter().all(|it| *it == tables[0]), "the versions of {name} differ");
        let _ = write!(text, "group {name} {}\n{}", names.join(","), tables[0]);
    }
    text
}

fn resources(resources: &Value) -> String {
    let mut text = String::new();
    for it in resources.as_array().expect("resources") {
        let word = |field: &str| it[field].as_str().unwrap_or("-").to_owned();
        let scope = if it["scope"] == "Namespaced" { "n" } else { "c" };
        let mut words =
            vec![word("resource"), word("singularResource"), kind(&it["responseKind"]), scope.to_owned()];
        words.extend([joined(&it["shortNames"]), joined(&it["categories"]), verbs(&it["verbs"])]);
        for sub in it["subresources"].as_array().into_iter().flatten() {
            let name = sub["subresource"].as_str().unwrap_or_default();
            words.push(format!("{name}={}:{}", kind(&sub["responseKind"]), verbs(&sub["verbs"])));
        }
        let _ = writeln!(text, "  {}", words.join(" "));
    }
    text
}

fn kind(it: &Value) -> String {
    let part = |field: &str| it[field].as_str().unwrap_or_default();
    match (part("group"), part("version")) {
        ("", "") => part("kind").to_owned(),
        (group, version) => format!("{group}/{version}/{}", part("kind")),
    }
}

fn joined(list: &Value) -> String {
    let words: Vec<_> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}

/// A letter for each, in the order of their names; a star for all eight.
fn verbs(list: &Value) -> String {
    let mut names: Vec<_> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    names.sort_unstable();
    let letters: String = names
        .iter()
        .map(|it| if *it == "deletecollection" { 'x' } else { it.chars().next().unwrap_or('?') })
        .collect();
    if letters.len() == 8 { "*".to_owned() } else { letters }
}
