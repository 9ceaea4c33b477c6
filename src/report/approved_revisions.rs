//! Decides if the approvals of persons cover a revision.
//!
//! In: the approved revisions of the status, and a revision as it is rendered now.
//! Out: a decision; the list with one more approval.

use crate::api::{ApprovedRevision, MAX_APPROVED, SpecHash};
use crate::desired::HashMatch;
use crate::plan::RenderedRevision;

/// Reason to write a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionUse {
    /// It is the newest one.
    Newest,
    /// It is held, and drift from it is repaired.
    Held,
    /// A person chose it, or a newer one is rolled back to it.
    WayBack,
}

/// Returns the earlier approval that covers this revision, if there is one.
///
/// The newest revision has to render exactly the objects that were approved last: a commit that
/// changes nothing of a Sync asks nobody, and going back to older objects asks again. On the way
/// back each approved revision counts, as long as it renders what was approved.
pub fn covering_approval<'a>(
    approved: &'a [ApprovedRevision],
    what: RenderedRevision<'_>,
    why: RevisionUse,
) -> Option<&'a ApprovedRevision> {
    let covers = |known: &&ApprovedRevision| {
        let is_named =
            (&*known.revision, &*known.source, &*known.spec) == (what.revision, what.source, what.spec);
        let recorded = known.digest.as_deref().and_then(SpecHash::parse);
        match recorded.map(|recorded| what.digest.matches(&recorded)) {
            Some(HashMatch::Same) => true,
            // Without the key nobody knows if these are the approved values.
            Some(HashMatch::Other | HashMatch::KeyLost) => false,
            // Nothing was recorded: the revision and the spec decide.
            None => is_named,
        }
    };
    match why {
        RevisionUse::Newest => approved.first().filter(covers),
        // The objects of one revision may have been approved again for another.
        RevisionUse::Held | RevisionUse::WayBack => {
            let of_revision = approved.iter().filter(|known| known.revision == what.revision).find(covers);
            of_revision.or_else(|| approved.iter().find(covers))
        }
    }
}

