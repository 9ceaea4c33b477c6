//! The metrics from outside: every one of them is in the text that Prometheus reads, in the table and in the docs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use moorline::metrics::{FORMER_NAMES, GitOperation, MetricKind, Metrics, RequestClass, TABLE};

const SYNC: &str = "shop/web";

/// Metrics in which everything was counted once.
fn all() -> Metrics {
    let metrics = Metrics::new().expect("the table is sound");
    of_sync(&metrics, SYNC);
    for class in [
        RequestClass::Object,
        RequestClass::Status,
        RequestClass::Lease,
        RequestClass::Watch,
        RequestClass::Verify,
    ] {
        metrics.request(class, "patch", 200);
    }
    metrics.object_request("apply", Duration::from_millis(7));
    metrics.git_operation(GitOperation::Resolve, Duration::from_millis(30), None);
    metrics.git_operation(GitOperation::Fetch, Duration::from_secs(60), Some("RepositoryTimeout"));
    metrics.watch_relisted("apps/Deployment", "Expired");
    metrics.journal_line(true);
    metrics.notifications("sent", 1);
    metrics
}

fn of_sync(metrics: &Metrics, sync: &str) {
    metrics.ready(sync, true);
    metrics.healthy(sync, true);
    metrics.revision(sync, "1111111");
    metrics.last_success(sync, 1_700_000_000);
    metrics.commit_to_applied(sync, Duration::from_millis(400));
    metrics.objects(sync, "applied", 12);
    metrics.held_objects(sync, "OwnedBy", 2);
    metrics.applied(sync, "Created");
    metrics.drift_repaired(sync, "kubectl-edit");
    metrics.pruned(sync);
}

/// The samples of a text: `name{labels}` and value.
fn samples(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' ')).collect()
}

fn value<'a>(text: &'a str, series: &str) -> Option<&'a str> {
    samples(text).into_iter().find(|(name, _)| *name == series).map(|(_, value)| value)
}

#[test]
fn the_text_has_the_metrics_of_the_table_and_no_others() {
    let text = all().render();
    let families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let former = FORMER_NAMES.iter().map(|former| (former.name, former.now.kind));
    let expect = TABLE.iter().map(|row| (row.name, row.kind)).chain(former);
    let expect: BTreeSet<_> = expect.map(|(name, kind)| format!("{name} {}", kind.as_str())).collect();
    assert_eq!(families.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expect);
    for row in TABLE {
        let suffix = if row.kind == MetricKind::Histogram { "_count" } else { "" };
        let (series, _) = samples(&text)
            .into_iter()
            .find(|(series, _)| series.split('{').next() == Some(&format!("{}{suffix}", row.name)))
            .expect(row.name);
        let labels = series.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
        let labels = labels.split(',').filter_map(|label| label.split('=').next());
        let labels: BTreeSet<_> = labels.filter(|label| !label.is_empty()).collect();
        assert_eq!(labels, row.labels.iter().copied().collect(), "{}", row.name);
        assert!(text.contains(&format!("# HELP {} {}\n", row.name, row.help)), "{}", row.name);
    }
}

#[test]
fn the_docs_show_the_table() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let document = fs::read_to_string(place).expect("docs/metrics.md is compared with the registry");
    let rows = TABLE.iter().map(|row| {
        let labels: Vec<_> = row.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {} | {} | {} |\n", row.name, row.kind.as_str(), labels.join(", "), row.help)
    });
    let expect =
        format!("| name | kind | labels | meaning |\n|---|---|---|---|\n{}", rows.collect::<String>());
    let shown: String =
        document.lines().filter(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    assert!(shown == expect, "the table of docs/metrics.md is not this one:\n\n{expect}");
}

