//! The tables of `docs/health.md`, written from the rules.
//!
//! In: the rows that the program judges by. Out: two tables between two markers, by project: how its kinds are read, and
//! which of them have no health.

use moorline::health::{DocumentedRule, documented_rules};

pub(crate) const OPEN: &str = "<!-- kinds -->\n";
pub(crate) const CLOSE: &str = "<!-- end of the kinds -->\n";

/// Both tables, with their markers.
pub(crate) fn tables() -> String {
    let mut rows = documented_rules();
    rows.sort_by_key(|row| row.project.to_lowercase());
    let mut text =
        format!("{OPEN}\n| project | kinds | healthy when | degraded after |\n|---|---|---|---|\n");
    let mut before = "";
    for row in &rows {
        let Some(status) = &row.status else { continue };
        let project = if before == row.project { "" } else { row.project };
        before = row.project;
        let waits = span(status.minutes);
        text.push_str(&format!("| {project} | {} | {} | {waits} |\n", kinds(row), status.healthy));
    }
    text.push_str(
        "\nThese kinds have no health of their own, and a Sync does not wait for them:\n\n| project | kinds |\n|---|---|\n",
    );
    let mut before = "";
    for row in rows.iter().filter(|row| row.status.is_none()) {
        let project = if before == row.project { "" } else { row.project };
        before = row.project;
        text.push_str(&format!("| {project} | {} |\n", kinds(row)));
    }
    format!("{text}\n{CLOSE}")
}

fn kinds(row: &DocumentedRule) -> String {
    let kinds: Vec<String> = row.kinds.iter().map(|kind| format!("`{kind}`")).collect();
    match row.kinds {
        ["*"] => format!("every other kind of `{}`", row.group),
        _ => format!("{} of `{}`", kinds.join(", "), row.group),
    }
}

fn span(minutes: i64) -> String {
    match (minutes / 60, minutes % 60) {
        (1, 0) => "1 hour".to_owned(),
        (hours, 0) => format!("{hours} hours"),
        _ => format!("{minutes} minutes"),
    }
}
