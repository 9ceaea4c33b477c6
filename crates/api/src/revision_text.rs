//! Text of a revision in the status: the ref, the commit, the published chart, and the mounts.
//!
//! In: a text such as `main@1f0c...+shop:1.2.3@sha256:...+vendor/base/:main@2e1d...`.
//! Out: its parts, and a short form for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source_mount::AppliedMount;

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

/// End of the folder of a mount. No ref, no tag and no chart has these characters.
const MOUNT: &str = "/:";

/// Begin of the tag object in the revision of a mount.
const TAG: char = '~';

/// Splits a revision into the text before its mounts, and each mount with its revision.
pub fn split_mounts(revision: &str) -> (&str, Vec<(&str, &str)>) {
    let (mut front, mut mounts) = (revision, Vec::new());
    // From the end: the folder of a mount has no plus sign, its ref may have one.
    while let Some((before, mounted)) = front.rsplit_once(MOUNT) {
        let Some((rest, path)) = before.rsplit_once('+') else { break };
        mounts.insert(0, (path, mounted.split(TAG).next().unwrap_or(mounted)));
        front = rest;
    }
    (front, mounts)
}

/// Returns the mounts of a revision.
pub fn applied_mounts(revision: &str) -> Vec<AppliedMount> {
    let (_, mounts) = split_mounts(revision);
    let applied =
        |(path, revision): (&str, &str)| AppliedMount { path: path.into(), revision: revision.into() };
    mounts.into_iter().map(applied).collect()
}

/// Splits a revision into the ref with its commit or digest, and the chart, if it has one:
/// `main@1f0c...` and `shop:1.2.3@sha256:...`. Mounts are left out.
pub fn split_chart(revision: &str) -> (&str, Option<&str>) {
    let (revision, _) = split_mounts(revision);
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

/// Shortens a revision to eight digits of its commits and digests: `main@f3454c66`, or
/// `main@f3454c66+shop:1.2.3+vendor/base@2e1d4b0c`.
pub fn short_revision(revision: &str) -> String {
    let (_, mounts) = split_mounts(revision);
    let (commit, chart) = split_chart(revision);
    let (name, id) = commit.rsplit_once('@').map_or(("", commit), |(name, id)| (name, id));
    let at = if name.is_empty() { "" } else { "@" };
    let mut short = format!("{name}{at}{}", short_id(id));
    if let Some((chart, _)) = chart.and_then(|chart| chart.split_once('@')) {
        short = format!("{short}+{chart}");
    }
    for (path, mounted) in mounts {
        let id = mounted.rsplit_once('@').map_or(mounted, |(_, id)| id);
        short = format!("{short}+{path}@{}", short_id(id));
    }
    short
}

/// Returns eight digits of a commit or digest.
fn short_id(id: &str) -> String {
    let (kind, digits) = id.split_once(':').map_or(("", id), |(kind, digits)| (kind, digits));
    let colon = if kind.is_empty() { "" } else { ":" };
    let digits: String = digits.chars().take(8).collect();
    format!("{kind}{colon}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_split_into_source_chart_and_mounts() {
        let (commit, digest) = ("1f0c".repeat(10), format!("sha256:{}", "2e1d".repeat(16)));
        let check = |source: &str, chart: Option<&str>, mounts: &[(&str, &str)], short: &str| {
            let chart_text = chart.map(|chart| format!("+{chart}")).unwrap_or_default();
            let mounted: String =
                mounts.iter().map(|(path, revision)| format!("+{path}/:{revision}")).collect();
            let text = format!("{source}{chart_text}{mounted}");
            assert_eq!(split_chart(&text), (source, chart), "{text}");
            assert_eq!(split_mounts(&text).1, mounts, "{text}");
            assert_eq!(applied_mounts(&text).len(), mounts.len());
            assert_eq!(short_revision(&text), short);
        };
        let (main, chart) = (format!("main@{commit}"), format!("shop:1.2.3+b@{digest}"));
        let (odd, artifact) = (format!("a+b/c@{commit}"), format!("v1@{digest}"));
        check(&main, None, &[], "main@1f0c1f0c");
        check(&main, Some(&chart), &[], "main@1f0c1f0c+shop:1.2.3+b");
        check(&main, None, &[("shop", &artifact)], "main@1f0c1f0c+shop@sha256:2e1d2e1d");
        let (mounts, short) = ([("a/b", &*odd), ("c", &*commit)], "+a/b@1f0c1f0c+c@1f0c1f0c");
        check(&odd, Some(&chart), &mounts, &format!("a+b/c@1f0c1f0c+shop:1.2.3+b{short}"));
        check(&artifact, None, &mounts, &format!("v1@sha256:2e1d2e1d{short}"));
        let tagged = format!("{main}+a/:v1@{commit}~{commit}");
        assert_eq!(split_mounts(&tagged).1, [("a", &*format!("v1@{commit}"))]);
    }
}
