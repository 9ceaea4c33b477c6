//! Command line of the benchmark.
//!
//! In: the arguments after `cargo bench --bench fleet --`.
//! Out: rows and sizes. The default sizes take seconds. The row `memory` takes minutes, and is
//! measured only if it is named.

use std::time::Duration;

/// All rows, in the order of measurement.
const ROWS: [&str; 3] = ["whole", "broken", "memory"];

/// Rows and sizes to measure.
pub(crate) struct Arguments {
    rows: Vec<String>,
    /// Number of clusters beside the home cluster.
    pub(crate) clusters: usize,
    /// Number of Syncs of each cluster.
    pub(crate) syncs: usize,
    /// Time in which an idle daemon is measured.
    pub(crate) idle: Duration,
    /// Number of alternating runs of the row `broken`.
    pub(crate) rounds: usize,
}

impl Arguments {
    /// Parses the arguments, or returns an error.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let idle = Duration::from_secs(10);
        let mut arguments = Self { rows: Vec::new(), clusters: 10, syncs: 5, idle, rounds: 1 };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut number = || {
                let number = words.next().and_then(|number| number.parse::<usize>().ok());
                number.filter(|number| *number > 0).ok_or_else(|| format!("{word} wants a number"))
            };
            match &*word {
                // Argument by which Cargo marks a benchmark run.
                "--bench" => {}
                "--clusters" => arguments.clusters = number()?,
                "--syncs" => arguments.syncs = number()?,
                "--idle" => arguments.idle = Duration::from_secs(number()? as u64),
                "--rounds" => arguments.rounds = number()?,
                row if ROWS.contains(&row) => arguments.rows.push(word),
                _ => {
                    return Err(format!(
                        "{word} is none of --clusters N, --syncs N, --idle SECONDS, --rounds N, {}",
                        ROWS.join(", ")
                    ));
                }
            }
        }
        Ok(arguments)
    }

    /// True if this row should be measured.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.names(row)
    }

    /// True if this row was named.
    pub(crate) fn names(&self, row: &str) -> bool {
        self.rows.iter().any(|one| one == row)
    }
}
