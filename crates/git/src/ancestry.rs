//! Determines how two commits are related, as far as known commits prove it.
//!
//! In: two ids, and a function for the parents of a commit.
//! Out: a [`History`]. A force push is reported only if it is proven: no path back from the newer
//! commit may end at an unknown commit.

use std::collections::BTreeSet;

use super::revision::{History, ObjectHash};

/// Maximum number of visited commits.
const MAX_COMMITS: usize = 100_000;

/// Relates `old` and `new`; `parents` returns none for an unknown commit.
pub(super) fn relate(
    old: ObjectHash,
    new: ObjectHash,
    parents: impl Fn(ObjectHash) -> Option<Vec<ObjectHash>>,
) -> History {
    let before = ancestors(old, &parents);
    let (mut seen, mut waiting) = (BTreeSet::from([new]), vec![new]);
    let mut open = false;
    while let Some(commit) = waiting.pop() {
        if commit == old {
            return History::Forward;
        }
        // Ancestors of the older commit cannot descend from it.
        if before.contains(&commit) {
            continue;
        }
        match parents(commit) {
            Some(_) if seen.len() > MAX_COMMITS => open = true,
            Some(parents) => waiting.extend(parents.into_iter().filter(|parent| seen.insert(*parent))),
            None => open = true,
        }
    }
    if open { History::Unknown } else { History::Rewritten }
}

/// Returns the known ancestors of a commit, without the commit.
fn ancestors(
    commit: ObjectHash,
    parents: &impl Fn(ObjectHash) -> Option<Vec<ObjectHash>>,
) -> BTreeSet<ObjectHash> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![commit]);
    while let Some(commit) = waiting.pop() {
        if seen.len() > MAX_COMMITS {
            break;
        }
        let found = parents(commit).unwrap_or_default();
        waiting.extend(found.into_iter().filter(|parent| seen.insert(*parent)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits are letters; `known` lists `child:parents`.
    fn check(known: &str, old: char, new: char) -> History {
        let id = |letter: char| ObjectHash::parse(&format!("{:040x}", u32::from(letter))).unwrap();
        relate(id(old), id(new), |commit| {
            known.split(' ').find_map(|entry| {
                let (child, parents) = entry.split_once(':')?;
                (id(child.chars().next()?) == commit).then(|| parents.chars().map(id).collect())
            })
        })
    }

    #[test]
    fn a_force_push_is_claimed_only_when_it_is_proven() {
        use History::{Forward, Rewritten, Unknown};
        let table = [
            ("a:", 'a', 'a', Forward),
            ("b:a", 'a', 'b', Forward),
            ("c:b b:a", 'a', 'c', Forward),
            ("d:cx c:b b:a", 'a', 'd', Forward),
            // b was replaced by c, both on top of a.
            ("b:a c:a", 'b', 'c', Rewritten),
            ("b:a d:c c:a", 'b', 'd', Rewritten),
            // An unrelated history, known to its root.
            ("a: c:b b:", 'a', 'c', Rewritten),
            ("c:b b:", 'a', 'c', Rewritten),
            // Back to an older commit.
            ("c:b b:a", 'c', 'a', Rewritten),
            // The path back ends at an unknown commit.
            ("", 'a', 'b', Unknown),
            ("c:b", 'a', 'c', Unknown),
            ("b:a d:c", 'b', 'd', Unknown),
            ("b:a d:ac", 'b', 'd', Unknown),
        ];
        for (known, old, new, expect) in table {
            assert_eq!(check(known, old, new), expect, "{known} {old} {new}");
        }
    }
}
