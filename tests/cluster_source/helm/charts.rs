//! Charts of our own, each compared with what the real helm prints for the same files.

use std::path::Path;
use std::sync::Arc;

use moorline::helm::{Helm, IsolationLevel};
use moorline::object::Object;
use moorline::render::helm::Capabilities;
use moorline::render::{HelmOptions, RenderOptions, Rendered, SourceType, render};
use moorline::tree::{FileTree, TreeEntry};
use moorline::yaml::{self, Dialect};
use serde_json::{Map, Value, json};

use super::{helm_of, objects, script};
use moorline_test_support::programs::{command, find, run};

/// A path and a text.
pub(super) type File = (&'static str, &'static str);

pub(super) const CHART: File = ("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
pub(super) const WEB: File = (
    "chart/templates/web.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-web\n  labels: {release: {{ .Release.Service }}}\ndata:\n  \
        color: {{ .Values.color | quote }}\n  size: {{ .Values.size | quote }}\n  namespace: {{ .Release.Namespace }}\n  \
        first: \"{{ .Release.IsInstall }}\"\n",
);
const VALUES: File = ("chart/values.yaml", "color: red\nsize: 1\n");

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(super) fn options(helm: HelmOptions) -> RenderOptions {
    RenderOptions { path: "chart".into(), helm, ..RenderOptions::default() }
}

/// Helm itself, in a folder with the same files.
fn asked(program: &Path, files: &[(&str, Vec<u8>)], arguments: &[&str]) -> Result<Vec<Value>, String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let place = folder.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, bytes).unwrap();
    }
    let mut helm = command(program);
    helm.current_dir(folder.path()).env("HOME", folder.path()).args(["template"]).args(arguments);
    let printed = run(&mut helm)?;
    let documents =
        yaml::read("helm", printed.as_bytes(), Dialect::Kubectl).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

/// Compares a chart with helm; `arguments` are what a person would type.
pub(super) async fn check(what: &str, files: &[File], helm: HelmOptions, arguments: &[&str]) -> Vec<Object> {
    let owned: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(path, text)| (*path, text.as_bytes().to_vec())).collect();
    check_bytes(what, &owned, helm, arguments, Capabilities::default()).await
}

async fn check_bytes(
    what: &str,
    files: &[(&str, Vec<u8>)],
    helm: HelmOptions,
    arguments: &[&str],
    server: Capabilities,
) -> Vec<Object> {
    let Some(program) = find("helm") else { return Vec::new() };
    let tree: FileTree =
        files.iter().map(|(path, bytes)| (*path, TreeEntry::File(bytes.as_slice().into()))).collect();
    let theirs = asked(&program, files, arguments).unwrap();
    let (runner, _folder) = helm_of(&program);
    let ours = objects(&runner, &tree, options(helm), server)
        .await
        .unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    let bodies: Vec<Value> = ours.iter().map(|object| Value::Object(object.body.clone())).collect();
    assert_eq!(bodies, theirs, "{what}");
    assert!(!theirs.is_empty(), "{what}");
    ours
}

const PLAIN: [&str; 6] = ["default", "chart", "--namespace", "default", "--include-crds", "--skip-tests"];

#[tokio::test]
async fn values_count_in_their_order() {
    let files = [
        CHART,
        WEB,
        VALUES,
        ("chart/prod.yaml", "color: green\nsize: 2\n"),
        ("values/all.yaml", "size: 3\n"),
    ];
    check("the chart's own", &files, HelmOptions::default(), &PLAIN).await;
    let helm = HelmOptions {
        release: "front".into(),
        namespace: "shop".into(),
        values_files: vec!["prod.yaml".into(), "../values/all.yaml".into()],
        values: map(json!({"color": "blue"})),
        ..HelmOptions::default()
    };
    let typed = [
        "front",
        "chart",
        "--namespace",
        "shop",
        "--include-crds",
        "--skip-tests",
        "--values",
        "chart/prod.yaml",
        "--values",
        "values/all.yaml",
        "--set",
        "color=blue",
    ];
    let ours = check("of three places", &files, helm.clone(), &typed).await;
    for object in ours.iter().filter(|object| object.id.name() == "front-web") {
        assert_eq!(
            object.body["data"],
            json!({"color": "blue", "size": "3", "namespace": "shop", "first": "true"})
        );
        assert_eq!(&*object.origin.file, "chart/templates/web.yaml (as helm template prints it)");
    }
    let rooted =
        HelmOptions { values_files: vec!["/chart/prod.yaml".into(), "/values/all.yaml".into()], ..helm };
    check("named from the root", &files, rooted, &typed).await;
}

