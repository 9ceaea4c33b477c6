//! Text of a revision in the status: the ref, the commit, and the published chart.
//!
//! In: a text such as `main@1f0c...+shop:1.2.3@sha256:...`.
//! Out: its parts, and a short form for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of a published chart that was taken up.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AppliedChart {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its archive; in a registry, of its manifest.
    pub digest: String,
}

impl AppliedChart {
    /// Reads the chart from the text of a revision; none if it has none.
    pub fn of_revision(revision: &str) -> Option<Self> {
        let (front, digest) = split_chart(revision).1?.split_once('@')?;
        let (name, version) = front.split_once(':')?;
        Some(Self { name: name.into(), version: version.into(), digest: digest.into() })
    }
}

/// Number of digits of a commit id.
const COMMIT_DIGITS: usize = 40;

/// Begin of the digest of an artifact, and the number of its digits.
const ARTIFACT: (&str, usize) = ("sha256:", 64);

/// Splits a revision into the ref with its commit or digest, and the chart, if it has one:
/// `main@1f0c...` and `shop:1.2.3@sha256:...`.
pub fn split_chart(revision: &str) -> (&str, Option<&str>) {
    let chart = revision.rsplit_once("@sha256:").and_then(|(front, _)| {
        // Neither the name nor the version of a chart has an @, and a commit has no plus sign.
        let commit = front.rfind('@').map_or(0, |at| at + 1);
        let plus = commit + front.get(commit..)?.find('+')?;
        let is_whole = match front.get(commit..plus)?.strip_prefix(ARTIFACT.0) {
            Some(digest) => digest.len() == ARTIFACT.1,
            None => plus - commit == COMMIT_DIGITS,
        };
        is_whole.then_some(plus)
    });
    match chart.and_then(|plus| Some((revision.get(..plus)?, revision.get(plus + 1..)?))) {
        Some((revision, chart)) => (revision, Some(chart)),
        None => (revision, None),
    }
}

/// Shortens a revision to eight digits of its commit or digest: `main@f3454c66`, or
/// `main@f3454c66+shop:1.2.3`.
pub fn short_revision(revision: &str) -> String {
    let (commit, chart) = split_chart(revision);
    let (name, id) = commit.rsplit_once('@').map_or(("", commit), |(name, id)| (name, id));
    let (kind, digits) = id.split_once(':').map_or(("", id), |(kind, digits)| (kind, digits));
    let digits: String = digits.chars().take(8).collect();
    let (at, colon) = (if name.is_empty() { "" } else { "@" }, if kind.is_empty() { "" } else { ":" });
    let short = format!("{name}{at}{kind}{colon}{digits}");
    match chart.and_then(|chart| chart.split_once('@')) {
        Some((chart, _)) => format!("{short}+{chart}"),
        None => short,
    }
}
