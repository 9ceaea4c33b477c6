//! Each row of the table of causes in docs/held-revision.md has a test.
//!
//! In: the page, and the tests of each cause. Out: a failure if the page has another row, or if a test is not there.

use std::path::Path;

/// The rows by their causes, and the tests that show them: a file in tests/cluster_prune/, and a function in it.
const ROWS: [(&str, &[&str]); 11] = [
    (
        "invalid YAML, or a kustomization or chart that fails",
        &[
            "held_revision.rs bad_yaml",
            "held_revision.rs a_kustomization_that_fails",
            "held_rows.rs a_chart_that_fails",
        ],
    ),
    ("a variable without a value in the newer commit", &["held_revision.rs a_variable_without_a_value"]),
    (
        "`spec.path` does not exist in the newer commit",
        &["held_rows.rs a_path_that_the_newer_commit_does_not_have"],
    ),
    (
        "the repository is unreachable",
        &[
            "held_revision.rs a_repository_that_cannot_be_reached",
            "held_rows.rs prunes_go_on_while_the_repository_is_away",
            "held_rows.rs prunes_ask_while_the_repository_is_away_if_a_newer_commit_was_seen",
            "held_rows.rs nothing_is_kept_while_the_repository_is_away_and_the_mirror_is_lost",
        ],
    ),
    (
        "the held commit is no longer in the repository",
        &[
            "held_rows.rs a_kept_commit_that_is_gone",
            "held_rows.rs a_kept_commit_is_fetched_by_its_id_where_the_mirror_is_lost",
        ],
    ),
    (
        "the newer revision waits for [approval](approval.md)",
        &[
            "../cluster_rollout/rollback/ask_first.rs a_revision_is_applied_after_its_approval_and_no_other_one_is",
        ],
    ),
    ("a Sync in `dependsOn` is not ready", &["held_revision.rs a_dependency_that_waits"]),
    (
        "a Secret or ConfigMap that the spec names is missing",
        &[
            "held_revision.rs values_that_are_gone_and_values_that_are_new",
            "held_rows.rs a_config_map_of_values_that_is_missing",
            "held_rows.rs a_secret_of_values_that_is_missing",
        ],
    ),
    (
        "a spec that renders nothing, such as a wrong `path`",
        &["held_revision.rs a_spec_that_fails_narrows_at_once"],
    ),
    ("a spec that is not valid", &["held_identity.rs a_spec_that_is_not_valid"]),
    (
        "the ServiceAccount of the Sync is missing, another daemon serves the Sync, or the key that signed the revision is \
         no longer trusted",
        &[
            "held_identity.rs a_service_account_that_is_not_named_any_more",
            "held_identity.rs a_service_account_that_is_not_there",
            "held_identity.rs another_daemon_that_serves_it",
            "held_identity.rs a_revision_that_no_trusted_key_signs_any_more",
        ],
    ),
];

fn read(path: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()))
}

/// The first cells of the rows of a table, by its head.
fn causes<'a>(page: &'a str, head: &str) -> Vec<&'a str> {
    let (_, table) = page.split_once(head).unwrap_or_else(|| panic!("no table begins with {head}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect()
}

#[test]
fn each_cause_of_the_table_has_a_test() {
    let page = read("docs/held-revision.md");
    let shown = causes(&page, "| cause | held meanwhile | held after a restart |");
    assert_eq!(shown, ROWS.map(|(cause, _)| cause), "the table and its tests are changed together");
    for (cause, tests) in ROWS {
        for test in tests {
            let (file, name) = test.split_once(' ').unwrap();
            let text = read(&format!("tests/cluster_prune/{file}"));
            let (before, _) = text
                .split_once(&format!("\nasync fn {name}()"))
                .unwrap_or_else(|| panic!("{cause}: {file} has no test {name}"));
            assert!(before.ends_with("#[tokio::test]"), "{cause}: {name} in {file} is no test");
        }
    }
}
