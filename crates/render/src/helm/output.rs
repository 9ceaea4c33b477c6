//! Reads the output of helm: objects, or an error message.
//!
//! In: the output, and its run. Out: objects, each with its template, taken from the comments that
//! helm prints before each; or an error message with the paths of the repository and without
//! values.

use std::sync::Arc;

use super::invocation::Invocation;
use super::test_hooks::run_tests_after_sync;
use crate::documents::{self, FileContent, MAX_PROBLEMS_PER_FILE};
use crate::packed_object::PackedObject;
use crate::problem::Problem;
use crate::rendered::Findings;
use crate::{Variables, object_of_manifest as object_of};
use moorline_core::tree::{FileTree, TreeEntry, TreeError, normalise};
use moorline_kustomize::host::TemplateSources;
use moorline_yaml as yaml;

/// Prefix of the comment before each object, followed by the template's name.
const SOURCE: &str = "# Source: ";

/// Suffix of a template's name in messages: line numbers are those of helm's output.
const AS_PRINTED: &str = " (as helm template prints it)";

/// Most bytes of an error message of helm that are passed on.
const MAX_WORDS: usize = 4096;

/// Replacement for a message of helm that may quote secret values.
const MESSAGE_HIDDEN: &str = "the message is not shown, because it may contain a value of a Secret or of a decrypted file; `helm template` with these values shows it";

/// Returns the objects in the output, and a tree of the output in which their positions are found.
pub(crate) fn parse_output(
    run: &Invocation,
    output: Arc<[u8]>,
    variables: Option<&Variables>,
) -> (Findings<PackedObject>, FileTree) {
    let mut found = Findings::default();
    if let Err(no_room) = run.memory_limit.reserve(yaml::estimate_file(&output)) {
        found.problems.push(no_room.into());
        return (found, FileTree::default());
    }
    let ciphertext = run.ciphertext.as_ref().filter(|_| has_ciphertext(&output));
    if let Some(error) = ciphertext {
        found.problems.push(TreeError::Encrypted { error: error.clone() }.into());
        return (found, FileTree::default());
    }
    let sources = template_sources(run, &output);
    let contains_secret = run.contains_secret();
    match documents::read_parts(&output, |line| sources.template_at(line), &run.memory_limit) {
        Err(problem) if run.contains_secret() => found.problems.push(problem.redacted()),
        Err(problem) => found.problems.push(problem),
        Ok(FileContent::NoManifests) => {}
        Ok(FileContent::Manifests(manifests)) => {
            for manifest in manifests {
                let object = manifest.map_err(|problem| vec![problem]);
                let made = object.and_then(|mut manifest| {
                    if run.test_hooks {
                        run_tests_after_sync(&mut manifest.body);
                    }
                    object_of((manifest, contains_secret), &output, variables, &run.memory_limit)
                });
                match made {
                    Ok(object) => found.objects.push(object),
                    Err(problems) if contains_secret => {
                        found.problems.extend(problems.into_iter().map(Problem::redacted));
                    }
                    Err(problems) => found.problems.extend(problems),
                }
                if found.problems.len() >= MAX_PROBLEMS_PER_FILE {
                    break;
                }
            }
        }
    }
    if found.objects.is_empty() && found.problems.is_empty() {
        found.problems.push(Problem::NothingTemplated { path: run.display_folder().to_owned() });
    }
    let files = sources.names().map(|name| normalise("", name).unwrap_or_default());
    let tree: FileTree = files.map(|name| (name, TreeEntry::File(output.clone()))).collect();
    (found, tree.with_memory_limit(run.memory_limit.clone()))
}

/// True if an output has a value that SOPS encrypted.
pub(super) fn has_ciphertext(output: &[u8]) -> bool {
    const MARK: &[u8] = b"ENC[AES256_GCM,";
    output.windows(MARK.len()).any(|part| part == MARK)
}

