//! Command line of the benchmark.
//!
//! In: the arguments after `cargo bench --bench loop --`.
//! Out: rows and sizes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::workload::EACH;

/// All rows, in the order of measurement.
pub(crate) const ROWS: [&str; 10] =
    ["first", "same", "change", "repair", "prune", "idle", "large", "restart", "many", "beside"];

/// Rows and sizes to measure.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    rows: BTreeSet<String>,
    /// Number of applications of the one Sync; ten times as many for the rows `large` and
    /// `restart`.
    pub(crate) applications: usize,
    /// Number of measurements of a first sync and its floor.
    pub(crate) rounds: usize,
    /// The older binary for the row `beside`.
    pub(crate) before: Option<PathBuf>,
    /// The binary that is compared with it; none: the one of this build.
    pub(crate) after: Option<PathBuf>,
}

impl Arguments {
    /// Parses the arguments, or returns an error.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments =
            Self { rows: BTreeSet::new(), applications: 250, rounds: 3, before: None, after: None };
        let mut words = words;
        while let Some(word) = words.next() {
            if word == "--before" {
                arguments.before = Some(words.next().ok_or("--before wants an older binary")?.into());
                continue;
            }
            if word == "--after" {
                arguments.after = Some(words.next().ok_or("--after wants a newer binary")?.into());
                continue;
            }
            let mut number = || {
                let number = words.next().and_then(|number| number.parse::<usize>().ok());
                number.filter(|number| *number > 0).ok_or_else(|| format!("{word} wants a number"))
            };
            match &*word {
                // Argument by which Cargo marks a benchmark run.
                "--bench" => {}
                "--objects" => arguments.applications = number()?.div_ceil(EACH).max(20),
                "--rounds" => arguments.rounds = number()?,
                row if ROWS.contains(&row) => drop(arguments.rows.insert(word)),
                _ => {
                    return Err(format!(
                        "{word} is none of --objects N, --rounds N, --before BINARY, --after BINARY, {}",
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

    /// True if this row should be measured.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows.contains(row) || self.rows.is_empty() && row != "beside"
    }
}