const DB: [File; 4] = [
    ("chart/charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n"),
    ("chart/charts/db/values.yaml", "size: 5\n"),
    (
        "chart/charts/db/templates/db.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-{{ .Chart.Name }}\"}\ndata:\n  size: {{ .Values.size | quote }}\n  zone: {{ .Values.global.zone | quote }}\n",
    ),
    ("chart/charts/db/templates/NOTES.txt", "words"),
];

#[tokio::test]
async fn charts_within_charts_are_those_of_the_repository() {
    let parent = (
        "chart/Chart.yaml",
        "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies:\n- {name: db, version: 0.1.0, repository: \"https://charts.example.com\"}\n\
            - {name: db, version: 0.1.0, repository: \"https://charts.example.com\", alias: spare, condition: spare.enabled}\n",
    );
    let values =
        ("chart/values.yaml", "color: red\nsize: 1\nglobal: {zone: a}\nspare: {enabled: false, size: 7}\n");
    let files = [&[parent, WEB, values], &DB[..]].concat();
    let ours = check("a folder", &files, HelmOptions::default(), &PLAIN).await;
    let places: Vec<&str> = ours.iter().map(|object| &*object.origin.file).collect();
    assert!(places.is_empty() || places[0].starts_with("chart/charts/db/templates/db.yaml"), "{places:?}");
    let on = HelmOptions { values: map(json!({"spare": {"enabled": true}})), ..HelmOptions::default() };
    check("a second time", &files, on, &[&PLAIN[..], &["--set", "spare.enabled=true"]].concat()).await;

    // As an archive, which helm itself makes.
    let Some(program) = find("helm") else { return };
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in DB {
        let place = folder.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }
    let mut helm = command(&program);
    helm.current_dir(folder.path()).env("HOME", folder.path()).args(["package", "chart/charts/db"]);
    run(&mut helm).unwrap();
    let archive = std::fs::read(folder.path().join("db-0.1.0.tgz")).unwrap();
    let files: Vec<(&str, Vec<u8>)> = [parent, WEB, values]
        .iter()
        .map(|(path, text)| (*path, text.as_bytes().to_vec()))
        .chain([("chart/charts/db-0.1.0.tgz", archive)])
        .collect();
    check_bytes("an archive", &files, HelmOptions::default(), &PLAIN, Capabilities::default()).await;
}

#[tokio::test]
async fn definitions_hooks_and_tests_come_as_helm_prints_them() {
    let files = [
        CHART,
        WEB,
        VALUES,
        (
            "chart/crds/widget.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n",
        ),
        (
            "chart/templates/migrate.yaml",
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-weight: \"-5\"}\n",
        ),
        (
            "chart/templates/tests/test.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: test\n  annotations: {helm.sh/hook: test}\n",
        ),
        ("chart/templates/_name.tpl", "{{ define \"name\" }}name{{ end }}"),
        (
            "chart/templates/many.yaml",
            "{{- range list 1 2 3 }}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: \"{{ include \"name\" $ }}-{{ . }}\"}\n{{- end }}\n",
        ),
    ];
    let ours = check("with definitions", &files, HelmOptions::default(), &PLAIN).await;
    assert!(ours.iter().all(|object| object.id.name() != "test"));
    let skip = HelmOptions { skip_crds: true, ..HelmOptions::default() };
    check("without", &files, skip, &["default", "chart", "--namespace", "default", "--skip-tests"]).await;
}

#[tokio::test]
async fn charts_see_what_the_server_can_do_and_are_asked_anew_only_if_they_look() {
    let asks = (
        "chart/templates/monitor.yaml",
        "{{- if .Capabilities.APIVersions.Has \"example.com/v1/Widget\" }}\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n\
            spec: {version: \"{{ .Capabilities.KubeVersion.Minor }}\"}\n{{- end }}\n",
    );
    let server = |version: &str, served: &[&str]| Capabilities {
        version: Some(version.into()),
        api_versions: served.iter().map(|it| (*it).to_owned()).collect(),
    };
    let owned = |files: &[File]| -> Vec<(&str, Vec<u8>)> {
        files.iter().map(|(path, text)| (*path, text.as_bytes().to_vec())).collect()
    };
    let typed =
        [&PLAIN[..], &["--kube-version", "v1.29.0", "--api-versions", "example.com/v1/Widget"]].concat();
    let files = owned(&[CHART, WEB, VALUES, asks]);
    let ours = check_bytes(
        "what is served",
        &files,
        HelmOptions::default(),
        &typed,
        server("v1.29.7", &["example.com/v1/Widget"]),
    )
    .await;
    assert!(ours.is_empty() || ours.len() == 2, "{ours:?}");
    let typed = [&PLAIN[..], &["--kube-version", "1.30"]].concat();
    let named = HelmOptions { kube_version: Some("1.30".into()), ..HelmOptions::default() };
    check_bytes("a version that is named", &files, named, &typed, server("v1.29.7", &[])).await;

    // The digest says if it is another run.
    let digest = |files: &[File], server: Capabilities| {
        let tree = FileTree::from_texts(files.iter().copied());
        moorline::render::helm::invocation(&tree, &options(HelmOptions::default()), &server).unwrap().digest()
    };
    let (looks, blind) = ([CHART, asks].to_vec(), [CHART, WEB].to_vec());
    for (files, same) in [(looks, false), (blind, true)] {
        let one = digest(&files, server("v1.29.7", &["v1"]));
        assert_eq!(one == digest(&files, server("v1.29.7", &["v1", "example.com/v1"])), same);
        assert_eq!(
            one,
            digest(&files, server("v1.29.9", &["v1"])),
            "a patch of the server is no other version"
        );
        assert_ne!(one, digest(&files, server("v1.30.0", &["v1"])));
    }
}

