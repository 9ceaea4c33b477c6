//! Roll-back by hand: the annotations that hold a Sync at a revision, and what they say.
//!
//! In: the annotations of a Sync.
//! Out: [`RevisionHold`], with texts of bounded length.

/// Annotation on a Sync: the revision, or the commit, that it is held at until the annotation is
/// removed or names another one.
pub const HOLD_REVISION_ANNOTATION: &str = "moorline.dev/hold-revision";

/// Annotation on a Sync: the person who holds it at that revision.
pub const HOLD_BY_ANNOTATION: &str = "moorline.dev/hold-by";

/// Annotation on a Sync: the reason for that.
pub const HOLD_REASON_ANNOTATION: &str = "moorline.dev/hold-reason";

/// The most characters of a revision, and of a name or a reason: anyone may have written them.
const MAX_REVISION: usize = 512;
const MAX_WORDS: usize = 200;

/// A revision that a person chose, the person, and the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevisionHold {
    /// The revision, as `main@1f0c...`, or a commit.
    pub revision: String,
    /// The person; empty if nobody is named.
    pub by: String,
    /// The reason; empty if there is none.
    pub reason: String,
}

impl RevisionHold {
    /// Reads the annotations of a Sync; none if no revision is named.
    pub fn of_annotations<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let text = |key: &str, most| {
            let text = annotation(key).unwrap_or_default().trim();
            text.chars().filter(|it| !it.is_control()).take(most).collect::<String>()
        };
        let revision = text(HOLD_REVISION_ANNOTATION, MAX_REVISION);
        (!revision.is_empty()).then(|| Self {
            revision,
            by: text(HOLD_BY_ANNOTATION, MAX_WORDS),
            reason: text(HOLD_REASON_ANNOTATION, MAX_WORDS),
        })
    }

    /// Says who holds the Sync and why: ` by ada: the new one is slow`; empty if neither is known.
    pub fn who_and_why(&self) -> String {
        let by = if self.by.is_empty() { String::new() } else { format!(" by {}", self.by) };
        if self.reason.is_empty() { by } else { format!("{by}: {}", self.reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(all: &[(&str, &str)]) -> Option<RevisionHold> {
        RevisionHold::of_annotations(|key| all.iter().find(|(known, _)| *known == key).map(|(_, text)| *text))
    }

    #[test]
    fn a_revision_is_held_by_somebody_for_a_reason() {
        let revision = (HOLD_REVISION_ANNOTATION, " main@1f0c\n");
        let (by, reason) = ((HOLD_BY_ANNOTATION, "ada"), (HOLD_REASON_ANNOTATION, "it is\u{1b}[31m slow"));
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[by, reason, (HOLD_REVISION_ANNOTATION, "  ")]), None);
        for (all, expect) in [
            (vec![revision, by, reason], " by ada: it is[31m slow"),
            (vec![revision, reason], ": it is[31m slow"),
            (vec![revision, by], " by ada"),
            (vec![revision], ""),
        ] {
            let hold = read(&all).unwrap();
            assert_eq!((&*hold.revision, &*hold.who_and_why()), ("main@1f0c", expect));
        }
        let long = "x".repeat(1000);
        let hold = read(&[(HOLD_REVISION_ANNOTATION, &long), (HOLD_REASON_ANNOTATION, &long)]).unwrap();
        assert_eq!((hold.revision.len(), hold.reason.len()), (MAX_REVISION, MAX_WORDS));
    }
}
