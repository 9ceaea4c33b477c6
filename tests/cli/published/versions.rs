//! One version and one list of supported minor versions of Kubernetes, wherever they are written.
//!
//! In: Cargo.toml, the chart, docs/versions.md, the workflows and the control planes of the tests.
//! Out: nothing, or what differs.

use super::{between, names, text};

/// Minor versions whose control planes the tests can build, oldest first.
fn built() -> Vec<String> {
    let own = text("tests/control-plane/go.mod");
    let own = between(&own, "k8s.io/kubernetes v", "\n").expect("the version of Kubernetes");
    let mut minors: Vec<String> = vec![own.split('.').take(2).collect::<Vec<_>>().join(".")];
    let others = names("tests/control-plane/minors", ".mod");
    minors.extend(others.iter().map(|name| name.trim_end_matches(".mod").to_owned()));
    minors.sort_by_key(|minor| {
        minor.split('.').filter_map(|part| part.parse::<u32>().ok()).collect::<Vec<_>>()
    });
    minors
}

#[test]
fn the_supported_minor_versions_are_those_that_are_tested() {
    let minors = built();
    assert_eq!(minors.len(), 3, "{minors:?}");
    let page = text("docs/versions.md");
    let (version, chart) = (env!("CARGO_PKG_VERSION"), text("charts/moorline/Chart.yaml"));
    let minor = version.rsplit_once('.').expect("a patch version").0;
    let oldest =
        between(&chart, "kubeVersion: \">=", ".0-0\"").expect("the oldest version that the chart takes");
    let row = format!("| {minor} | {} | {oldest} |", minors.join(", "));
    assert!(page.contains(&row), "docs/versions.md has no row {row}");
    let matrix = format!("matrix: {{minor: [\"{}\"]}}", minors.join("\", \""));
    assert!(text(".github/workflows/ci.yml").contains(&matrix), "ci.yml has no {matrix}");
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let (version, chart) = (env!("CARGO_PKG_VERSION"), text("charts/moorline/Chart.yaml"));
    for key in ["version", "appVersion"] {
        assert!(chart.contains(&format!("\n{key}: {version}\n")), "{key} of the chart is not {version}");
    }
}

#[test]
fn the_policy_names_every_kind_of_interface() {
    let page = text("docs/versions.md");
    for link in ["sync.md", "annotations.md", "metrics.md", "events.md", "cli.md", "../config/daemon.yaml"] {
        assert!(page.contains(&format!("]({link})")), "docs/versions.md does not link to {link}");
    }
}
