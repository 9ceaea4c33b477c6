//! Measured figures and their limits.
//!
//! In: the figures of a row.
//! Out: one line of JSON for programs, and lines of a table for people.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ground::Usage;

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Number of objects in the inventory.
    pub(crate) objects: usize,
    /// Seconds from the cause to the effect; `None` if there was no effect.
    pub(crate) wall: Option<f64>,
    pub(crate) used: Usage,
    pub(crate) checks: Vec<Check>,
    /// Further figures.
    pub(crate) more: Map<String, Value>,
}

/// A figure and its limit.
#[derive(Debug)]
pub(crate) struct Check {
    what: &'static str,
    measured: Option<f64>,
    bar: Limit,
}

/// Limit of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// Less than this.
    Under(f64),
    /// At most this.
    AtMost(f64),
    /// Exactly this.
    Is(f64),
}

impl Limit {
    fn holds(self, measured: f64) -> bool {
        match self {
            Self::Under(bar) => measured < bar,
            Self::AtMost(bar) => measured <= bar,
            Self::Is(bar) => measured == bar,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Under(bar) => format!("< {bar}"),
            Self::AtMost(bar) => format!("<= {bar}"),
            Self::Is(bar) => format!("= {bar}"),
        }
    }
}

impl Check {
    /// A figure; a missing one counts as a failure.
    pub(crate) fn new(what: &'static str, measured: impl Into<Option<f64>>, bar: Limit) -> Self {
        Self { what, measured: measured.into(), bar }
    }

    fn met(&self) -> bool {
        self.measured.is_some_and(|measured| self.bar.holds(measured))
    }
}

impl Row {
    /// True if all figures are within their limits.
    pub(crate) fn met(&self) -> bool {
        self.checks.iter().all(Check::met)
    }

    /// Prints the row as one line of JSON on standard output, immediately, as some rows take
    /// minutes.
    pub(crate) fn print(&self) {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(
                |it| json!({"what": it.what, "measured": it.measured.map(rounded), "bar": it.bar.text(), "met": it.met()}),
            )
            .collect();
        let row = json!({
            "row": self.name,
            "objects": self.objects,
            "wall_seconds": self.wall.map(rounded),
            "cpu_seconds": rounded(self.used.cpu),
            "peak_megabytes": rounded(self.used.peak),
            "requests": self.used.requests,
            "classes": self.used.classes,
            "checks": checks,
            "met": self.met(),
            "more": self.more,
        });
        println!("{row}");
    }
}

/// Prints all rows as a table on standard error.
pub(crate) fn print_table(rows: &[Row]) {
    eprintln!("\n| row | objects | what | measured | bar | |");
    eprintln!("|---|---|---|---|---|---|");
    for row in rows {
        for check in &row.checks {
            let measured =
                check.measured.map_or("never".to_owned(), |measured| rounded(measured).to_string());
            let verdict = if check.met() { "met" } else { "MISSED" };
            let (name, objects, what) = (row.name, row.objects, check.what);
            eprintln!("| {name} | {objects} | {what} | {measured} | {} | {verdict} |", check.bar.text());
        }
    }
    eprintln!("\n| row | wall s | CPU s | peak MB | requests | classes |");
    eprintln!("|---|---|---|---|---|---|");
    for row in rows {
        let wall = row.wall.map_or("never".to_owned(), |wall| rounded(wall).to_string());
        let (cpu, peak) = (rounded(row.used.cpu), rounded(row.used.peak));
        let classes = row.used.classes.as_ref().map_or("not told".to_owned(), list);
        eprintln!("| {} | {wall} | {cpu} | {peak} | {} | {classes} |", row.name, list(&row.used.requests));
    }
}

fn list<T: std::fmt::Display>(counts: &BTreeMap<String, T>) -> String {
    let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    counts.join(", ")
}

/// Rounds to a thousandth: further digits are noise.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 1e3).round() / 1e3
}

/// Median; for an even number of figures the mean of the middle two.
pub(crate) fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => Some((low + high) / 2.0),
        (_, high) => high.copied(),
    }
}
