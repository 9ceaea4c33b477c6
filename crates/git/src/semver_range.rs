//! Version ranges for tags, and the selection of the highest version in one.
//!
//! In: text such as `>=1.2 <2 || ~3.1`, and the names of tags.
//! Out: a [`VersionRange`], and the best tag. The `semver` crate compares versions; its ranges
//! support neither `||`, hyphens, spaces nor a leading `v`, and treat pre-releases differently, so
//! ranges are parsed here.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use semver::{BuildMetadata, Prerelease, Version};

/// Maximum number of bytes of a range.
const MAX_RANGE_BYTES: usize = 256;

/// A set of versions: those that satisfy all conditions of at least one alternative.
#[derive(Debug, Clone)]
pub struct VersionRange {
    text: Box<str>,
    alternatives: Vec<Alternative>,
}

/// Error for text that is not a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a version range: {problem} (write one such as \">=1.2.0 <2.0.0\", \"~1.4\" or \"1.x\")"
)]
pub struct VersionRangeError {
    /// The text.
    pub text: Box<str>,
    /// The problem.
    pub problem: &'static str,
}

/// Conditions that must all hold.
#[derive(Debug, Clone)]
struct Alternative {
    bounds: Vec<Bound>,
    /// True if the range itself names a pre-release: only then pre-releases match.
    prereleases: bool,
}

#[derive(Debug, Clone)]
enum Bound {
    AtLeast(Version),
    Below(Version),
    Exactly(Version),
    /// Not between the first version (inclusive) and the second (exclusive).
    Outside(Version, Version),
    Nothing,
}

/// A version with missing parts: `1`, `1.2`, `1.x`, `*`.
#[derive(Debug, Clone)]
struct Partial {
    major: Option<u64>,
    minor: Option<u64>,
    patch: Option<u64>,
    pre: Prerelease,
}

impl VersionRange {
    /// Returns the tag among `tags` with the highest version in the range; other names are ignored.
    ///
    /// Of two names of one version (`1.0.0` and `v1.0.0`) it always returns the one that sorts
    /// last.
    pub fn best<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        tags.filter_map(|tag| Some((version(tag)?, tag)))
            .filter(|(version, _)| self.contains(version))
            .max()
            .map(|(_, tag)| tag)
    }

    /// Returns the tags whose versions are in the range, the highest version first.
    pub(crate) fn select<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let versions = tags.filter_map(|tag| Some((version(tag)?, tag)));
        let mut found: Vec<(Version, &str)> =
            versions.filter(|(version, _)| self.contains(version)).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, tag)| tag).collect()
    }

    fn contains(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|alternative| {
            (version.pre.is_empty() || alternative.prereleases)
                && alternative.bounds.iter().all(|bound| bound.holds(version))
        })
    }
}

impl Bound {
    fn holds(&self, version: &Version) -> bool {
        use Ordering::{Equal, Greater, Less};
        let against = |other: &Version| version.cmp_precedence(other);
        match self {
            Self::AtLeast(low) => against(low) != Less,
            Self::Below(high) => against(high) == Less,
            Self::Exactly(one) => against(one) == Equal,
            Self::Outside(low, high) => against(low) == Less || matches!(against(high), Equal | Greater),
            Self::Nothing => false,
        }
    }
}

/// Compares the versions of two tags; none if one of them has no version.
pub(super) fn compare(tag: &str, other: &str) -> Option<Ordering> {
    Some(version(tag)?.cmp_precedence(&version(other)?))
}

/// True for a version of three parts, with or without a leading `v`.
pub(super) fn is_version(text: &str) -> bool {
    Version::parse(text.strip_prefix(['v', 'V']).unwrap_or(text)).is_ok()
}

/// Parses the version of a tag, with or without a leading `v` and with missing parts.
fn version(tag: &str) -> Option<Version> {
    let text = tag.strip_prefix(['v', 'V']).unwrap_or(tag);
    if let Ok(version) = Version::parse(text) {
        return Some(version);
    }
    let core = text.find(['-', '+']).map_or(text, |end| &text[..end]);
    let missing = match core.split('.').count() {
        1 => ".0.0",
        2 => ".0",
        _ => return None,
    };
    Version::parse(&format!("{core}{missing}{}", &text[core.len()..])).ok()
}

impl FromStr for VersionRange {
    type Err = VersionRangeError;

    fn from_str(text: &str) -> Result<Self, VersionRangeError> {
        let refuse =
            |problem| VersionRangeError { text: text.chars().take(MAX_RANGE_BYTES).collect(), problem };
        if text.len() > MAX_RANGE_BYTES {
            return Err(refuse("it is too long"));
        }
        let alternatives = text.split("||").map(alternative).collect::<Result<_, _>>().map_err(refuse)?;
        Ok(Self { text: text.trim().into(), alternatives })
    }
}

