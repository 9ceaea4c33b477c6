//! The last line of a comment: the commit that it is about, and the hash of its plans.
//!
//! In: a comment, and later the same comment as the host has it.
//! Out: its record, by which a daemon that has just started knows that nothing has changed. The
//! hash leaves out the base, so that a comment stays when the base moves and the plan does not.

use sha2::{Digest as _, Sha256};

/// Beginning and end of the line.
const LINE: (&str, &str) = ("<!-- moorline-plan-of: ", " -->");
/// Bytes of a hash that are written.
const HASH_BYTES: usize = 16;

/// A plan that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRecord {
    /// The proposed commit.
    pub head: Box<str>,
    /// The hash of the plan.
    pub hash: Box<str>,
}

impl PlanRecord {
    /// Returns the record of a comment without the base.
    pub fn new(head: &str, text: &str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let hash: String = digest.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
        Self { head: head.into(), hash: hash.into() }
    }
}

/// Adds the record to a comment.
pub fn with_record(text: &str, record: &PlanRecord) -> String {
    format!("{text}\n{}{} {}{}\n", LINE.0, record.head, record.hash, LINE.1)
}

/// Reads the record of a comment; none if its last line is another one.
pub fn record_of(text: &str) -> Option<PlanRecord> {
    let line = text.trim_end().lines().next_back()?.trim_end();
    let (head, hash) = line.strip_prefix(LINE.0)?.strip_suffix(LINE.1)?.split_once(' ')?;
    Some(PlanRecord { head: head.into(), hash: hash.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_again() {
        let record = PlanRecord::new("1f0c", "the plan");
        assert_ne!(record, PlanRecord::new("1f0c", "another plan"));
        let text = with_record("the plan\n", &record);
        assert_eq!(record_of(&text).as_ref(), Some(&record));
        // Hosts may end lines in another way, and cut the last one.
        assert_eq!(record_of(text.replace('\n', "\r\n").trim_end()).as_ref(), Some(&record));
        assert_eq!(record_of("the plan"), None);
        assert_eq!(record_of(&format!("{text}more")), None);
    }
}
