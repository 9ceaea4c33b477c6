//! What a status is made of.
//!
//! In: what was found and done, from the stations that did it. Out: nothing but the words for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{Finished, Scope};
use crate::desired::SetDigest;
use crate::health::Summary;
use crate::object::{GroupKind, ObjectId};
use crate::plan::Outcome;

/// Why there is nothing to go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// One word for conditions, events and metrics.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The problems one by one, where there are several.
    pub problems: Vec<String>,
    /// True if asking again cannot help before there is new input.
    pub lasting: bool,
}

impl Trouble {
    /// The same, with the place that it is about in front.
    #[must_use]
    pub fn at(mut self, place: &impl std::fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

/// What is known about a Sync now.
#[derive(Clone)]
pub struct Facts<'a> {
    /// The generation of the spec that this is of.
    pub generation: Option<i64>,
    /// The Sync asks to be left alone.
    pub suspended: bool,
    /// What keeps the daemon from even beginning, or from looking at the repository.
    pub trouble: Option<&'a Trouble>,
    /// That is what the pass came to: it is about its revision.
    pub of_revision: bool,
    /// The commit that the trouble is about, while the pass has kept an older one.
    pub refused: Option<String>,
    /// The objects are kept as the pass has it, beside whatever trouble there is.
    pub keeps: bool,
    /// The newest revision in the repository.
    pub seen: Option<Sighting>,
    /// The last pass, if there was one.
    pub pass: Option<PassFacts<'a>>,
    /// The last pass is about an older commit or spec than is asked for now.
    pub behind: bool,
    /// The newest revision was given up, and the pass is about the one that is held instead.
    pub rejected: Option<&'a Rejected>,
    /// How the objects are, once that is known.
    pub health: Option<&'a Summary>,
    /// The Sync is not ready before they are as they should be.
    pub waits_for_health: bool,
    /// The commits of which author and subject are known.
    pub commits: &'a [Commit],
    /// The value of the annotation that was obeyed last.
    pub request: Option<String>,
    /// The Lease of this daemon.
    pub held_by: Option<String>,
    /// The time.
    pub now: Time,
}

/// The words of a commit, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// The revision, as `main@1f0c...`.
    pub revision: String,
    /// The subject of the commit.
    pub subject: String,
    /// The name of its author.
    pub author: String,
}

/// A revision whose objects did not become well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The revision.
    pub revision: String,
    /// The one that is held instead.
    pub instead: String,
    /// What was wrong, as a sentence.
    pub why: String,
}

/// A revision, and where it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The revision.
    pub revision: String,
    /// The tag object, if it is an annotated tag.
    pub tag: Option<String>,
    /// The repository and the ref in one word.
    pub source: Box<str>,
}

/// What a pass came to.
#[derive(Clone)]
pub struct PassFacts<'a> {
    /// The revision that the cluster was driven to.
    pub revision: String,
    /// Its tag object, if it is an annotated tag.
    pub tag: Option<String>,
    /// What was read for it.
    pub tree: Option<String>,
    /// The digest of what is wanted.
    pub digest: Option<&'a SetDigest>,
    /// Every object about which there is something to say.
    pub outcomes: &'a BTreeMap<ObjectId, Outcome>,
    /// Where objects are written.
    pub files: &'a dyn Fn(&ObjectId) -> Option<String>,
    /// How many objects are wanted.
    pub desired: usize,
    /// Where it may own objects.
    pub scope: Option<Scope>,
    /// What would approve the prunes that wait.
    pub approval: Option<&'a str>,
    /// The approval that the Sync has, whatever it approves.
    pub approved: Option<&'a str>,
    /// Some objects are still being compared: drift that was known before is told on.
    pub pending: bool,
    /// What people added to objects, in words.
    pub added: &'a [(ObjectId, Box<str>)],
    /// Jobs and Pods that have come to their end.
    pub finished: &'a [Finished],
    /// Hooks that run when the Sync is deleted.
    pub last_hooks: &'a [String],
    /// What is to be said of objects that are applied.
    pub remarks: &'a [Remark],
    /// What is to be said of the fence behind which a chart was rendered.
    pub caution: Option<&'a str>,
    /// What is tried again, and when.
    pub tries: &'a Tries,
    /// Rights that are missing, one a line.
    pub rights: &'a [String],
    /// The command that gives all rights that the Sync needs.
    pub grant: &'a str,
    /// How long it took since the revision was seen, where that is known.
    pub took: Option<Duration>,
    /// When it, or one before it, last changed something: whoever tells of it again later says the same.
    pub changed: Option<Time>,
}

impl PassFacts<'_> {
    /// True if the object is in Git.
    pub(super) fn wants(&self, id: &ObjectId) -> bool {
        (self.files)(id).is_some()
    }

    /// True if every object is forbidden.
    pub(super) fn writes_nothing(&self) -> bool {
        let is_forbidden =
            |outcome: &Outcome| matches!(outcome, Outcome::Failed(why) if why.reason == "Forbidden");
        let all = self.outcomes.iter().filter(|(id, outcome)| self.wants(id) && is_forbidden(outcome));
        self.desired > 0 && all.count() == self.desired
    }
}

/// What is tried again, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tries {
    /// When objects that are refused are tried again.
    pub next: BTreeMap<ObjectId, Timestamp>,
    /// Kinds that the server does not serve yet, and that are expected to come.
    pub lags: BTreeSet<GroupKind>,
}

/// Something about an object that is applied as well as it can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The object.
    pub id: ObjectId,
    /// One word.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}