#[test]
fn counts_are_what_was_called() {
    let metrics = all();
    let handle = metrics.clone();
    handle.request(RequestClass::Object, "patch", 200);
    handle.object_request("apply", Duration::ZERO);
    metrics.request(RequestClass::Object, "delete", 0);
    drop(handle);
    let text = metrics.render();
    for (series, expect) in [
        ("moorline_requests_total{class=\"object\",code=\"200\",verb=\"patch\"}", "2"),
        ("moorline_requests_total{class=\"object\",code=\"none\",verb=\"delete\"}", "1"),
        ("moorline_requests_total{class=\"watch\",code=\"200\",verb=\"patch\"}", "1"),
        ("moorline_object_request_seconds_count{verb=\"apply\"}", "2"),
        ("moorline_git_operation_seconds_count{operation=\"fetch\"}", "1"),
        ("moorline_git_operation_errors_total{operation=\"fetch\",reason=\"RepositoryTimeout\"}", "1"),
        ("moorline_objects{state=\"applied\",sync=\"shop/web\"}", "12"),
        ("moorline_last_success_timestamp_seconds{sync=\"shop/web\"}", "1700000000"),
        ("moorline_leader", "0"),
        ("moorline_queue_depth", "0"),
    ] {
        assert_eq!(value(&text, series), Some(expect), "{series}");
    }
}

#[test]
fn renamed_metrics_are_exported_under_their_former_names_too() {
    let text = all().render();
    for (series, expect) in [
        ("moorline_holds{reason=\"OwnedBy\",sync=\"shop/web\"}", "2"),
        ("moorline_git_seconds_count{what=\"look\"}", "1"),
        ("moorline_git_errors_total{what=\"fetch\",reason=\"RepositoryTimeout\"}", "1"),
        ("moorline_watch_restarts_total{group_kind=\"apps/Deployment\",why=\"Expired\"}", "1"),
    ] {
        assert_eq!(value(&text, series), Some(expect), "{series}\n{text}");
    }
}

#[test]
fn what_is_no_more_has_no_series() {
    let metrics = all();
    metrics.revision(SYNC, "2222222");
    metrics.revision("shop/other", "1111111");
    metrics.revision(SYNC, "2222222");
    metrics.held_objects(SYNC, "UnknownKind", 1);
    metrics.held_objects(SYNC, "OwnedBy", 0);
    metrics.held_objects("shop/other", "OwnedBy", 4);
    let text = metrics.render();
    assert_eq!(value(&text, "moorline_revision_info{revision=\"1111111\",sync=\"shop/web\"}"), None);
    assert_eq!(value(&text, "moorline_revision_info{revision=\"2222222\",sync=\"shop/web\"}"), Some("1"));
    assert_eq!(value(&text, "moorline_revision_info{revision=\"1111111\",sync=\"shop/other\"}"), Some("1"));
    assert_eq!(value(&text, "moorline_held_objects{reason=\"OwnedBy\",sync=\"shop/web\"}"), None);

    metrics.all_held_objects(SYNC, [("Contested", 3)]);
    let text = metrics.render();
    let holds: Vec<_> =
        samples(&text).into_iter().filter(|(name, _)| name.starts_with("moorline_held_objects")).collect();
    let expect = [
        ("moorline_held_objects{reason=\"Contested\",sync=\"shop/web\"}", "3"),
        ("moorline_held_objects{reason=\"OwnedBy\",sync=\"shop/other\"}", "4"),
    ];
    assert_eq!(holds, expect);
}

#[test]
fn a_sync_that_is_gone_leaves_nothing_and_takes_nothing_with_it() {
    let metrics = all();
    let before = metrics.render();
    of_sync(&metrics, "shop/web2");
    assert!(metrics.render().contains("shop/web2"));
    metrics.remove_sync("shop/web2");
    let of_us = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains("process_")).map(str::to_owned).collect()
    };
    assert_eq!(of_us(&metrics.render()), of_us(&before));
}

#[test]
fn names_of_strangers_are_bounded_and_escaped() {
    let metrics = all();
    metrics.drift_repaired(SYNC, "a\"b\nc\\");
    for number in 0..200 {
        metrics.drift_repaired(SYNC, &format!("tool-{number}"));
    }
    let text = metrics.render();
    let repairs = samples(&text).into_iter().filter(|(name, _)| name.starts_with("moorline_drift_repaired"));
    assert_eq!(repairs.count(), 51, "50 managers and the rest");
    assert!(text.contains("manager=\"a\\\"b\\nc\\\\\""), "{text}");
    assert_eq!(
        value(&text, "moorline_drift_repaired_total{manager=\"other\",sync=\"shop/web\"}"),
        Some("152")
    );
}
