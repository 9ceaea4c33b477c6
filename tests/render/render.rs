//! Plain directories: a literal file tree in, the objects, notes and problems out.

use std::fmt::Write;

use moorline::render::{Glob, PlainOptions, RenderOptions, Rendered, render};
use moorline::tree::{FileTree, TreeEntry};

/// A sound ConfigMap called `name`.
pub(super) fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

/// Returns the result of a render, a line each: objects with their places, skipped files, problems.
pub(super) fn outcome(rendered: &Rendered) -> String {
    let (objects, skipped, problems) = match rendered {
        Rendered::Complete(complete) => (complete.objects(), complete.skipped(), &[] as &[_]),
        Rendered::Incomplete(found) => (&found.objects[..], &found.skipped[..], &found.problems[..]),
    };
    let mut text = String::new();
    for object in objects {
        writeln!(text, "{} at {}", object.id, object.origin).unwrap();
    }
    for skipped in skipped {
        writeln!(text, "skipped {}: {}", skipped.file, skipped.reason).unwrap();
    }
    for problem in problems {
        writeln!(text, "{} {problem}", problem.reason()).unwrap();
    }
    text
}

fn check_with(options: &RenderOptions, files: &[(&str, &str)], expect: &[&str]) {
    let rendered = render(&FileTree::from_texts(files.iter().copied()), options);
    let expect: String = expect.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(outcome(&rendered), expect);
    let complete = !expect.lines().any(|line| line.contains("Invalid") || line.contains("Duplicate"));
    assert_eq!(matches!(rendered, Rendered::Complete(_)), complete && !expect.contains("No"), "{expect}");
}

fn check(files: &[(&str, &str)], expect: &[&str]) {
    check_with(&RenderOptions::default(), files, expect);
}

/// One document with this text below a sound head.
fn check_config_map(text: &str, expect: &[&str]) {
    check(&[("a.yaml", &format!("apiVersion: v1\nkind: ConfigMap\n{text}"))], expect);
}

#[test]
fn every_manifest_below_the_path_is_read_in_the_order_of_the_files() {
    let two = format!("# a comment\n---\n{}---\n# nothing\n---\n\n{}", config_map("x"), config_map("w"));
    check(
        &[
            ("b/two.yml", &two),
            ("a.json", r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "j"}}"#),
            ("README.md", "not read"),
            ("z.yaml", &config_map("z")),
        ],
        &[
            "Service j at a.json:1",
            "ConfigMap x at b/two.yml:3",
            "ConfigMap w at b/two.yml:11",
            "ConfigMap z at z.yaml:1",
        ],
    );
}

#[test]
fn files_are_chosen_by_folder_and_by_glob() {
    let text = config_map("a");
    let other = config_map("b");
    let files = [("app/a.yaml", text.as_str()), ("app/sub/b.yaml", &other), ("other/c.yaml", "kind: [")];
    let choose = |plain, expect: &[&str]| {
        check_with(&RenderOptions { path: "app".into(), plain, ..RenderOptions::default() }, &files, expect);
    };
    let glob = |text: &str| vec![Glob::new(text).unwrap()];
    let (a, b) = ("ConfigMap a at app/a.yaml:1", "ConfigMap b at app/sub/b.yaml:1");
    choose(PlainOptions::default(), &[a, b]);
    choose(PlainOptions { recurse: false, ..PlainOptions::default() }, &[a]);
    choose(PlainOptions { include: glob("*.yaml"), ..PlainOptions::default() }, &[a]);
    choose(PlainOptions { include: glob("**/*.yaml"), ..PlainOptions::default() }, &[a, b]);
    choose(PlainOptions { exclude: glob("sub/**"), ..PlainOptions::default() }, &[a]);
    check_with(&RenderOptions { path: "app/a.yaml".into(), ..RenderOptions::default() }, &files, &[a]);
}

