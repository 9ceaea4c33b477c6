//! Options over a kustomization: where they apply, what is refused, and the field that a message names.

use std::sync::Arc;

use moorline::desired::{Scopes, build_desired_set};
use moorline::kustomize::{ImageOption, KustomizeOptions, PatchOption, PatchTarget};
use moorline::render::{
    Glob, PlainOptions, RenderOptions, Rendered, SourceType, explain_kustomization, missing_inputs, render,
};
use moorline::tree::{FileTree, TreeEntry};

use super::render::{config_map, outcome};

fn options(kustomize: KustomizeOptions) -> RenderOptions {
    let kustomize = KustomizeOptions { field: "spec.render.kustomize".into(), ..kustomize };
    RenderOptions { path: "app".into(), kustomize: Some(Arc::new(kustomize)), ..RenderOptions::default() }
}

fn none() -> RenderOptions {
    options(KustomizeOptions::default())
}

/// Checks the lines of a render of the folder `app`: objects, skipped files, problems.
fn check(options: &RenderOptions, files: &[(&str, &str)], expect: &[&str]) {
    let rendered = render(&FileTree::from_texts(files.iter().copied()), options);
    let text = outcome(&rendered);
    assert_eq!(text.lines().collect::<Vec<_>>(), expect, "{files:?}");
}

fn patches(patches: &[(&str, Option<&str>)]) -> RenderOptions {
    let target = |kind: &str| PatchTarget { kind: kind.to_owned(), ..PatchTarget::default() };
    let one = |(patch, kind): &(&str, Option<&str>)| PatchOption {
        patch: (*patch).to_owned(),
        target: kind.map(target),
    };
    options(KustomizeOptions { patches: patches.iter().map(one).collect(), ..KustomizeOptions::default() })
}

#[test]
fn a_message_names_the_option() {
    let map = config_map("a");
    let files = [("app/a.yaml", map.as_str())];
    let sound = ("- {op: add, path: /data, value: {}}", Some("ConfigMap"));
    let merge = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (patch, expect) in [
        (("kind: [", None), "KustomizeInvalid spec.render.kustomize.patches[2]:1:8: "),
        (
            ("- {op: remove, path: /a}", None),
            "KustomizeInvalid spec.render.kustomize.patches[2]: a JSON patch needs a target",
        ),
        (
            ("- {op: remove, path: /absent}", Some("ConfigMap")),
            "KustomizeInvalid spec.render.kustomize.patches[2]: ",
        ),
        (
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n", None),
            "KustomizeInvalid spec.render.kustomize.patches[2]: no object is ConfigMap other (v1), which the patch changes",
        ),
        ((merge, Some("[")), "KustomizeInvalid spec.render.kustomize.patches[2].target: "),
    ] {
        let rendered = render(&FileTree::from_texts(files), &patches(&[sound, sound, patch]));
        let text = outcome(&rendered);
        assert!(text.starts_with(expect), "{patch:?}: {text}");
    }
    let of =
        |kustomize: KustomizeOptions| outcome(&render(&FileTree::from_texts(files), &options(kustomize)));
    let image = ImageOption { name: "(".into(), new_tag: "2".into(), ..ImageOption::default() };
    let text = of(KustomizeOptions { images: vec![image], ..KustomizeOptions::default() });
    assert!(text.starts_with("KustomizeInvalid spec.render.kustomize.images[0]: "), "{text}");
    for (path, expect) in [
        (
            "../absent",
            "KustomizeInvalid spec.render.kustomize.components[0]: there is no file or folder absent",
        ),
        (
            "../../out",
            "KustomizeInvalid spec.render.kustomize.components[0]: ../../out is outside of the repository",
        ),
        ("..", "KustomizeInvalid spec.render.kustomize.components[0]: .. leads back"),
        (
            "https://example.com/group/repository",
            "KustomizeInvalid spec.render.kustomize.components[0]: the path of a component is relative",
        ),
    ] {
        let text = of(KustomizeOptions { components: vec![path.to_owned()], ..KustomizeOptions::default() });
        assert!(text.starts_with(expect), "{path}: {text}");
    }
}