/// Reads the templates of an output from the comments in it.
pub(crate) fn template_sources(run: &Invocation, output: &[u8]) -> TemplateSources {
    let text = String::from_utf8_lossy(output);
    let mut begins = vec![(1, Arc::from(format!("{}{AS_PRINTED}", run.display_folder())))];
    let mut last = "";
    for (line, text) in (1_u32..).zip(text.lines()) {
        let source = text.strip_prefix(SOURCE).filter(|_| last.trim_end() == "---");
        begins
            .extend(source.map(|source| {
                (line, Arc::from(format!("{}{AS_PRINTED}", run.template_path(source.trim()))))
            }));
        last = text;
    }
    TemplateSources::new(begins)
}

/// Returns helm's error message for a chart that it does not render, for people. Of a run with
/// secret values there is only the place: templates can put any form of a value into a message.
pub fn error_message(run: &Invocation, words: &[u8]) -> String {
    if run.contains_secret() {
        let place = error_place(run, words).map_or_else(String::new, |place| format!("{place}: "));
        return place + MESSAGE_HIDDEN;
    }
    let text = String::from_utf8_lossy(words);
    let lines = text.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("Use --debug flag"));
    let mut said = String::new();
    for line in lines.map(|line| without_values(line.trim_start_matches("Error: "))) {
        said += if said.ends_with(':') || said.is_empty() { " " } else { "; " };
        said += &line;
    }
    let mut text = run.translate_paths(&said).trim().to_owned();
    if text.len() > MAX_WORDS {
        let end = (0..=MAX_WORDS).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// Returns the first line of the chart that a message names.
fn error_place(run: &Invocation, words: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(words);
    text.split(|char: char| char.is_whitespace() || "()<>\"".contains(char)).find_map(|word| {
        let mut parts = word.split(':');
        let (template, line) = (parts.next()?, parts.next()?);
        run.line_place(template, line.parse().ok()?)
    })
}

/// Removes quoted values from a line, because they may come from Secrets: values that do not parse
/// as a number or type, and values that do not match a schema.
fn without_values(line: &str) -> String {
    const HIDDEN: &str = "(a value, not shown)";
    if let Some((place, said)) = line.strip_prefix("- at '").and_then(|rest| rest.split_once("': '")) {
        let kinds = ["' does not match pattern", "' is not valid"];
        let kind = kinds.iter().find_map(|kind| said.rfind(kind).map(|at| &said[at + 1..]));
        return format!("- at '{place}': {HIDDEN}{}", kind.unwrap_or(" does not match the schema"));
    }
    let mut line = line.to_owned();
    for (open, close) in [("`", "`"), ("parsing \"", "\": ")] {
        let mut shown = String::new();
        let mut rest = line.as_str();
        while let Some((before, after)) = rest.split_once(open) {
            let end = if open == close { after.find(close) } else { after.rfind(close) };
            shown = shown + before + open.trim_end_matches(['"', '`']) + HIDDEN;
            rest = end.map_or("", |end| after[end..].trim_start_matches(['"', '`']));
        }
        line = shown + rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_quoted_are_left_out() {
        let check = |line: &str, expect: &str| assert_eq!(without_values(line), expect);
        check(
            "- at '/p': 'hunter2' does not match pattern 'a'",
            "- at '/p': (a value, not shown) does not match pattern 'a'",
        );
        check(
            "- at '/p': 'hunter2' is not valid email: no @",
            "- at '/p': (a value, not shown) is not valid email: no @",
        );
        check("- at '/p': 'hunter2'", "- at '/p': (a value, not shown) does not match the schema");
        check("- at '/p': got string, want integer", "- at '/p': got string, want integer");
        check(
            "cannot unmarshal !!str `hunter2` into int, !!str `hunt``",
            "cannot unmarshal !!str (a value, not shown) into int, !!str (a value, not shown)",
        );
        check(
            "atoi: parsing \"hun\"ter2\": invalid syntax",
            "atoi: parsing (a value, not shown): invalid syntax",
        );
        check(
            "execution error at (a/templates/b.yaml:1:2): no",
            "execution error at (a/templates/b.yaml:1:2): no",
        );
    }
}
