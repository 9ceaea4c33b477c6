//! Writes an object as YAML that folds: each mapping and list with several lines can be closed.
//!
//! In: a redacted body. Out: HTML with `<details>`, which works without the script; the script adds
//! a search.

use serde_json::Value;

use super::html::Html;
use crate::yaml;

/// The most bytes of a body that are shown.
const MAX_BODY: usize = 200 << 10;
/// The fewest lines below a line that can be folded.
const MIN_LINES: usize = 2;
/// The most folds within each other.
const MAX_DEPTH: usize = 5;

/// Writes a body; `id` is unique on the page, and `label` names it for screen readers.
pub(super) fn write(html: &mut Html, id: &str, label: &str, body: &Value) {
    let text = yaml::write(body);
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_BODY).unwrap_or(text.len());
    let lines: Vec<&str> = text[..end].lines().collect();
    html.open("div", &[("class", "yaml"), ("tabindex", "0"), ("role", "region"), ("aria-label", label)]);
    write_lines(html, id, &lines, &fold_ends(&lines));
    if end < text.len() {
        html.text(&format!("… ({} bytes more)", text.len() - end));
    }
    html.close();
}

fn write_lines(html: &mut Html, id: &str, lines: &[&str], ends: &[usize]) {
    let mut open: Vec<usize> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        while open.last().is_some_and(|end| *end <= at) {
            open.pop();
            html.close();
        }
        if ends[at] - at > MIN_LINES && open.len() < MAX_DEPTH {
            html.open("details", &[("open", ""), ("id", &format!("{id}-{at}"))]);
            html.element("summary", &[], line);
            open.push(ends[at]);
        } else {
            html.text(line);
            html.text("\n");
        }
    }
    open.iter().for_each(|_| html.close());
}

/// For each line the end of the lines that belong to it, the line itself included.
fn fold_ends(lines: &[&str]) -> Vec<usize> {
    let mut ends: Vec<usize> = (1..=lines.len()).collect();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        // An empty line belongs to the text around it.
        if line.trim().is_empty() {
            continue;
        }
        let depth = depth_of(line);
        while let Some((start, _)) = open.pop_if(|(_, known)| *known >= depth) {
            ends[start] = at;
        }
        open.push((at, depth));
    }
    open.into_iter().for_each(|(start, _)| ends[start] = lines.len());
    ends
}

/// Depth of a line. The items of a list have the column of their key, and are deeper.
fn depth_of(line: &str) -> usize {
    let content = line.trim_start_matches(' ');
    2 * (line.len() - content.len()) + usize::from(content.starts_with("- "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_belongs_to_a_line_folds_with_it_and_the_text_stays_whole() {
        let body =
            json!({"kind": "A", "spec": {"items": [{"name": "a", "port": 1, "x": 2}, "b"], "last": 1}});
        let text = yaml::write(&body);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..4], ["spec:", "  items:", "  - name: a"]);
        assert_eq!(fold_ends(&lines), [1, 8, 7, 6, 5, 6, 7, 8]);
        let mut html = Html::default();
        write(&mut html, "live", "Live", &body);
        let html = html.finish();
        assert_eq!(html.matches("<details").count(), 3, "{html}");
        let shown: String =
            html.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
        let plain = |text: &str| text.replace('\n', "");
        assert_eq!(plain(&shown), plain(&text));
    }
}
