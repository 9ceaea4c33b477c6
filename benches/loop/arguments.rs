//! What is asked for on the command line.
//!
//! In: the words after `cargo bench --bench loop --`. Out: rows, and sizes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::workload::EACH;

/// Every row, in the order in which they are measured.
pub(crate) const ROWS: [&str; 10] =
    ["first", "same", "change", "repair", "prune", "idle", "large", "restart", "many", "beside"];

/// What is to be measured.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    rows: BTreeSet<String>,
    /// Applications of the one Sync; ten times as many for the rows `large` and `restart`.
    pub(crate) applications: usize,
    /// How often a first sync and its floor are measured.
    pub(crate) rounds: usize,
    /// The older binary of the row `beside`.
    pub(crate) before: Option<PathBuf>,
}

impl Arguments {
    /// Reads the words, or says what is wrong with them.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { rows: BTreeSet::new(), applications: 250, rounds: 3, before: None };
        let mut words = words;
        while let Some(word) = words.next() {
            if word == "--before" {
                arguments.before = Some(words.next().ok_or("--before wants an older binary")?.into());
                continue;
            }
            let mut number = || {
                let number = words.next().and_then(|number| number.parse::<usize>().ok());
                number.filter(|number| *number > 0).ok_or_else(|| format!("{word} wants a number"))
            };
            match &*word {
                // Cargo's own way to say that this is no test.
                "--bench" => {}
                "--objects" => arguments.applications = number()?.div_ceil(EACH).max(20),
                "--rounds" => arguments.rounds = number()?,
                row if ROWS.contains(&row) => drop(arguments.rows.insert(word)),
                _ => {
                    return Err(format!(
                        "{word} is none of --objects N, --rounds N, --before BINARY, {}",
                        ROWS.join(", ")
                    ));
                }
            }
        }
        if arguments.rows.contains("beside") && arguments.before.is_none() {
            return Err("the row beside wants --before BINARY".to_owned());
        }
        Ok(arguments)
    }

    /// True if this row is to be measured.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows.contains(row) || self.rows.is_empty() && row != "beside"
    }
}
