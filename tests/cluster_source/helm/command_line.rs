//! Charts on the command line: how a folder is read, which values count, and the comparison with helm itself.

use std::path::Path;
use std::process::{Command, Output};

use moorline_test_support::programs::find;

fn moorline(folder: &Path, arguments: &[&str]) -> Option<(i32, String, String)> {
    let helm = std::path::absolute(find("helm")?).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
    command.args(arguments).current_dir(folder).env("MOORLINE_HELM", &helm);
    // The comparison asks for it by its name.
    command.env("PATH", helm.parent().unwrap()).env("HOME", folder);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some((status.code().unwrap(), text(stdout), text(stderr)))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n\
        data: {color: {{ .Values.color }}, version: \"{{ .Capabilities.KubeVersion }}\"}\n";
    let files = [
        ("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("chart/values.yaml", "color: red\n"),
        ("chart/templates/map.yaml", map),
        ("prod.yaml", "color: green\n"),
    ];
    for (path, text) in files {
        let place = folder.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }
    folder
}

#[test]
fn a_chart_is_rendered_with_what_is_typed() {
    let folder = folder();
    let Some((code, data, words)) = moorline(folder.path(), &["render", "chart", "--verbose"]) else {
        return;
    };
    assert_eq!((code, words.as_str()), (0, "chart is read as a Helm chart\n"));
    assert!(data.contains("color: red") && data.contains("name: default"), "{data}");
    let flags = [
        "--values",
        "prod.yaml",
        "--release-name",
        "front",
        "--release-namespace",
        "shop",
        "--kube-version",
        "1.29",
    ];
    let (code, data, words) = moorline(folder.path(), &[&["render", "chart"][..], &flags].concat()).unwrap();
    assert_eq!((code, words.as_str()), (0, ""));
    for expect in ["color: green", "name: front", "namespace: shop", "version: v1.29"] {
        assert!(data.contains(expect), "{expect}: {data}");
    }
    let compared = [&["render", "chart", "--check-against", "helm"][..], &flags].concat();
    assert_eq!(
        moorline(folder.path(), &compared).unwrap(),
        (0, "equal: 1 object\n".to_owned(), String::new())
    );
    let (code, data, _) = moorline(folder.path(), &["check", "chart"]).unwrap();
    assert_eq!((code, data.as_str()), (0, "chart: 1 object is valid\n"));
    let (code, data, _) = moorline(folder.path(), &["plan", "chart", "--against", "prod.yaml"]).unwrap();
    assert!(code == 2 && data.contains("ConfigMap default/default"), "{code} {data}");
}

#[test]
fn values_lie_behind_the_wall_and_belong_to_charts() {
    let folder = folder();
    let root = ["render", "chart", "--root", "chart", "--values", "prod.yaml"];
    let Some((code, _, words)) = moorline(folder.path(), &root) else { return };
    assert_eq!(code, 1);
    assert!(words.contains("prod.yaml is not inside"), "{words}");
    let (code, _, words) =
        moorline(folder.path(), &["render", "chart/templates", "--values", "prod.yaml"]).unwrap();
    assert_eq!(code, 1);
    assert!(words.contains("not a Helm chart, so --values does not apply"), "{words}");
    let (code, _, words) = moorline(folder.path(), &["render", "chart", "--release-name", "Front"]).unwrap();
    assert_eq!(code, 64, "{words}");
}

#[test]
fn links_of_a_chart_are_followed_inside_the_repository() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir_all(at("shared/templates")).unwrap();
    std::fs::rename(at("chart/templates/map.yaml"), at("shared/templates/map.yaml")).unwrap();
    std::fs::remove_dir(at("chart/templates")).unwrap();
    std::os::unix::fs::symlink("../shared/templates", at("chart/templates")).unwrap();
    std::fs::write(at("values.yaml"), "color: blue\n").unwrap();
    std::fs::remove_file(at("chart/values.yaml")).unwrap();
    std::os::unix::fs::symlink("../values.yaml", at("chart/values.yaml")).unwrap();
    let Some((code, data, words)) = moorline(folder.path(), &["render", "chart"]) else { return };
    assert_eq!(code, 0, "{words}");
    assert!(data.contains("color: blue"), "{data}");
}

#[test]
fn a_kustomization_with_a_chart_needs_no_network() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("over")).unwrap();
    let kustomization = "namePrefix: x-\nhelmGlobals: {chartHome: ..}\nhelmCharts:\n- {name: chart, releaseName: front, valuesFile: own.yaml, valuesInline: {color: blue}}\n";
    std::fs::write(folder.path().join("over/kustomization.yaml"), kustomization).unwrap();
    std::fs::write(folder.path().join("over/own.yaml"), "color: green\n").unwrap();
    let Some((code, data, words)) = moorline(folder.path(), &["render", "over"]) else { return };
    assert_eq!((code, words.as_str()), (0, ""));
    assert!(data.contains("name: x-front") && data.contains("color: blue"), "{data}");
    let (code, _, words) = moorline(folder.path(), &["check", "over"]).unwrap();
    assert_eq!(code, 0, "{words}");
    // The message names the steps that made it, and the place where a template is wrong.
    let (code, data, words) =
        moorline(folder.path(), &["render", "over", "--explain", "ConfigMap/x-front"]).unwrap();
    assert_eq!(code, 0, "{words}");
    assert!(data.contains("helmCharts") && data.contains("namePrefix"), "{data}");
    assert!(data.contains("chart/templates/map.yaml"), "{data}");
    std::fs::write(
        folder.path().join("chart/templates/map.yaml"),
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 1}\n",
    )
    .unwrap();
    let (code, _, words) = moorline(folder.path(), &["render", "over"]).unwrap();
    assert_eq!(code, 1);
    assert!(words.contains("chart/templates/map.yaml (as helm template prints it):"), "{words}");
}

#[test]
fn a_chart_that_looks_into_the_cluster_is_said_to_find_nothing() {
    let folder = folder();
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seen}\n\
        data: {seen: \"{{ lookup \"v1\" \"Secret\" \"shop\" \"login\" | len }}\"}\n";
    std::fs::write(folder.path().join("chart/templates/seen.yaml"), template).unwrap();
    let Some((code, data, words)) = moorline(folder.path(), &["render", "chart"]) else { return };
    assert_eq!(code, 0, "{words}");
    assert!(data.contains("seen: '0'") || data.contains("seen: \"0\""), "{data}");
    assert!(words.contains("calls lookup, which finds nothing here"), "{words}");
}