#[test]
fn a_folder_that_is_no_kustomization_is_built_as_one_of_its_manifests() {
    let (map, other) = (config_map("a"), config_map("b"));
    let built = ("app/built/kustomization.yaml", "namePrefix: x-\nresources: [b.yaml]\n");
    let files = [
        ("app/a.yaml", map.as_str()),
        ("app/deep/b.json", r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "j"}}"#),
        ("app/values.yaml", "a: 1\n"),
        built,
        ("app/built/b.yaml", other.as_str()),
    ];
    let skipped = "skipped app/values.yaml: no document in it has an apiVersion or a kind";
    let whole = [
        "ConfigMap a at app/a.yaml:1",
        "ConfigMap x-b at app/built/b.yaml:1",
        "Secret j at app/deep/b.json:1",
        skipped,
    ];
    check(&none(), &files, &whole);
    let plain = |recurse: bool, include: &[&str], exclude: &[&str]| {
        let globs = |texts: &[&str]| texts.iter().map(|text| Glob::new(text).unwrap()).collect();
        let plain = PlainOptions { recurse, include: globs(include), exclude: globs(exclude) };
        RenderOptions { plain, ..none() }
    };
    check(&plain(false, &[], &[]), &files, &[whole[0], skipped]);
    check(&plain(true, &["**/*.json", "built/**"], &[]), &files, &whole[1..3]);
    check(&plain(true, &[], &["built", "*.yaml"]), &files, &whole[2..3]);
    let all_plain = RenderOptions { kind: SourceType::Plain, ..none() };
    let refused = "KustomizeUnsupported app/built/kustomization.yaml: a kustomization among plain manifests; set the path to its folder to build it, or exclude the file";
    check(&all_plain, &files, &[refused]);
    check(&all_plain, &files[..3], &[whole[0], whole[2], skipped]);
    let chosen = RenderOptions { kind: SourceType::Kustomize, ..none() };
    let lacks = "KustomizeInvalid app:1:1: app has no kustomization (one of kustomization.yaml, kustomization.yml, Kustomization)";
    check(&chosen, &files, &[lacks]);
}

#[test]
fn what_options_cannot_be_put_over_is_refused() {
    let map = config_map("a");
    let chart = [("app/Chart.yaml", "name: app\nversion: 1.0.0\n"), ("app/templates/a.yaml", map.as_str())];
    let refused = "KustomizeUnsupported app: this is a Helm chart, to which spec.render.kustomize does not apply; remove these options, or name the chart in a kustomization (helmCharts)";
    check(&none(), &chart, &[refused]);
    // A folder that is both is a kustomization once there are options over it.
    let both = [chart[0], ("app/a.yaml", map.as_str()), ("app/kustomization.yaml", "resources: [a.yaml]\n")];
    check(&none(), &both, &["ConfigMap a at app/a.yaml:1"]);
    let file = RenderOptions { path: "app/a.yaml".into(), ..none() };
    let refused = "KustomizeUnsupported app/a.yaml is a file, and spec.render.kustomize needs a folder; set the path to the folder, and name the file in render.plain.include";
    check(&file, &[("app/a.yaml", &map)], &[refused]);
    check(
        &none(),
        &[("other/a.yaml", &map)],
        &["PathMissing there is no app; check the spelling and the revision"],
    );
    let nothing = "NoManifests there is no manifest below app: files that end in .yaml, .yml or .json and hold an apiVersion and a kind are read";
    check(&none(), &[("app/notes.txt", "")], &[nothing]);
}

#[test]
fn an_unreadable_folder_is_never_left_out_of_a_generated_kustomization() {
    let map = config_map("a");
    let tree: FileTree = [
        ("app/a.yaml", TreeEntry::File(map.as_bytes().into())),
        ("app/closed", TreeEntry::Unreadable { folder: true, reason: "permission denied".into() }),
        ("app/link.yaml", TreeEntry::Link("../shared/b.yaml".into())),
        ("shared/b.yaml", TreeEntry::File(config_map("b").as_bytes().into())),
    ]
    .into_iter()
    .collect();
    assert_eq!(
        outcome(&render(&tree, &none())),
        "FileUnreadable app/closed cannot be read: permission denied\n"
    );
    let plain = PlainOptions { exclude: vec![Glob::new("closed").unwrap()], ..PlainOptions::default() };
    let text = outcome(&render(&tree, &RenderOptions { plain, ..none() }));
    assert_eq!(text, "ConfigMap a at app/a.yaml:1\nConfigMap b at shared/b.yaml:1\n");
}

