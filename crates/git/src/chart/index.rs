//! Reads the versions of a chart from the index of a repository.
//!
//! In: the bytes of `index.yaml`, a name, possibly a version.
//! Out: an [`IndexEntry`], or all of them. An index lists every version of every chart, so only the
//! section of one chart is parsed as YAML, if its lines can be found.

use std::borrow::Cow;

use serde_json::Value;

use super::reference::Digest;
use moorline_core::did_you_mean::nearest_name;
use moorline_yaml::{self as yaml, Dialect};

/// Maximum number of bytes of an index.
pub(super) const MAX_BYTES: u64 = 50 * 1024 * 1024;

/// Maximum number of bytes parsed as YAML: of a whole index, or of the section of one chart.
const MAX_READ_BYTES: usize = 8 * 1024 * 1024;

/// The archive of a chart version in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct IndexEntry {
    pub(super) version: String,
    /// As written: absolute, or relative to the index.
    pub(super) url: String,
    pub(super) digest: Option<Digest>,
}

/// Finds a version in an index. The error is the rest of a sentence.
pub(super) fn find(index: &[u8], name: &str, version: &str) -> Result<IndexEntry, Cow<'static, str>> {
    let versions = versions(index, name)?;
    let Some(found) = versions.iter().find(|entry| entry.version == version) else {
        let near = nearest_name(version, versions.iter().map(|entry| &*entry.version));
        let near = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        return Err(format!("has no version {version} of {name}{near}").into());
    };
    match found.url.is_empty() {
        true => Err(format!("names no URL for version {version} of {name}").into()),
        false => Ok(found.clone()),
    }
}

/// Returns all versions of a chart. The error is the rest of a sentence.
pub(super) fn versions(index: &[u8], name: &str) -> Result<Vec<IndexEntry>, Cow<'static, str>> {
    let text = std::str::from_utf8(index).map_err(|_| "is not UTF-8")?;
    let (part, is_part) = match part(text, name) {
        Some(part) => (part, true),
        None => (text, false),
    };
    if part.len() > MAX_READ_BYTES {
        return Err(match is_part {
            true => format!("has more than {MAX_READ_BYTES} bytes about {name}").into(),
            false => {
                format!("is too large to be parsed as a whole, and has no separate section for {name}").into()
            }
        });
    }
    let documents = yaml::read("index.yaml", part.as_bytes(), Dialect::Kubectl);
    let documents = documents.map_err(|error| format!("is not YAML at line {}", error.line()))?;
    let whole = documents.into_iter().next().map_or(Value::Null, |document| document.value);
    let entries = if is_part { &whole } else { &whole["entries"] };
    let Some(charts) = entries.as_object() else {
        return Err("has no entries: it is the index of no repository".into());
    };
    let Some(versions) = charts.get(name).and_then(Value::as_array) else {
        let near = nearest_name(name, charts.keys().map(String::as_str));
        let near = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        return Err(format!("has no chart {name}{near}").into());
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |entry: &Value| IndexEntry {
        version: text(&entry["version"]),
        url: text(&entry["urls"][0]),
        digest: Digest::parse(&text(&entry["digest"])),
    };
    Ok(versions.iter().map(one).collect())
}

/// Returns the lines of one chart in an index in block style: from its name to the next line with
/// the same indentation.
fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let spellings = [format!("{name}:"), format!("\"{name}\":"), format!("'{name}':")];
    let mut lines = Lines { text, at: 0 };
    lines.find(|(_, line)| line.trim_end() == "entries:")?;
    let (mut margin, mut begin, mut end) = (None, None, text.len());
    for (at, line) in lines {
        let inner = line.trim_start_matches(' ');
        let indent = line.len() - inner.len();
        if inner.trim_end().is_empty() || inner.starts_with('#') {
            continue;
        }
        // All charts have the same indentation as the first one; their content is indented further
        // or is a list.
        let margin = *margin.get_or_insert(indent);
        let is_key = indent == margin && !inner.starts_with("- ");
        if indent < margin || is_key && begin.is_some() {
            end = at;
            break;
        }
        if is_key && spellings.iter().any(|it| *it == inner.trim_end()) {
            begin = Some(at);
        }
    }
    begin.map(|at| &text[at..end])
}

/// Lines with their offsets.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let at = self.at;
        self.at += length;
        Some((at, rest[..length].trim_end_matches(['\n', '\r'])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: &str = "apiVersion: v1\nentries:\n  other:\n  - version: 1.0.0\n    urls: [other.tgz]\n    description: |\n      web:\n      - x\n  web:\n  # words\n  - version: 1.1.0\n    digest: abcdef6789012345678901234567890123456789012345678901234567890123\n    urls:\n    - a/web-1.1.0.tgz\n\n  - version: 1.0.0\n    urls: [web-1.0.0.tgz]\n  webber:\n  - version: 2.0.0\ngenerated: \"x\"\n";

    fn check(index: &str, name: &str, version: &str, expect: Result<&str, &str>) {
        let found = find(index.as_bytes(), name, version);
        match (&found, expect) {
            (Ok(found), Ok(url)) => assert_eq!(found.url, url, "{name} {version}"),
            (Err(problem), Err(part)) => assert!(problem.contains(part), "{name} {version}: {problem}"),
            _ => panic!("{name} {version}: {found:?}"),
        }
    }

    #[test]
    fn a_version_is_found_by_its_chart_and_name() {
        check(BLOCKS, "web", "1.1.0", Ok("a/web-1.1.0.tgz"));
        check(BLOCKS, "web", "1.0.0", Ok("web-1.0.0.tgz"));
        check(BLOCKS, "other", "1.0.0", Ok("other.tgz"));
        check(BLOCKS, "web", "1.0.1", Err("has no version 1.0.1 of web (did you mean 1.0.0?)"));
        check(BLOCKS, "wep", "1.0.0", Err("has no chart wep (did you mean web?)"));
        check(BLOCKS, "webber", "2.0.0", Err("names no URL"));
        assert!(find(BLOCKS.as_bytes(), "web", "1.1.0").unwrap().digest.is_some());
        let json = r#"{"entries": {"web": [{"version": "1.0.0", "urls": ["https://host/web.tgz"]}]}}"#;
        check(json, "web", "1.0.0", Ok("https://host/web.tgz"));
        check("entries:\n  \"web\":\n    - version: 1.0.0\n      urls: [x]\n", "web", "1.0.0", Ok("x"));
        check("<html></html>", "web", "1.0.0", Err("no entries"));
        check("a: [", "web", "1.0.0", Err("not YAML"));
        check("", "web", "1.0.0", Err("no entries"));
    }

    #[test]
    fn a_large_index_is_read_in_part() {
        let mut index = "entries:\n".to_owned();
        for at in 0..60_000 {
            let words = "x".repeat(200);
            index += &format!(
                "  chart-{at}:\n  - version: 1.0.0\n    description: {words}\n    urls: [c-{at}.tgz]\n"
            );
        }
        assert!(index.len() > MAX_READ_BYTES);
        check(&index, "chart-59999", "1.0.0", Ok("c-59999.tgz"));
        check(&index, "none", "1.0.0", Err("too large to be parsed as a whole"));
        let much = format!("entries:\n  web:\n  - version: {}\n", "x".repeat(MAX_READ_BYTES));
        check(&much, "web", "1.0.0", Err("more than"));
    }
}