#[test]
fn lists_are_flattened_and_typed_lists_say_what_their_items_are() {
    check(
        &[
            (
                "list.yaml",
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: d, namespace: shop}\n",
            ),
            (
                "typed.yaml",
                "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n",
            ),
            ("empty.yaml", "apiVersion: v1\nkind: List\n"),
            ("kind.yaml", "apiVersion: g.io/v1\nkind: AllowList\nmetadata: {name: l}\nspec: {items: []}\n"),
        ],
        &[
            "AllowList.g.io l at kind.yaml:1",
            "Secret s at list.yaml:1 (item 0)",
            "Deployment.apps shop/d at list.yaml:1 (item 1)",
            "ConfigMap a at typed.yaml:1 (item 0)",
            "ConfigMap b at typed.yaml:1 (item 1)",
        ],
    );
    check(
        &[(
            "l.yaml",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - metadata: {name: a}\n- kind: Pod\n",
        )],
        &[
            "ManifestInvalid l.yaml:6:3: a list within a list; move its items to the outer list or to separate documents",
            "ManifestInvalid l.yaml:8:3: the document has a kind but no apiVersion; add apiVersion, or move the document to a file without manifests",
        ],
    );
}

#[test]
fn documents_that_are_half_a_manifest_are_refused_and_files_without_any_are_skipped() {
    let map = config_map("a");
    check(
        &[
            ("a.yaml", &map),
            ("values.yaml", "replicas: 3\n---\nimage: x\n"),
            ("text.json", "[1, 2]"),
            ("empty.yaml", ""),
        ],
        &[
            "ConfigMap a at a.yaml:1",
            "skipped empty.yaml: no document in it has an apiVersion or a kind",
            "skipped text.json: no document in it has an apiVersion or a kind",
            "skipped values.yaml: no document in it has an apiVersion or a kind",
        ],
    );
    check(
        &[("a.yaml", &format!("{map}---\nkind: Pod\n---\napiVersion: v1\n---\nspec: {{}}\n---\n- 1\n"))],
        &[
            "ConfigMap a at a.yaml:1",
            "ManifestInvalid a.yaml:6:1: the document has a kind but no apiVersion; add apiVersion, or move the document to a file without manifests",
            "ManifestInvalid a.yaml:8:1: the document has an apiVersion but no kind; add kind, or move the document to a file without manifests",
            "ManifestInvalid a.yaml:10:1: the document has neither an apiVersion nor a kind; add both, or move the document to a file without manifests",
            "ManifestInvalid a.yaml:12:1: expected an object with apiVersion and kind, found a sequence",
        ],
    );
}

#[test]
fn one_object_is_written_once() {
    check(
        &[("a.yaml", &config_map("x")), ("b.yaml", &format!("# again\n{}", config_map("x")))],
        &[
            "ConfigMap x at a.yaml:1",
            "DuplicateObject b.yaml:2: ConfigMap x is written a second time; the first is at a.yaml:1; remove one",
        ],
    );
    // Two versions of a kind are one object.
    let of = |version: &str| format!("apiVersion: apps/{version}\nkind: Deployment\nmetadata: {{name: x}}\n");
    check(
        &[("a.yaml", &of("v1")), ("b.yaml", &of("v1beta1"))],
        &[
            "Deployment.apps x at a.yaml:1",
            "DuplicateObject b.yaml:1: Deployment.apps x is written a second time; the first is at a.yaml:1; remove one",
        ],
    );
}

#[test]
fn what_cannot_be_found_again_or_belongs_to_one_cluster_is_refused() {
    check_config_map(
        "metadata:\n  generateName: a-\n",
        &[
            "ManifestInvalid a.yaml:4:3: generateName makes a new object on every apply; write a metadata.name that Moorline can find again",
        ],
    );
    check_config_map(
        "metadata:\n  name: a\n  ownerReferences:\n  - {apiVersion: v1, kind: Pod, name: p, uid: '1'}\n",
        &[
            "ManifestInvalid a.yaml:5:3: ownerReferences identify an owner by its uid in one cluster, and the object is deleted when the owner is missing; remove them",
        ],
    );
    check_config_map("metadata: {name: a, ownerReferences: []}\n", &["ConfigMap a at a.yaml:1"]);
}