#[test]
fn a_render_depends_on_what_the_options_name() {
    let map = config_map("a");
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [../more]\n";
    let whole = [
        ("app/a.yaml", map.as_str()),
        ("parts/tls/kustomization.yaml", component),
        ("parts/more/kustomization.yaml", "resources: [b.yaml]\n"),
        ("parts/more/b.yaml", &config_map("b")),
    ];
    let with =
        options(KustomizeOptions { components: vec!["../parts/tls".into()], ..KustomizeOptions::default() });
    // Folders are found one after the other, as in a partial clone.
    let mut brought = vec!["app"];
    for expect in ["parts/tls", "parts/more"] {
        let there = whole.iter().filter(|(path, _)| brought.iter().any(|folder| path.starts_with(folder)));
        let tree =
            FileTree::from_texts(there.copied()).with_fetched(brought.iter().map(|path| (*path).into()));
        let missing = missing_inputs(&tree, &with);
        assert_eq!(missing.folders.iter().collect::<Vec<_>>(), [expect]);
        brought.push(expect);
    }
    let Rendered::Complete(complete) = render(&FileTree::from_texts(whole), &with) else {
        panic!("the folder is sound")
    };
    let read = complete.input_paths().unwrap();
    assert!(read.contains("app"), "a new file is a new resource: {read:?}");
    assert!(read.contains("parts/more/b.yaml"), "{read:?}");
}

#[test]
fn the_steps_of_an_object_name_the_options() {
    let map = config_map("a");
    let files =
        [("app/a.yaml", map.as_str()), ("app/kustomization.yaml", "namePrefix: a-\nresources: [a.yaml]\n")];
    let with = options(KustomizeOptions {
        name_prefix: "b-".into(),
        labels: [("team".to_owned(), "shop".to_owned())].into(),
        ..KustomizeOptions::default()
    });
    let told = explain_kustomization(&FileTree::from_texts(files), &with).unwrap();
    let [(id, steps)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(id.name(), "b-a");
    let steps: Vec<String> = steps.iter().map(|step| format!("{} at {}", step.name, step.place)).collect();
    let expect = [
        "resources (a.yaml) at app/kustomization.yaml:2:13",
        "namePrefix at spec.render.kustomize.namePrefix",
        "labels at spec.render.kustomize.labels",
    ];
    assert_eq!(steps, expect);
}

#[test]
fn a_namespace_is_left_out_of_cluster_scoped_objects_of_unknown_kinds() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
         spec: {group: example.com, scope: Cluster, names: {kind: Widget, plural: widgets}, versions: [{name: v1}]}\n";
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: elsewhere}\n";
    let files = [("app/crd.yaml", definition), ("app/widget.yaml", widget), ("app/map.yaml", map)];
    let ids = |options: &RenderOptions, files: &[(&str, &str)]| {
        let Rendered::Complete(complete) = render(&FileTree::from_texts(files.iter().copied()), options)
        else {
            panic!("the folder is sound")
        };
        let set = build_desired_set(complete, "default", &Scopes::builtin());
        set.map(|set| set.objects().iter().map(|object| object.id.to_string()).collect::<Vec<_>>())
    };
    let with = options(KustomizeOptions { namespace: "shop".into(), ..KustomizeOptions::default() });
    let found = ids(&with, &files).unwrap();
    let definition = "CustomResourceDefinition.apiextensions.k8s.io widgets.example.com";
    assert_eq!(found, ["ConfigMap shop/a", definition, "Widget.example.com a"]);
    // A namespace that Git itself writes stays an error.
    let written = widget.replace("{name: a}", "{name: a, namespace: other}");
    let files = [files[0], ("app/widget.yaml", written.as_str())];
    assert!(ids(&none(), &files).is_err());
}
