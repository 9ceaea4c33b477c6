//! Author and subject of a commit, for a readable history.
//!
//! In: a repository and a commit.
//! Out: a [`CommitSummary`]: single lines of bounded length, without control and invisible
//! characters.

use super::revision::ObjectHash;
use moorline_core::sanitize::sanitize;

/// Maximum number of characters of a subject and of a name.
const MAX_CHARACTERS: usize = 100;

/// The author and the subject of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitSummary {
    /// First line of the message.
    pub subject: String,
    /// Name of the author.
    pub author: String,
}

/// Reads the summary of a commit; none if it cannot be read.
pub(super) fn read(repository: &git2::Repository, commit: ObjectHash) -> Option<CommitSummary> {
    let commit = repository.find_commit(commit.oid()).ok()?;
    let subject = clean(commit.summary_bytes().unwrap_or_default());
    Some(CommitSummary { subject, author: clean(commit.author().name_bytes()) })
}

fn clean(text: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(text).chars().filter(|char| !is_unseen(*char)).collect();
    let text = sanitize(text.trim());
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// True for a character without width, or one that only affects the display of others.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bounded_and_harmless() {
        assert_eq!(clean(b" Add the shop\n"), "Add the shop");
        assert_eq!(clean(b"\x1b[31mred\x07"), "\u{fffd}[31mred\u{fffd}");
        assert_eq!(clean("a\u{202e}b\u{2066}c".as_bytes()), "a\u{fffd}b\u{fffd}c");
        assert_eq!(clean("ad\u{200b}m\u{feff}in\u{200d}\u{61c}".as_bytes()), "admin");
        assert_eq!(clean(b"caf\xe9"), "caf\u{fffd}");
        assert_eq!(clean("é".repeat(200).as_bytes()), "é".repeat(100) + "…");
        assert_eq!(clean("é".repeat(100).as_bytes()), "é".repeat(100));
    }
}