#[test]
fn heads_that_the_api_server_would_refuse_are_refused_here() {
    check_config_map(
        "metdata: {name: a}\n",
        &["ManifestInvalid a.yaml:1:1: the ConfigMap has no metadata; did you mean metdata to be metadata?"],
    );
    check_config_map(
        "metadata: {nmae: a}\n",
        &[
            "ManifestInvalid a.yaml:3:12: metadata has no field nmae; did you mean name?",
            "ManifestInvalid a.yaml:3:1: the ConfigMap has no metadata.name; did you mean nmae to be metadata.name?",
        ],
    );
    check_config_map(
        "metadata: {name: 1.20}\n",
        &["ManifestInvalid a.yaml:3:12: metadata.name must be a string, found a number; put it in quotes"],
    );
    check_config_map(
        "metadata: {name: My_Map}\n",
        &[
            "ManifestInvalid a.yaml:3:12: metadata.name \"My_Map\" must be at most 253 lower-case letters, digits, '-' and '.', and each part between dots must begin and end with a letter or digit",
        ],
    );
    check_config_map(
        "metadata: {name: a, namespace: Shop, lables: {}}\n",
        &[
            "ManifestInvalid a.yaml:3:38: metadata has no field lables; did you mean labels?",
            "ManifestInvalid a.yaml:3:21: metadata.namespace \"Shop\" must be at most 63 lower-case letters, digits and '-', and begin and end with a letter or digit",
        ],
    );
    check_config_map(
        "metadata:\n  name: a\n  labels:\n    version: 1.20\n    on: yes\n",
        &[
            "ManifestInvalid a.yaml:7:5: metadata.labels.true must be a string, found a boolean; put it in quotes",
            "ManifestInvalid a.yaml:6:5: metadata.labels.version must be a string, found a number; put it in quotes",
        ],
    );
    check(
        &[("a.yaml", "apiVersion: apps/v1/x\nkind: Deployment\nmetadata: {name: a}\n")],
        &[
            "ManifestInvalid a.yaml:1:1: apiVersion \"apps/v1/x\" must be a version such as v1, or a group and version such as apps/v1",
        ],
    );
}

#[test]
fn data_of_secrets_is_checked_and_never_shown() {
    check(
        &[(
            "s.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  good: cGxhbg==\n  bad: hunter2!\n  number: 5\nstringData:\n  port: 5432\n",
        )],
        &[
            "ManifestInvalid s.yaml:6:3: data.bad of the Secret must be base64; plain text belongs in stringData (the value is not shown)",
            "ManifestInvalid s.yaml:7:3: data.number of the Secret must be a string in base64; put it in quotes (the value is not shown)",
            "ManifestInvalid s.yaml:9:3: stringData.port of the Secret must be a string; put it in quotes (the value is not shown)",
        ],
    );
    let rendered = render(
        &FileTree::from_texts([(
            "s.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nsops: {mac: x}\n",
        )]),
        &RenderOptions::default(),
    );
    assert_eq!(
        outcome(&rendered),
        "Encrypted s.yaml:4:1: the file is encrypted with SOPS, and would be applied as ciphertext; name the Secret with its keys in spec.decryption.sops.secretRef, or use --decrypt on the command line\n"
    );
}

