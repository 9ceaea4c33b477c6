//! What helm printed: the objects, or what it found wrong.
//!
//! In: its output, and the run that it is of. Out: what was found, each object with the template that it comes from, by the comments that
//! helm puts before each; or a message in which places are those of the repository and values are left out.

use std::sync::Arc;

use super::invocation::Invocation;
use crate::cost;
use crate::documents::{self, FileContent, MAX_PROBLEMS_PER_FILE};
use crate::packed::Packed;
use crate::problem::Problem;
use crate::{Found, Variables, object as object_of};
use moorline_core::tree::{Entry, FileTree, normalise};

/// What stands before each object in the output, with the template's name.
const SOURCE: &str = "# Source: ";

/// What people read behind the name of a template: the line that follows is one of what helm prints.
const AS_PRINTED: &str = " (as helm template prints it)";

/// The most bytes of what helm says that are told.
const MAX_WORDS: usize = 4096;

/// The objects in the output, and the output as the files that their places are in.
pub(crate) fn templated(
    run: &Invocation,
    output: Arc<[u8]>,
    variables: Option<&Variables>,
) -> (Found<Packed>, FileTree) {
    let mut found = Found::default();
    if let Err(no_room) = run.room.take(cost::of_file(&output)) {
        found.problems.push(no_room.into());
        return (found, FileTree::default());
    }
    let sources = Sources::read(run, &output);
    match documents::read_parts(&output, |line| sources.of(line), &run.room) {
        Err(problem) => found.problems.push(problem),
        Ok(FileContent::NoManifests) => {}
        Ok(FileContent::Manifests(manifests)) => {
            for manifest in manifests {
                let object = manifest.map_err(|problem| vec![problem]);
                match object.and_then(|manifest| object_of(manifest, &output, variables, &run.room)) {
                    Ok(object) => found.objects.push(object),
                    Err(problems) => found.problems.extend(problems),
                }
                if found.problems.len() >= MAX_PROBLEMS_PER_FILE {
                    break;
                }
            }
        }
    }
    if found.objects.is_empty() && found.problems.is_empty() {
        found.problems.push(Problem::NothingTemplated { path: run.shown().to_owned() });
    }
    let files = sources.0.iter().map(|(_, name)| normalise("", name).unwrap_or_default());
    let tree: FileTree = files.map(|name| (name, Entry::File(output.clone()))).collect();
    (found, tree.within(run.room.clone()))
}

/// Which lines come from which template: where each begins, from 1.
pub(crate) struct Sources(Vec<(u32, Arc<str>)>);

impl Sources {
    pub(crate) fn read(run: &Invocation, output: &[u8]) -> Self {
        let text = String::from_utf8_lossy(output);
        let mut begins = vec![(1, Arc::from(format!("{}{AS_PRINTED}", run.shown())))];
        let mut last = "";
        for (line, text) in (1_u32..).zip(text.lines()) {
            let source = text.strip_prefix(SOURCE).filter(|_| last.trim_end() == "---");
            begins.extend(
                source.map(|source| (line, Arc::from(format!("{}{AS_PRINTED}", run.place(source.trim()))))),
            );
            last = text;
        }
        Self(begins)
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(_, name)| name.to_string())
    }

    /// The template that a line comes from.
    pub(crate) fn of(&self, line: u32) -> Arc<str> {
        let after = self.0.partition_point(|(begin, _)| *begin <= line);
        self.0.get(after.saturating_sub(1)).map_or_else(|| "".into(), |(_, name)| name.clone())
    }
}

/// What helm said of a chart that it does not render, for people.
pub fn told(run: &Invocation, words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let lines = text.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("Use --debug flag"));
    let mut said = String::new();
    for line in lines.map(|line| without_values(line.trim_start_matches("Error: "))) {
        said += if said.ends_with(':') || said.is_empty() { " " } else { "; " };
        said += &line;
    }
    let mut text = run.placed(&said).trim().to_owned();
    if text.len() > MAX_WORDS {
        let end = (0..=MAX_WORDS).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// A line without the values that it may quote, which may be of Secrets: what could not be read as a number or a type, and what
/// does not fit a schema.
fn without_values(line: &str) -> String {
    const HIDDEN: &str = "(a value, not shown)";
    if let Some((place, said)) = line.strip_prefix("- at '").and_then(|rest| rest.split_once("': '")) {
        let kinds = ["' does not match pattern", "' is not valid"];
        let kind = kinds.iter().find_map(|kind| said.rfind(kind).map(|at| &said[at + 1..]));
        return format!("- at '{place}': {HIDDEN}{}", kind.unwrap_or(" is not as the schema wants it"));
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
        check("- at '/p': 'hunter2'", "- at '/p': (a value, not shown) is not as the schema wants it");
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
