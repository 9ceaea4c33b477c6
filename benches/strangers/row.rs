//! Measured figures and their limits.
//!
//! In: figures and their limits.
//! Out: one line of JSON for programs, and lines of a table for people.

use serde_json::{Value, json};

/// A row of figures.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) checks: Vec<Check>,
    pub(crate) more: Value,
}

/// A figure and its limit.
pub(crate) struct Check {
    pub(crate) what: &'static str,
    pub(crate) measured: f64,
    pub(crate) most: f64,
}

impl Row {
    pub(crate) fn print(&self) {
        for Check { what, measured, most } in &self.checks {
            let verdict = if measured <= most { "met" } else { "MISSED" };
            eprintln!(
                "| {} | {what} | {} | <= {} | {verdict} |",
                self.name,
                rounded(*measured),
                rounded(*most)
            );
        }
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|it| json!({"what": it.what, "measured": rounded(it.measured), "most": rounded(it.most)}))
            .collect();
        println!("{}", json!({"row": self.name, "checks": checks, "more": self.more}));
    }
}

/// Rounds to a thousandth: further digits are noise.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 1e3).round() / 1e3
}

/// Returns the percentile: the smallest figure that so many hundredths of the figures do not
/// exceed.
pub(crate) fn percentile(figures: &[f64], hundredths: usize) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * hundredths).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
