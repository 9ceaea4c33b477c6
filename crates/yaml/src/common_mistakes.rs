//! Recognizes three frequent mistakes: a Git merge conflict, an unrendered template, a tab.
//!
//! In: the text of a file that cannot be parsed, and the error. Out: the error, replaced by a
//! clearer one at the place of the mistake if it is one of these. Files that parse are never
//! checked.

use super::error::{ErrorKind, MarkedError};
use super::parser::Mark;

/// Prefixes of the lines by which Git marks a merge conflict.
const MARKERS: [&str; 3] = ["<<<<<<< ", ">>>>>>> ", "||||||| "];

/// Returns the error, or a clearer one for a frequent mistake.
pub(super) fn explain_mistake(bytes: &[u8], fault: MarkedError) -> MarkedError {
    let Ok(text) = std::str::from_utf8(bytes) else { return fault };
    if !matches!(fault.kind, ErrorKind::Syntax(_) | ErrorKind::Json(_) | ErrorKind::KeyCollection) {
        return fault;
    }
    let at = |line: usize, before: &str, kind: ErrorKind| {
        let offset: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        MarkedError::new(Mark::default().after(&text[..offset + before.len()]), kind)
    };
    let mut lines = text.split('\n').enumerate();
    if let Some((line, _)) = lines.find(|(_, line)| MARKERS.iter().any(|it| line.starts_with(it))) {
        return at(line, "", ErrorKind::MergeMarker);
    }
    // The parser may notice it one line later.
    let near = fault.mark.line.saturating_sub(1)..=fault.mark.line;
    let near = || text.split('\n').enumerate().filter(|(line, _)| near.contains(&saturated(*line)));
    if let Some((line, before)) = near().find_map(|(nth, line)| Some((nth, line.split_once("{{")?.0))) {
        return at(line, before, ErrorKind::Template);
    }
    let tab = near().find_map(|(nth, line)| {
        let indentation = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        Some((nth, indentation.split_once('\t')?.0))
    });
    match (tab, &fault.kind) {
        (Some((line, before)), ErrorKind::Syntax(_)) => at(line, before, ErrorKind::Tab),
        _ => fault,
    }
}

fn saturated(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, read};

    fn check(text: &str, expect: &str) {
        let told = read("app/web.yaml", text.as_bytes(), Dialect::Kubectl).unwrap_err().to_string();
        assert_eq!(told, format!("app/web.yaml:{expect}"), "{text:?}");
    }

    #[test]
    fn a_merge_that_nobody_finished_is_named() {
        let told = "found a Git merge conflict marker, expected a file without conflicts";
        check(
            "kind: ConfigMap\ndata:\n<<<<<<< HEAD\n  a: \"1\"\n=======\n  a: \"2\"\n>>>>>>> other\n",
            &format!("3:1: {told}"),
        );
        check("{\n<<<<<<< HEAD\n\"a\": 1}\n", &format!("2:1: {told}"));
    }

    #[test]
    fn a_template_that_nobody_rendered_is_named() {
        let told = "found `{{`, expected plain YAML: this is an unrendered template";
        check("kind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}-web\n", &format!("3:9: {told}"));
        check("kind: ConfigMap\nmetadata: {{ .Values.meta }}\n", &format!("2:11: {told}"));
        check("{{- if .Values.on }}\nkind: ConfigMap\n{{- end }}\n", &format!("1:1: {told}"));
    }

    #[test]
    fn a_tab_in_the_indentation_is_named() {
        let told = "found a tab in the indentation, expected spaces";
        check("kind: ConfigMap\ndata:\n\ta: one\n", &format!("3:1: {told}"));
        check("kind: ConfigMap\ndata:\n  a: one\n  \tb: two\n", &format!("4:3: {told}"));
    }

    #[test]
    fn other_mistakes_are_reported_unchanged() {
        check(
            "a: [1, 2\nb: 1\n",
            "2:2: found text that is not YAML: while parsing a flow sequence: did not find expected ',' or ']'",
        );
        // Braces and markers in a file that can be read are text.
        let sound = "a: |\n  {{ x }}\n  <<<<<<< HEAD\n";
        assert!(read("a.yaml", sound.as_bytes(), Dialect::Kubectl).is_ok());
    }
}
