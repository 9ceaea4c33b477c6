//! A person's answer to a Sync deletion that waits.
//!
//! In: the value of [`DELETION_ANNOTATION`](super::DELETION_ANNOTATION) and the generation of the
//! Sync.
//! Out: the deletion policy that the person chose. An answer is valid for one generation: any later
//! change of the spec makes it void, and so does the deletion itself.

use super::DeletionPolicy;

/// The finalizer that keeps a Sync until its objects are deleted.
pub const FINALIZER: &str = "moorline.dev/delete";

/// Formats the annotation value that chooses `policy` for a Sync of this generation.
pub fn format_deletion_answer(policy: DeletionPolicy, generation: i64) -> String {
    let word = match policy {
        DeletionPolicy::Orphan => "Orphan",
        DeletionPolicy::Delete => "Delete",
    };
    format!("{word}@{generation}")
}

/// Reads an annotation value; none unless it is an answer for this generation.
pub fn parse_deletion_answer(text: &str, generation: i64) -> Option<DeletionPolicy> {
    let policies = [DeletionPolicy::Orphan, DeletionPolicy::Delete];
    policies.into_iter().find(|policy| format_deletion_answer(*policy, generation) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_one_generation() {
        for policy in [DeletionPolicy::Orphan, DeletionPolicy::Delete] {
            let text = format_deletion_answer(policy, 7);
            assert_eq!(parse_deletion_answer(&text, 7), Some(policy));
            assert_eq!(parse_deletion_answer(&text, 8), None);
        }
        for text in ["", "Delete", "delete@7", "Delete@", "Delete@07", "Delete@7 "] {
            assert_eq!(parse_deletion_answer(text, 7), None, "{text}");
        }
    }
}