fn alternative(text: &str) -> Result<Alternative, &'static str> {
    let mut read = Alternative { bounds: Vec::new(), prereleases: false };
    for part in text.split(',') {
        let words: Vec<&str> = part.split_whitespace().collect();
        if words.is_empty() {
            return Err("a condition is empty");
        }
        if let [low, "-", high] = words.as_slice() {
            read.add(">=", low)?;
            read.add("<=", high)?;
            continue;
        }
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let at = word.find(|c: char| !"<>=!~^".contains(c)).unwrap_or(word.len());
            let (operator, version) = word.split_at(at);
            match version {
                "" => read.add(operator, words.next().ok_or("an operator has no version")?)?,
                version => read.add(operator, version)?,
            }
        }
    }
    Ok(read)
}

impl Alternative {
    fn add(&mut self, operator: &str, version: &str) -> Result<(), &'static str> {
        let version: Partial = version.parse()?;
        self.prereleases |= !version.pre.is_empty();
        let low = version.low();
        let next = version.next();
        let full = version.patch.is_some();
        let mut between = |low: Version, high: Option<Version>| {
            self.bounds.push(Bound::AtLeast(low));
            self.bounds.extend(high.map(Bound::Below));
        };
        match operator {
            "" | "=" | "==" if full => self.bounds.push(Bound::Exactly(low)),
            "" | "=" | "==" => between(low, next),
            "!=" => self.bounds.push(match (full, next) {
                (_, None) => Bound::Nothing,
                (false, Some(next)) => Bound::Outside(low, next),
                (true, Some(_)) => Bound::Outside(low.clone(), just_after(low)),
            }),
            ">" if full => self.bounds.push(Bound::AtLeast(just_after(low))),
            ">" => self.bounds.push(next.map_or(Bound::Nothing, Bound::AtLeast)),
            ">=" | "=>" => self.bounds.push(Bound::AtLeast(low)),
            "<" => self.bounds.push(Bound::Below(low)),
            "<=" | "=<" if full => self.bounds.push(Bound::Below(just_after(low))),
            "<=" | "=<" => self.bounds.extend(next.map(Bound::Below)),
            "~" | "~>" => between(low, version.next_minor()),
            "^" => between(low, version.next_breaking()),
            _ => return Err("an operator is none of = != > >= < <= ~ ^"),
        }
        Ok(())
    }
}

/// Returns the lowest version above `version` in precedence.
fn just_after(mut version: Version) -> Version {
    match version.pre.is_empty() {
        true => {
            version.patch = version.patch.saturating_add(1);
            version.pre = lowest();
        }
        // A longer list of identifiers is higher than its own prefix, and 0 is the lowest
        // identifier.
        false => version.pre = Prerelease::new(&format!("{}.0", version.pre)).unwrap_or(version.pre),
    }
    version
}

/// The lowest pre-release, so that an upper bound excludes pre-releases of the next version.
fn lowest() -> Prerelease {
    Prerelease::new("0").unwrap_or(Prerelease::EMPTY)
}

fn at(major: u64, minor: u64, patch: u64) -> Version {
    Version { pre: lowest(), ..Version::new(major, minor, patch) }
}

impl Partial {
    /// Returns the lowest matching version.
    fn low(&self) -> Version {
        let part = |part: Option<u64>| part.unwrap_or(0);
        Version {
            major: part(self.major),
            minor: part(self.minor),
            patch: part(self.patch),
            pre: self.pre.clone(),
            build: BuildMetadata::EMPTY,
        }
    }

    /// Returns the first version above all matching ones; none for `*`.
    fn next(&self) -> Option<Version> {
        Some(match (self.major?, self.minor, self.patch) {
            (major, Some(minor), Some(patch)) => at(major, minor, patch.saturating_add(1)),
            (major, Some(minor), None) => at(major, minor.saturating_add(1), 0),
            (major, None, _) => at(major.saturating_add(1), 0, 0),
        })
    }

    fn next_minor(&self) -> Option<Version> {
        Some(match (self.major?, self.minor) {
            (major, Some(minor)) => at(major, minor.saturating_add(1), 0),
            (major, None) => at(major.saturating_add(1), 0, 0),
        })
    }

    fn next_breaking(&self) -> Option<Version> {
        match (self.major?, self.minor, self.patch) {
            (0, Some(0), Some(patch)) => Some(at(0, 0, patch.saturating_add(1))),
            (0, Some(minor), _) => Some(at(0, minor.saturating_add(1), 0)),
            (major, _, _) => Some(at(major.saturating_add(1), 0, 0)),
        }
    }
}

