//! Suggestions for mistyped names, for messages that end in "did you mean".
//!
//! In: the text that was written and the valid names.
//! Out: the name to suggest, if one is similar enough.

use strsim::osa_distance;

/// Returns the name among `known` with the fewest edits from `written`; none if all differ too
/// much.
pub fn nearest_name<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Edits insert, remove or replace a letter, or swap it with the next one.
    // A third of the letters may be wrong; in a name of three letters one may be.
    let limit = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (osa_distance(&written.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_nonsense_finds_none() {
        let known = ["labels", "annotations", "name", "namespace"];
        let check = |written, expect| assert_eq!(nearest_name(written, known), expect, "{written}");
        check("lables", Some("labels"));
        check("Annotation", Some("annotations"));
        check("nmae", Some("name"));
        check("nam", Some("name"));
        check("namespcae", Some("namespace"));
        check("spec", None);
        check("", None);
    }
}