/// Adds a revision that was just approved. One on the way back does not become the newest.
pub fn add_approval(
    mut approved: Vec<ApprovedRevision>,
    new: ApprovedRevision,
    why: RevisionUse,
) -> Vec<ApprovedRevision> {
    approved.truncate(MAX_APPROVED - 1);
    let at = if why == RevisionUse::WayBack { approved.len() } else { 0 };
    approved.insert(at, new);
    approved
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::{DesiredSet, Scopes, SetDigest, build_desired_set};
    use crate::render::{RenderOptions, Rendered, render};
    use crate::tree::FileTree;

    fn rendered<'a>(revision: &'a str, spec: &'a str, digest: &'a SetDigest) -> RenderedRevision<'a> {
        RenderedRevision { revision, source: "source", spec, digest }
    }

    fn approval(revision: &str, spec: &str, desired: &DesiredSet) -> ApprovedRevision {
        ApprovedRevision {
            revision: revision.to_owned(),
            source: "source".to_owned(),
            spec: spec.to_owned(),
            digest: desired.digest().recorded_hash().map(|digest| digest.to_string()),
            approval: None,
        }
    }

    fn set(names: &[&str]) -> DesiredSet {
        let text = |name: &&str| {
            let metadata = json!({"name": name, "namespace": "shop"});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string()
        };
        let texts: Vec<String> = names.iter().map(text).collect();
        let paths: Vec<String> = names.iter().map(|name| format!("{name}.json")).collect();
        let files = paths.iter().map(String::as_str).zip(texts.iter().map(String::as_str));
        let rendered = render(&FileTree::from_texts(files), &RenderOptions::default());
        let Rendered::Complete(complete) = rendered else { panic!("the manifests are sound") };
        build_desired_set(complete, "default", &Scopes::builtin()).unwrap()
    }

    #[test]
    fn an_approval_covers_what_was_shown_and_nothing_else() {
        let (old, new, other) = (set(&["a"]), set(&["a", "b"]), set(&["c"]));
        let list = [approval("main@2", "s", &new), approval("main@1", "s", &old)];
        let unknown = [ApprovedRevision { digest: None, ..approval("main@1", "s", &old) }];
        use RevisionUse::{Held, Newest, WayBack};
        for (what, list, revision, spec, desired, expect) in [
            ("nothing was approved", &list[..0], "main@1", "s", &old, [false; 3]),
            ("the approved one", &list[..], "main@2", "s", &new, [true; 3]),
            ("a commit that changes nothing", &list[..], "main@3", "s", &new, [true; 3]),
            ("another spec that renders the same", &list[..], "main@2", "t", &new, [true; 3]),
            ("other objects", &list[..], "main@3", "s", &other, [false; 3]),
            ("the same commit, another path", &list[..], "main@2", "t", &other, [false; 3]),
            ("the same commit, other values", &list[..], "main@2", "s", &other, [false; 3]),
            ("an older approved one", &list[..], "main@1", "s", &old, [false, true, true]),
            ("an older one with other values", &list[..], "main@1", "s", &other, [false; 3]),
            ("applied before approvals", &unknown[..], "main@1", "s", &old, [true; 3]),
            ("a later one", &unknown[..], "main@2", "s", &old, [false; 3]),
        ] {
            let digest = desired.digest();
            let what_is = rendered(revision, spec, &digest);
            let decided = [Newest, Held, WayBack].map(|why| covering_approval(list, what_is, why).is_some());
            assert_eq!(decided, expect, "{what}");
        }
    }

    #[test]
    fn the_approval_is_the_one_that_covers() {
        let (old, new) = (set(&["a"]), set(&["a", "b"]));
        let given = |hash: &str, revision: &str, spec: &str, desired: &DesiredSet| ApprovedRevision {
            approval: Some(hash.to_owned()),
            ..approval(revision, spec, desired)
        };
        // The second one is another path of the same commit.
        let list = [
            given("h4", "main@2", "t", &new),
            given("h3", "main@2", "s", &old),
            given("h2", "main@1", "s", &new),
            given("h1", "main@1", "t", &old),
        ];
        use RevisionUse::{Held, Newest, WayBack};
        for (what, revision, desired, expect) in [
            ("the newest", "main@2", &new, ["h4", "h4", "h4"]),
            ("a commit that changes nothing", "main@3", &new, ["h4", "h4", "h4"]),
            ("the same commit, as it was", "main@2", &old, ["", "h3", "h3"]),
            ("an older commit", "main@1", &new, ["h4", "h2", "h2"]),
            ("an older commit, another path", "main@1", &old, ["", "h1", "h1"]),
            ("an unknown commit with old objects", "main@0", &old, ["", "h3", "h3"]),
        ] {
            let digest = desired.digest();
            let found = [Newest, Held, WayBack].map(|why| {
                let found = covering_approval(&list, rendered(revision, "s", &digest), why);
                found.and_then(|known| known.approval.as_deref()).unwrap_or_default()
            });
            assert_eq!(found, expect, "{what}");
        }
    }

    #[test]
    fn the_newest_approval_comes_first_and_the_list_ends() {
        let desired = set(&["a"]);
        let mut list = Vec::new();
        for number in 0..12 {
            list =
                add_approval(list, approval(&format!("main@{number}"), "s", &desired), RevisionUse::Newest);
        }
        let names = |list: &[ApprovedRevision]| list.iter().map(|it| it.revision.clone()).collect::<Vec<_>>();
        assert_eq!(names(&list).len(), MAX_APPROVED);
        assert_eq!((&*list[0].revision, &*list[9].revision), ("main@11", "main@2"));
        let back = add_approval(list, approval("main@0", "s", &desired), RevisionUse::WayBack);
        assert_eq!((&*back[0].revision, &*back[9].revision, back.len()), ("main@11", "main@0", MAX_APPROVED));
        let one = add_approval(Vec::new(), approval("main@0", "s", &desired), RevisionUse::WayBack);
        assert_eq!(names(&one), ["main@0"]);
    }
}