impl FromStr for Partial {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(text, _)| text);
        let (core, pre) = match text.split_once('-') {
            Some((core, pre)) => (core, Prerelease::new(pre).map_err(|_| "a pre-release has a wrong form")?),
            None => (text, Prerelease::EMPTY),
        };
        let mut parts = [None; 3];
        let mut open = false;
        for (at, part) in core.split('.').enumerate() {
            let place = parts.get_mut(at).ok_or("a version has more than three parts")?;
            match part {
                "x" | "X" | "*" => open = true,
                _ if open => return Err("a number follows an x"),
                _ if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) => {
                    return Err("a version is not made of numbers");
                }
                part => *place = Some(part.parse().map_err(|_| "a number is too large")?),
            }
        }
        if !pre.is_empty() && parts[2].is_none() {
            return Err("a pre-release needs a version of three parts");
        }
        let [major, minor, patch] = parts;
        Ok(Self { major, minor, patch, pre })
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for VersionRange {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for VersionRange {}

impl Hash for VersionRange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: &str = "v0.0.3 v0.0.4 v0.2.3 v0.2.9 v0.3.0 1.0.0 v1.2.0 v1.2.5 v1.3.0-rc.1 v1.3.0-rc.2 v1.9 \
                        v2.0.0-beta.1 v2.0.0 v2.1.0+build.7 latest release-3 v3 v3.0.1.2";

    #[test]
    fn the_highest_tag_in_a_range_is_chosen() {
        let table = [
            ("*", "v3"),
            ("x", "v3"),
            ("1", "v1.9"),
            ("1.x", "v1.9"),
            ("v1.2", "v1.2.5"),
            ("1.2.x", "v1.2.5"),
            ("=1.2.0", "v1.2.0"),
            ("1.2.0", "v1.2.0"),
            ("~1.2.0", "v1.2.5"),
            ("~1.2", "v1.2.5"),
            ("~1", "v1.9"),
            ("^1.2.0", "v1.9"),
            ("^0.2.3", "v0.2.9"),
            ("^0.0.3", "v0.0.3"),
            ("^0", "v0.3.0"),
            (">=1.0.0 <1.9", "v1.2.5"),
            (">=1.0.0, <1.9", "v1.2.5"),
            (">= 1.0.0 < 2", "v1.9"),
            ("<2", "v1.9"),
            ("<=2", "v2.1.0+build.7"),
            ("<=2.0.0", "v2.0.0"),
            ("=<1.2", "v1.2.5"),
            (">1.2 <2", "v1.9"),
            (">1", "v3"),
            ("1.0.0 - 1.2", "v1.2.5"),
            ("1 - 2", "v2.1.0+build.7"),
            ("<1 || ~1.2", "v1.2.5"),
            ("~1.2||<1", "v1.2.5"),
            ("~9 || ~0.2", "v0.2.9"),
            (">=1.3.0-rc.1 <1.4", "v1.3.0-rc.2"),
            (">=1.3.0-0 <2.0.0", "v2.0.0-beta.1"),
            ("^1.3.0-0", "v1.9"),
            (">1.3.0-rc.1 <=1.3.0-rc.2", "v1.3.0-rc.2"),
            (">=1.3.0-rc.1 <1.3.0-rc.2", "v1.3.0-rc.1"),
            ("2.1.0", "v2.1.0+build.7"),
            ("!=3 !=2", "v1.9"),
            ("<=1.2.5 !=1.2.5", "v1.2.0"),
            (">3", ""),
            (">=1.3.0 <1.4.0", ""),
            (">*", ""),
            ("!=*", ""),
        ];
        for (range, expect) in table {
            let range: VersionRange = range.parse().unwrap();
            assert_eq!(range.best(TAGS.split(' ')).unwrap_or(""), expect, "{range}");
        }
    }

    #[test]
    fn equal_versions_are_chosen_the_same_way_in_any_order() {
        let range: VersionRange = "1".parse().unwrap();
        assert_eq!(range.best(["1.0.0", "v1.0.0"].into_iter()), Some("v1.0.0"));
        assert_eq!(range.best(["v1.0.0", "1.0.0"].into_iter()), Some("v1.0.0"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for wrong in [
            "", " ", "||", "1 ||", ">=", ">= ,", "a", "1.2.3.4", "1..2", "1.x.3", ">>1", "1.2-rc", "1,",
            "- 2", "-1",
        ] {
            assert!(wrong.parse::<VersionRange>().is_err(), "{wrong:?}");
        }
        assert!("1".repeat(30).parse::<VersionRange>().is_err());
        assert!("1 ".repeat(300).parse::<VersionRange>().is_err());
    }
}