#[test]
fn a_folder_that_comes_to_nothing_is_not_an_empty_render() {
    let of = |path: &str, files: &[(&str, &str)]| {
        let options = RenderOptions { path: path.into(), ..RenderOptions::default() };
        outcome(&render(&FileTree::from_texts(files.iter().copied()), &options))
    };
    assert_eq!(
        of("app", &[("app/values.yaml", "a: 1")]),
        "skipped app/values.yaml: no document in it has an apiVersion or a kind\n\
         NoManifests there is no manifest below app: files that end in .yaml, .yml or .json and hold an apiVersion and a kind are read; skipped, because they have neither: app/values.yaml\n"
    );
    assert_eq!(
        of("ap", &[("app/a.yaml", "")]),
        "PathMissing there is no ap; check the spelling and the revision\n"
    );
    assert_eq!(
        of("../x", &[("app/a.yaml", "")]),
        "FileUnreadable ../x leads out of the tree (to ../x); links are followed only inside it\n"
    );
    assert_eq!(
        of("", &[("kustomization.yaml", "resources: []")]),
        "NoManifests the kustomization in the root of the repository has no objects; add resources to it\n"
    );
    assert_eq!(
        of("", &[("app/kustomization.yaml", "resources: []")]),
        "KustomizeUnsupported app/kustomization.yaml: a kustomization among plain manifests; set the path to its folder to build it, or exclude the file\n"
    );
}

#[test]
fn links_are_followed_inside_the_tree_and_refused_out_of_it() {
    let text = config_map("a");
    let file = |text: &str| TreeEntry::File(text.as_bytes().into());
    let tree: FileTree = [
        ("base/a.yaml", file(&text)),
        ("app/a.yaml", TreeEntry::Link("../base/a.yaml".into())),
        ("app/out.yaml", TreeEntry::Link("../../etc/secret.yaml".into())),
        ("app/abs.yaml", TreeEntry::Link("/etc/secret.yaml".into())),
        ("app/big.yaml", TreeEntry::TooLarge(100_000_000)),
    ]
    .into_iter()
    .collect();
    let options = RenderOptions { path: "app".into(), ..RenderOptions::default() };
    assert_eq!(
        outcome(&render(&tree, &options)),
        "ConfigMap a at app/a.yaml:1\n\
         FileUnreadable app/abs.yaml leads out of the tree (to /etc/secret.yaml); links are followed only inside it\n\
         FileUnreadable app/big.yaml has 100000000 bytes; a file may have at most 33554432; split it or leave it out\n\
         FileUnreadable app/out.yaml leads out of the tree (to ../../etc/secret.yaml); links are followed only inside it\n"
    );
}

#[test]
fn a_link_to_a_folder_is_named_and_not_followed() {
    let text = config_map("a");
    let tree: FileTree =
        [("web/a.yaml", TreeEntry::File(text.as_bytes().into())), ("base", TreeEntry::Link("web".into()))]
            .into_iter()
            .collect();
    assert_eq!(
        outcome(&render(&tree, &RenderOptions::default())),
        "ConfigMap a at web/a.yaml:1\nskipped base: it is a link to a folder; name the folder itself\n"
    );
}

#[test]
fn fields_that_a_kind_does_not_have_are_refused_where_they_are_known() {
    let of = |text: &str, expect: &[&str]| check(&[("a.yaml", text)], expect);
    of(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringdata: {a: b}\n",
        &["ManifestInvalid a.yaml:4:1: the Secret has no field stringdata; did you mean stringData?"],
    );
    of(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspecs: {}\n",
        &["ManifestInvalid a.yaml:4:1: the Deployment has no field specs; did you mean spec?"],
    );
    of(
        "apiVersion: g.io/v1\nkind: Secret\nmetadata: {name: a}\nanything: {}\n",
        &["Secret.g.io a at a.yaml:1"],
    );
    // Made to be applied encrypted.
    of(
        "apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata: {name: a}\nsops: {mac: x}\n",
        &["SopsSecret.isindir.github.com a at a.yaml:1"],
    );
}

#[test]
fn a_file_full_of_mistakes_is_not_read_for_each_of_them() {
    for item in ["- kind: X\n", "- 1\n"] {
        let text = "apiVersion: v1\nkind: List\nitems:\n".to_owned() + &item.repeat(10_000);
        let rendered = render(&FileTree::from_texts([("l.yaml", text.as_str())]), &RenderOptions::default());
        let Rendered::Incomplete(found) = rendered else { panic!("ten thousand mistakes are a problem") };
        assert_eq!(found.problems.len(), 20);
    }
}
