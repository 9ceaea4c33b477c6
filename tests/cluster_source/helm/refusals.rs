//! Charts that come to nothing: what is said of them, and where.

use moorline::render::helm::Capabilities;
use moorline::render::{HelmOptions, RenderOptions, SourceType};
use moorline::tree::{FileTree, TreeEntry};

use super::charts::{CHART, File, WEB, options};
use super::{helm_of, objects, script};
use moorline_test_support::programs::find;

#[tokio::test]
async fn what_is_missing_is_said_before_helm_is_asked() {
    let (helm, _folder) = helm_of(&script(tempfile::tempdir().unwrap().path(), "exit 1"));
    let check = async |files: &[File], values: &[&str], expect: &str| {
        let values_files = values.iter().map(|file| (*file).to_owned()).collect();
        let options = RenderOptions {
            kind: SourceType::Helm,
            ..options(HelmOptions { values_files, ..HelmOptions::default() })
        };
        let wrong =
            objects(&helm, &FileTree::from_texts(files.iter().copied()), options, Capabilities::default())
                .await;
        let wrong = wrong.unwrap_err();
        assert!(wrong.contains(expect), "{wrong}");
    };
    let needs = ("chart/Chart.yaml", "name: shop\ndependencies: [{name: db}]\n");
    let missing = "ChartDependencyMissing: chart/Chart.yaml: the dependency db is not in the folder charts, and no Chart.lock has its exact version; run `helm dependency update chart` and commit Chart.lock";
    check(&[needs, WEB], &[], missing).await;
    check(&[needs, ("chart/charts/web-1.0.0.tgz", "")], &[], missing).await;
    check(&[needs, ("chart/charts/web/Chart.yaml", "name: web\n")], &[], missing).await;
    let old = ("chart/requirements.yaml", "dependencies: [{name: db}]\n");
    check(&[CHART, old], &[], "ChartDependencyMissing").await;
    check(&[WEB], &[], "ChartInvalid: chart: there is no Chart.yaml").await;
    check(
        &[("chart/Chart.yaml", "version: 1.0.0\n")],
        &[],
        "ChartInvalid: chart/Chart.yaml: a chart needs a name",
    )
    .await;
    check(&[("chart/Chart.yaml", "{")], &[], "YamlInvalid: chart/Chart.yaml:").await;
    check(
        &[CHART],
        &["prod.yaml"],
        "ValuesFileMissing: the file chart/prod.yaml does not exist (valuesFiles: prod.yaml)",
    )
    .await;
    check(
        &[CHART],
        &["../../prod.yaml"],
        "ValuesFileMissing: the path ../../prod.yaml in valuesFiles is outside of the repository",
    )
    .await;
}

#[tokio::test]
async fn a_refusal_of_helm_is_reported_with_its_template_and_without_values() {
    let Some(program) = find("helm") else { return };
    let (helm, _folder) = helm_of(&program);
    let check = async |files: &[File], expect: &str| {
        let options = RenderOptions { path: "apps/front".into(), ..RenderOptions::default() };
        let files = [&[("apps/front/Chart.yaml", CHART.1)], files].concat();
        let wrong =
            objects(&helm, &FileTree::from_texts(files), options, Capabilities::default()).await.unwrap_err();
        assert!(
            wrong.contains(expect) && !wrong.contains("hunter2") && !wrong.contains("--debug"),
            "{wrong}"
        );
    };
    let template = |text: &'static str| ("apps/front/templates/web.yaml", text);
    check(&[template("\n{{ fail \"no color\" }}")], "HelmFailed: helm failed to render the chart: execution error at (apps/front/templates/web.yaml:2:3): no color").await;
    check(&[template("a: {{ .Values.a.b.c }}")], "apps/front/templates/web.yaml:1:").await;
    check(&[template("a: b\n c: d\n")], "YAML parse error on apps/front/templates/web.yaml").await;
    check(
        &[
            template("a: {{ .Values.p | atoi | add 1 }}{{ fail \"end\" }}"),
            ("apps/front/values.yaml", "p: hunter2\n"),
        ],
        "HelmFailed",
    )
    .await;
    let schema = ("apps/front/values.schema.json", r#"{"properties": {"p": {"pattern": "^[0-9]+$"}}}"#);
    check(
        &[schema, ("apps/front/values.yaml", "p: hunter2\n")],
        "at '/p': (a value, not shown) does not match pattern",
    )
    .await;
    let schema = ("apps/front/values.schema.json", r#"{"properties": {"p": {"type": "integer"}}}"#);
    check(&[schema, ("apps/front/values.yaml", "p: hunter2\n")], "at '/p': got string, want integer").await;
    check(&[("apps/front/values.yaml", "p: [hunter2\n")], "apps/front/values.yaml").await;
    check(&[template("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: [hunter2]}\n")], "ManifestInvalid: apps/front/templates/web.yaml (as helm template prints it):6:14: stringData.a of the Secret").await;
    check(
        &[template("{{- if false }}\na: b\n{{- end }}")],
        "NoManifests: the chart in apps/front renders to no objects",
    )
    .await;
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    check(&[template(twice)], "DuplicateObject: apps/front/templates/web.yaml").await;
}

#[tokio::test]
async fn a_folder_that_leads_into_itself_ends() {
    let (helm, _folder) = helm_of(&script(tempfile::tempdir().unwrap().path(), "exit 1"));
    let tree: FileTree = [
        (CHART.0, TreeEntry::File(CHART.1.as_bytes().into())),
        ("chart/d/a", TreeEntry::Link(".".into())),
        ("chart/d/b", TreeEntry::Link("..".into())),
    ]
    .into_iter()
    .collect();
    let options = options(HelmOptions::default());
    let wrong = objects(&helm, &tree, options, Capabilities::default()).await.unwrap_err();
    assert!(wrong.starts_with("ChartTooLarge: chart"), "{wrong}");
}

#[tokio::test]
async fn a_schema_opens_nothing_outside_of_the_chart() {
    let Some(program) = find("helm") else { return };
    let (helm, folder) = helm_of(&program);
    let told = folder.path().join("told.json");
    std::fs::write(&told, "{\"const\": \"planted\"}").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let server = format!("http://{}/s.json", listener.local_addr().unwrap());
    for named in [format!("file://{}", told.display()), server] {
        let schema = serde_json::json!({"properties": {"value": {"$ref": named}}}).to_string();
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let files = [
            CHART,
            ("chart/values.yaml", "value: a\n"),
            ("chart/values.schema.json", schema.as_str()),
            ("chart/templates/a.yaml", map),
        ];
        let options = options(HelmOptions::default());
        let made = objects(&helm, &FileTree::from_texts(files), options, Capabilities::default()).await;
        assert_eq!(made.map(|made| made.len()), Ok(1), "{named}");
    }
    assert!(listener.accept().is_err(), "nobody is asked");
    // One that names nothing else is held to.
    let schema = "{\"properties\": {\"value\": {\"type\": \"number\"}}}";
    let files = [CHART, ("chart/values.yaml", "value: a\n"), ("chart/values.schema.json", schema)];
    let options = options(HelmOptions::default());
    let wrong = objects(&helm, &FileTree::from_texts(files), options, Capabilities::default()).await;
    assert!(wrong.is_err_and(|wrong| wrong.starts_with("HelmFailed")));
}
