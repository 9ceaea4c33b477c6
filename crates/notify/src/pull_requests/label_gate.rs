//! The permission of a maintainer for the commit of a fork: a label.
//!
//! In: the newest commit of a pull request and the presence of the label, as each list has them.
//! Out: the commits that a label was given to.
//!
//! A label stays when its author pushes another commit. Therefore it counts only for a commit that
//! was seen without it before: the maintainer could see that commit. For another commit it is
//! removed and given again.

/// The label of one pull request, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelGate {
    /// The commit that was seen last without the label.
    unlabelled: Option<Box<str>>,
    /// The commit that the label was given to.
    allowed: Option<Box<str>>,
}

impl LabelGate {
    /// Takes up what a list says; true if the commit is allowed.
    #[must_use]
    pub fn observe(&mut self, head: &str, has_label: bool) -> bool {
        if !has_label {
            (self.unlabelled, self.allowed) = (Some(head.into()), None);
            return false;
        }
        if self.unlabelled.as_deref() == Some(head) {
            self.allowed = Some(head.into());
        } else {
            // The label is that of another commit, and what was seen before it counts no more.
            self.unlabelled = None;
        }
        self.allowed.as_deref() == Some(head)
    }

    /// Returns the commit that the label was given to, also after a push of another one.
    pub fn allowed(&self) -> Option<&str> {
        self.allowed.as_deref()
    }

    /// Allows a commit that an earlier daemon has planned already.
    pub fn restore(&mut self, head: &str) {
        self.allowed = Some(head.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_counts_for_the_commit_that_it_was_given_to() {
        for (seen, expect) in [
            // Seen, then labelled.
            (vec![("a", false), ("a", true)], true),
            (vec![("a", false), ("a", true), ("a", true)], true),
            // A push after the label, and a push before it that nobody saw.
            (vec![("a", false), ("a", true), ("b", true)], false),
            (vec![("a", false), ("b", true)], false),
            (vec![("a", true)], false),
            (vec![("a", true), ("b", true)], false),
            // Pushed back to a commit that was seen before the label of another one.
            (vec![("b", false), ("a", true), ("b", true)], false),
            (vec![("b", false), ("a", false), ("a", true), ("b", true)], false),
            // Removed and given again.
            (vec![("a", false), ("a", true), ("b", true), ("b", false), ("b", true)], true),
            (vec![("a", false), ("a", true), ("a", false)], false),
            // Pushed back to what was allowed.
            (vec![("a", false), ("a", true), ("b", true), ("a", true)], true),
        ] {
            let mut gate = LabelGate::default();
            let mut last = false;
            for (head, has_label) in &seen {
                last = gate.observe(head, *has_label);
            }
            assert_eq!(last, expect, "{seen:?}");
        }
        let mut gate = LabelGate::default();
        gate.restore("a");
        assert!(gate.observe("a", true) && !gate.observe("b", true) && !gate.observe("a", false));
    }
}
