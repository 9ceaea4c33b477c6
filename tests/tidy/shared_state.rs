//! The rule for the state that all Syncs of a daemon share: few fields, each with its one writer.
//!
//! In: the text of the file with `Context`.
//! Out: a field too many, or the fields whose comment names no writer.

/// Most fields of `Context`.
const FIELDS: usize = 10;
/// Words that name the writer of a field, in its comment.
const WRITERS: [&str; 3] = ["Written by", "are written by", "Set at the start"];

/// Returns what is wrong with the struct `Context` of a file.
pub(crate) fn problems(text: &str) -> Vec<String> {
    let body = text.split_once("pub struct Context {").map_or("", |(_, rest)| rest);
    let body = body.split_once("\n}").map_or("", |(body, _)| body);
    let (mut fields, mut comment, mut found) = (0, String::new(), Vec::new());
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(words) = line.strip_prefix("///") {
            comment.push_str(words);
            continue;
        }
        fields += 1;
        if !WRITERS.iter().any(|writer| comment.contains(writer)) {
            found.push(format!("the comment of `{line}` names no writer"));
        }
        comment.clear();
    }
    if fields > FIELDS || fields == 0 {
        found.push(format!("Context has {fields} fields, at most {FIELDS}"));
    }
    found
}

#[test]
fn a_field_without_a_writer_and_an_eleventh_field_are_found() {
    let of = |count: usize| {
        let fields: String = (0..count)
            .map(|at| format!("    /// It.\n    /// Written by a.\n    pub f{at}: u8,\n"))
            .collect();
        format!("use b;\n\npub struct Context {{\n{fields}}}\n\nstruct C {{ d: u8 }}\n")
    };
    assert_eq!(problems(&of(10)), Vec::<String>::new());
    assert_eq!(problems(&of(11)), ["Context has 11 fields, at most 10"]);
    assert_eq!(problems("struct A;"), ["Context has 0 fields, at most 10"]);
    let silent = of(2).replace("pub f1", "/// By all.\n    f9: u8,\n    pub f1");
    assert_eq!(problems(&silent), ["the comment of `pub f1: u8,` names no writer"]);
}
