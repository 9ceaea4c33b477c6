//! Alerts and dashboard: they ask for figures that there are, and each alert has cases.

use std::collections::BTreeSet;

use moorline::metrics::TABLE;
use serde_json::Value;

use super::programs::{CHART, Helm, command, documents, find, run, text};

const ALERTS: &str = "charts/moorline/files/alerts.yaml";
const CASES: &str = "charts/moorline/tests/alerts.yaml";

/// The alerts, as name and rule.
fn alerts() -> Vec<(String, Value)> {
    let file = documents(ALERTS, &text(ALERTS)).remove(0);
    let rules = file["groups"][0]["rules"].as_array().expect("rules").clone();
    rules.into_iter().map(|rule| (rule["alert"].as_str().expect("a name").to_owned(), rule)).collect()
}

/// Every expression of the dashboard.
fn dashboard() -> Vec<String> {
    let file: Value = serde_json::from_str(&text("charts/moorline/files/dashboard.json")).expect("JSON");
    let panels = file["panels"].as_array().expect("panels");
    let annotations = file["annotations"]["list"].as_array().expect("annotations");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let targets = targets.chain(annotations);
    targets.map(|target| target["expr"].as_str().expect("an expression").to_owned()).collect()
}

/// The figures that an expression names, each with the labels that it selects by.
fn figures(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = ["moorline_", "process_"].iter().filter_map(|prefix| rest.find(prefix)).min() {
        rest = &rest[at..];
        let (name, behind) = rest.split_at(rest.find(|char: char| !is_name(char)).unwrap_or(rest.len()));
        let selector = behind.strip_prefix('{').and_then(|behind| behind.split_once('}'));
        let labels = selector.map_or("", |(labels, _)| labels).split(", ").filter(|label| !label.is_empty());
        let label = |text: &str| text.split(['=', '!']).next().unwrap_or_default().to_owned();
        found.push((name.to_owned(), labels.map(label).collect()));
        rest = behind;
    }
    found
}

/// Returns an error in the figures that an expression names.
fn unknown(expression: &str) -> Option<String> {
    let wrong = |(name, labels): (String, Vec<String>)| {
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let row = TABLE.iter().find(|row| match row.kind {
            moorline::metrics::MetricKind::Histogram => Some(row.name) == of_histogram,
            _ => row.name == name,
        });
        match row {
            None => Some(format!("there is no figure {name}")),
            Some(row) => labels
                .into_iter()
                .find(|label| !row.labels.contains(&label.as_str()))
                .map(|label| format!("{name} has no label {label}")),
        }
    };
    figures(expression).into_iter().find_map(wrong)
}

#[test]
fn alerts_and_dashboard_ask_for_figures_that_there_are() {
    let alerts =
        alerts().into_iter().map(|(_, rule)| rule["expr"].as_str().expect("an expression").to_owned());
    let mut seen = BTreeSet::new();
    for expression in alerts.chain(dashboard()) {
        assert_eq!(unknown(&expression), None, "{expression}");
        let named = figures(&expression);
        assert!(!named.is_empty(), "{expression}");
        seen.extend(named.into_iter().map(|(name, _)| name));
    }
    assert!(seen.len() > 10, "{seen:?}");
}

