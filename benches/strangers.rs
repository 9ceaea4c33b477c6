//! A team among other tenants: the time of its commits while others fail, flood the daemon, or
//! serve it malicious repositories. `cargo bench --bench strangers -- [row...] [--rounds N]
//! [--large N]` prints a line of JSON for each row on standard output, and a table with the limits
//! on standard error.
//!
//! Each row with a neighbour has two control planes with a daemon each: on one the team is alone,
//! on the other it shares the daemon with the neighbour. They are measured in turn, and the
//! neighbour is suspended while the other is measured.

#[path = "strangers"]
mod parts {
    pub(crate) mod bombs;
    pub(crate) mod neighbours;
    pub(crate) mod place;
    pub(crate) mod row;
}

use std::process::ExitCode;

use parts::neighbours::Neighbour;
use parts::row::Row;
use parts::{bombs, neighbours};

/// All rows, in the order of measurement.
const ROWS: [&str; 4] = ["bombs", "failing", "crowd", "large"];

/// Rows and sizes to measure.
struct Arguments {
    rows: Vec<String>,
    rounds: usize,
    /// Number of objects of the largest neighbour.
    large: usize,
}

impl Arguments {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { rows: Vec::new(), rounds: 5, large: 100_000 };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut number = || {
                let number = words.next().and_then(|number| number.parse::<usize>().ok());
                number.filter(|number| *number > 0).ok_or_else(|| format!("{word} wants a number"))
            };
            match &*word {
                // Argument by which Cargo marks a benchmark run.
                "--bench" => {}
                "--rounds" => arguments.rounds = number()?,
                "--large" => arguments.large = number()?,
                row if ROWS.contains(&row) => arguments.rows.push(word),
                _ => return Err(format!("{word} is none of --rounds N, --large N, {}", ROWS.join(", "))),
            }
        }
        Ok(arguments)
    }

    fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|one| one == row)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(64);
        }
    };
    let mut rows: Vec<Row> = Vec::new();
    if arguments.wants("bombs") {
        rows.push(bombs::bombs().await);
    }
    let all = [
        ("failing", Neighbour::Failing { objects: 200 }),
        ("crowd", Neighbour::Crowd { syncs: 1000 }),
        ("large", Neighbour::Large { objects: arguments.large }),
    ];
    for (name, neighbour) in all {
        if arguments.wants(name) {
            rows.push(neighbours::row(name, neighbour, arguments.rounds).await);
        }
    }
    eprintln!("\n| row | what | measured | bar | |\n|---|---|---|---|---|");
    rows.iter().for_each(Row::print);
    ExitCode::SUCCESS
}
