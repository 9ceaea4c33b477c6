//! Suggestions for mistyped names, for messages that end in "did you mean".
//!
//! In: the text that was written and the valid names.
//! Out: the name to suggest, if one is similar enough.

/// Returns the name among `known` with the fewest edits from `written`; none if all differ too
/// much.
pub fn nearest_name<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong; in a name of three letters one may be.
    let limit = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (edits(&written.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Counts the letters that must be inserted, removed, replaced or swapped with the next one.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
        check("spec", None);
        check("", None);
    }
}