#[tokio::test]
async fn links_are_followed_inside_the_repository() {
    let Some(program) = find("helm") else { return };
    let file = |text: &str| TreeEntry::File(Arc::from(text.as_bytes()));
    let tree: FileTree = [
        (CHART.0, file(CHART.1)),
        ("chart/values.yaml", TreeEntry::Link("../shared/values.yaml".into())),
        ("chart/templates", TreeEntry::Link("../shared/templates".into())),
        ("shared/values.yaml", file(VALUES.1)),
        ("shared/templates/web.yaml", file(WEB.1)),
    ]
    .into_iter()
    .collect();
    let (helm, _folder) = helm_of(&program);
    let ours = objects(&helm, &tree, options(HelmOptions::default()), Capabilities::default()).await.unwrap();
    assert_eq!(ours[0].body["data"]["color"], "red");
    let out: FileTree =
        [(CHART.0, file(CHART.1)), ("chart/values.yaml", TreeEntry::Link("../../secret".into()))]
            .into_iter()
            .collect();
    let wrong =
        objects(&helm, &out, options(HelmOptions::default()), Capabilities::default()).await.unwrap_err();
    assert!(wrong.contains("leads out of the tree"), "{wrong}");
}

#[tokio::test]
async fn the_same_input_is_rendered_once_by_however_many() {
    let Some(program) = find("helm") else { return };
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    std::fs::create_dir(&starts).unwrap();
    // Nothing can be written behind the fence, so this stands before it.
    let count = format!(
        "read -r id < /proc/sys/kernel/random/uuid\n[ \"$2\" = --walls ] || : > {}/$id\nexec {} \"$@\"",
        starts.display(),
        env!("CARGO_BIN_EXE_moorline")
    );
    let started = || std::fs::read_dir(&starts).unwrap().count();
    let helm = Helm::new(program, script(folder.path(), &count), folder.path().join("work"))
        .with_isolation(IsolationLevel::BestEffort);
    let drawn = (
        "chart/templates/drawn.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\nstringData: {password: \"{{ randAlphaNum 20 }}\", of: \"{{ .Values.color }}\"}\n",
    );
    let tree = FileTree::from_texts([CHART, VALUES, drawn]);
    let ask = |color: &str| {
        let helm = helm.clone();
        let values = map(json!({"color": color}));
        let (tree, options) = (tree.clone(), options(HelmOptions { values, ..HelmOptions::default() }));
        async move { objects(&helm, &tree, options, Capabilities::default()).await.unwrap() }
    };
    let first = ask("red").await;
    for _ in 0..49 {
        assert_eq!(ask("red").await, first);
    }
    let together = futures::future::join_all((0..50).map(|_| ask("red"))).await;
    assert!(together.iter().all(|one| *one == first));
    assert_eq!(started(), 1, "100 renders start one helm");
    let others = futures::future::join_all((0..100).map(|_| ask("green"))).await;
    assert!(others.iter().all(|one| *one == others[0] && *one != first));
    assert_eq!(started(), 2, "100 at one time as well");
}

#[test]
fn a_folder_that_is_both_is_a_chart() {
    let kustomization = ("chart/kustomization.yaml", "resources: [web.yaml]\n");
    let kind =
        |files: &[File]| SourceType::Auto.detect(&FileTree::from_texts(files.iter().copied()), "chart");
    assert_eq!(kind(&[CHART, kustomization]), SourceType::Helm);
    assert_eq!(kind(&[kustomization]), SourceType::Kustomize);
    assert_eq!(kind(&[WEB]), SourceType::Plain);
    // If helm is not run, it is not taken for plain manifests either.
    let rendered = render(&FileTree::from_texts([CHART, WEB]), &options(HelmOptions::default()));
    let Rendered::Incomplete(incomplete) = rendered else { panic!("it is no plain folder") };
    assert_eq!(incomplete.problems[0].reason(), "ChartInvalid");
}
