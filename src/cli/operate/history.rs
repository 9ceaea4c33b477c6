//! Prints the history of a Sync.
//!
//! In: the entries of a status. Out: a line for each revision, with its time, outcome, changes,
//! subject and author.

use super::table::table;
use crate::api::{HistoryEntry, short_revision};

/// The history, newest revision first; empty if there is none.
pub(super) fn lines(history: &[HistoryEntry]) -> String {
    if history.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = history.iter().map(row).collect();
    format!("History\n{}", table(&rows).lines().map(|line| format!("  {line}\n")).collect::<String>())
}

fn row(entry: &HistoryEntry) -> Vec<String> {
    let changes = if entry.changes.is_empty() { String::new() } else { entry.changes.to_string() };
    let took = entry.duration.as_ref().map(|took| format!("in {took}")).unwrap_or_default();
    let author = if entry.author.is_empty() { String::new() } else { format!(" ({})", entry.author) };
    vec![
        entry.time.0.to_string(),
        short_revision(&entry.revision),
        entry.result.clone(),
        changes,
        took,
        format!("{}{author}", entry.subject),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_revision_is_one_line() {
        let entry = |more: serde_json::Value| {
            let mut whole =
                json!({"revision": "main@1f0c9a7be2d1", "time": "2026-01-02T03:04:05Z", "result": "Applied"});
            more.as_object().unwrap().iter().for_each(|(field, value)| whole[field] = value.clone());
            serde_json::from_value::<HistoryEntry>(whole).unwrap()
        };
        let full = json!({"subject": "Open", "author": "Ada", "duration": "1.2s", "changes": {"created": 3}});
        let shown = lines(&[entry(full), entry(json!({"result": "YamlInvalid"}))]);
        let words: Vec<String> =
            shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            words,
            [
                "History",
                "2026-01-02T03:04:05Z main@1f0c9a7b Applied 3 created in 1.2s Open (Ada)",
                "2026-01-02T03:04:05Z main@1f0c9a7b YamlInvalid",
            ]
        );
        assert_eq!(lines(&[]), "");
    }
}
