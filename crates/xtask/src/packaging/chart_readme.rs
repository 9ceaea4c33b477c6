//! README of the chart, written from its values.
//!
//! In: `values.yaml`, whose comments stand above the values that they explain. Out: a page with a
//! table of all values.

use std::fmt::Write;

/// Value of the chart.
#[derive(Debug, PartialEq)]
struct Value {
    /// Path as `--set` takes it.
    path: String,
    /// Default as it stands in the file; none for a group of values.
    default: Option<String>,
    description: String,
}

/// Writes the page.
pub(crate) fn page(values: &str) -> String {
    let mut page = String::from(
        "# Chart of Moorline\n\n\
        This chart installs the CRD of Sync, the daemon, its permissions and, if `sync.url` is set, a first Sync.\n\
        [docs/install.md](../../docs/install.md) explains the installation. `cargo xtask chart-readme` writes this page from\n\
        `values.yaml`.\n\n\
        ```sh\n\
        helm install moorline charts/moorline -n moorline --create-namespace --set image.repository=IMAGE\n\
        ```\n\n\
        | value | default | meaning |\n|---|---|---|\n",
    );
    for value in read(values) {
        let default = value.default.map(|default| format!("`{default}`")).unwrap_or_default();
        _ = writeln!(page, "| `{}` | {} | {} |", value.path, cell(&default), cell(&value.description));
    }
    page
}

/// Text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Reads the values in their order. Lists and texts of several lines are no values of their own.
fn read(values: &str) -> Vec<Value> {
    let mut read = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    // Defaults with lines of their own are shown by their key alone.
    for (at, line) in values.lines().enumerate() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(words) = text.strip_prefix('#') {
            comment.push(words.strip_prefix(' ').unwrap_or(words));
            continue;
        }
        let Some((key, default)) = text.split_once(':').filter(|_| !text.starts_with('-')) else {
            comment.clear();
            continue;
        };
        while parents.last().is_some_and(|(other, _)| *other >= indent) {
            parents.pop();
        }
        let path = parents.iter().map(|(_, key)| key.as_str()).chain([key]).collect::<Vec<_>>().join(".");
        let default = default.trim();
        let has_more =
            default.is_empty() && values.lines().nth(at + 1).is_some_and(|next| is_deeper(next, indent));
        read.push(Value {
            path,
            default: (!has_more).then(|| if default.is_empty() { "null".into() } else { default.to_owned() }),
            description: description(&comment),
        });
        comment.clear();
        parents.push((indent, key.to_owned()));
    }
    // A group that nobody explains says no more than its values.
    read.retain(|value| value.default.is_some() || !value.description.is_empty());
    read
}

/// Comment as one text, without an example of several lines and the words that lead to it.
fn description(comment: &[&str]) -> String {
    let lines: Vec<&str> = comment.iter().copied().take_while(|line| !line.starts_with("  ")).collect();
    let text = lines.join(" ");
    match text.strip_suffix(':') {
        Some(text) => text.rsplit_once(". ").map_or(String::new(), |(before, _)| format!("{before}.")),
        None => text,
    }
}

fn is_deeper(line: &str, indent: usize) -> bool {
    line.len() - line.trim_start().len() > indent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_the_comment_above_it() {
        let values = "# The head of the file.\n\n# A group. An example:\n#   - a: b\nsync:\n  name: default\n  # Where it\n  # lies.\n  url: \"\"\nbare:\n  a: 1\n";
        let value = |path: &str, default: Option<&str>, description: &str| Value {
            path: path.into(),
            default: default.map(str::to_owned),
            description: description.into(),
        };
        assert_eq!(
            read(values),
            [
                value("sync", None, "A group."),
                value("sync.name", Some("default"), ""),
                value("sync.url", Some("\"\""), "Where it lies."),
                value("bare.a", Some("1"), ""),
            ]
        );
    }
}
