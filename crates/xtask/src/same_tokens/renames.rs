//! Table of renamed identifiers.
//!
//! In: lines `old new`; `#` begins a comment.
//! Out: the new name of an old one.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Renames(BTreeMap<String, String>);

impl Renames {
    /// Adds the renames of a file.
    pub(crate) fn read(&mut self, file: &str, text: &str) -> Result<(), String> {
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split('#').next().unwrap_or_default().split_whitespace().collect();
            match words[..] {
                [] => {}
                [old, new] => {
                    if self.0.insert(old.into(), new.into()).is_some_and(|other| other != new) {
                        return Err(format!("{file}:{line}: {old} is renamed twice"));
                    }
                }
                _ => return Err(format!("{file}:{line}: expected `old new`")),
            }
        }
        Ok(())
    }

    /// Returns the new name of an identifier, or the same name.
    pub(crate) fn now<'a>(&'a self, old: &'a str) -> &'a str {
        self.0.get(old).map_or(old, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_two_names_a_line() {
        let mut renames = Renames::default();
        renames.read("t", "# types\nWish ValidatedSpec\n\nTold WorkerEvent # of sync/follow\n").unwrap();
        assert_eq!((renames.now("Wish"), renames.now("Other")), ("ValidatedSpec", "Other"));
        assert_eq!(renames.read("t", "Wish\n"), Err("t:1: expected `old new`".into()));
        assert_eq!(renames.read("t", "\nWish Other\n"), Err("t:2: Wish is renamed twice".into()));
    }
}