/// The anchors of a page's headings, as repositories and the site make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|char| char.is_alphanumeric() || [' ', '-'].contains(char));
        kept.map(|char| if char == ' ' { '-' } else { char }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_alert_names_a_section_of_the_docs_that_there_is() {
    for (name, rule) in alerts() {
        let link = rule["annotations"]["runbook_url"]
            .as_str()
            .unwrap_or_else(|| panic!("{name} has no runbook_url"));
        let (page, anchor) = link.split_once('#').expect("a section");
        assert!(anchors(&text(page)).contains(anchor), "{name}: {page} has no section #{anchor}");
        assert_eq!(anchor, name.to_lowercase(), "the section is that of the alert");
    }
    assert!(anchors("# A b\n## C, d\n").contains("c-d"));
}

#[test]
fn the_dashboard_lists_syncs_marks_revisions_and_leads_to_the_console() {
    let board: Value = serde_json::from_str(&text("charts/moorline/files/dashboard.json")).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    let list = panels.iter().find(|panel| panel["title"] == "Syncs by state").expect("a list of Syncs");
    assert_eq!(list["type"], "table");
    let asks = |list: &Value, figure: &str| list.to_string().contains(figure);
    for figure in [
        "moorline_ready",
        "moorline_healthy",
        "state=\\\"failed\\\"",
        "state=\\\"held\\\"",
        "state=\\\"drifted\\\"",
    ] {
        assert!(asks(&list["targets"], figure), "{figure}: {}", list["targets"]);
    }
    let console = |of: &Value| asks(of, "\"url\":\"${console}");
    assert!(console(&list["fieldConfig"]["overrides"]), "each Sync leads to its page");
    assert!(console(&board["links"]), "the dashboard leads to the console");
    let variables = board["templating"]["list"].as_array().expect("variables");
    assert!(variables.iter().any(|variable| variable["name"] == "console"));
    let marks = board["annotations"]["list"].as_array().expect("annotations");
    assert!(marks.iter().any(|mark| asks(&mark["expr"], "moorline_revision_info") && mark["enable"] == true));
}

#[test]
fn figures_that_there_are_not_are_found() {
    assert_eq!(unknown("sum(moorline_ready{sync=~\"a\"}) + moorline_git_operation_seconds_bucket"), None);
    assert_eq!(unknown("moorline_redy"), Some("there is no figure moorline_redy".to_owned()));
    assert_eq!(
        unknown("moorline_git_operation_seconds"),
        Some("there is no figure moorline_git_operation_seconds".to_owned())
    );
    assert_eq!(
        unknown("moorline_ready{sync=\"a\", kind!=\"b\"}"),
        Some("moorline_ready has no label kind".to_owned())
    );
}

#[test]
fn every_alert_has_a_case_that_fires_it_and_one_that_does_not() {
    let cases = documents(CASES, &text(CASES)).remove(0);
    let cases = cases["tests"].as_array().expect("cases");
    let expected = cases.iter().flat_map(|case| case["alert_rule_test"].as_array().expect("expectations"));
    let expected: Vec<(&str, bool)> = expected
        .map(|it| (it["alertname"].as_str().expect("a name"), it["exp_alerts"] != serde_json::json!([])))
        .collect();
    let alerts = alerts();
    for (name, _) in &alerts {
        for fires in [true, false] {
            assert!(
                expected.contains(&(name.as_str(), fires)),
                "{name} has no case in which it fires: {fires}"
            );
        }
    }
    for (name, _) in expected {
        assert!(alerts.iter().any(|(alert, _)| alert == name), "there is no alert {name}");
    }
}

#[test]
fn prometheus_agrees_with_the_cases() {
    let Some(promtool) = find("promtool") else { return };
    for arguments in [["check", "rules", ALERTS], ["test", "rules", CASES]] {
        let mut promtool = command(&promtool);
        let answer = run(promtool.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")));
        assert!(answer.is_ok(), "{answer:?}");
    }
}

#[test]
fn the_chart_carries_alerts_and_dashboard_as_they_are() {
    let Some(helm) = Helm::here() else { return };
    let objects = helm.objects(&["--set", "prometheusRule.enabled=true,dashboard.enabled=true"]);
    let rule = objects.iter().find(|object| object["kind"] == "PrometheusRule").expect("a PrometheusRule");
    assert_eq!(rule["spec"], documents(ALERTS, &text(ALERTS)).remove(0));
    let site = "prometheusRule.enabled=true,dashboard.enabled=true,prometheusRule.docs=https://git.example/moorline/docs/";
    let objects = helm.objects(&["--set", site]);
    let rule = objects.iter().find(|object| object["kind"] == "PrometheusRule").expect("a PrometheusRule");
    let link = &rule["spec"]["groups"][0]["rules"][0]["annotations"]["runbook_url"];
    assert_eq!(link, "https://git.example/moorline/docs/troubleshooting.md#moorlinenotready");
    let named = |object: &&Value| object["metadata"]["name"] == "moorline-dashboard";
    let board = objects.iter().find(named).expect("a dashboard")["data"]["moorline.json"].clone();
    let board: Value = serde_json::from_str(board.as_str().expect("text")).expect("JSON");
    let file = std::fs::read_to_string(format!("{CHART}/files/dashboard.json")).expect("the file");
    assert_eq!(board, serde_json::from_str::<Value>(&file).expect("JSON"));
}
