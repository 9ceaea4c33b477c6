//! What a cluster holds, as far as a Sync needs to know: one compact entry an object, no bodies.
//!
//! In: metadata, from watches or from objects at hand. Out: [`ObservedSet`]. An entry says what was seen and
//! whose mark an object bears; what follows from that is decided in `plan/`.

mod baseline;
mod compared;
mod drift;
mod ended;
mod extras;
mod generation;
mod judge;
mod marks;
mod presence;
mod removal;
mod stamp;
mod standing;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

pub use baseline::{Baseline, Own};
pub use drift::Drift;
pub use ended::{Ended, has_ended, has_failed, may_end};
pub use extras::{Extra, additions};
pub use generation::generation_is_trusted;
pub use marks::{Part, holds_keys};
pub use presence::was_there;
pub use removal::{removal, sets};
pub use stamp::Stamp;
pub use standing::Standing;

use crate::proof::Proof;
use baseline::Trace;
use judge::Verdict;
use marks::{Entries, has_controller, mark};
use moorline_api::{self as api, SpecHash, SyncName};
use moorline_core::object::{GroupKind, Object, ObjectId};
use moorline_managed_fields::{FieldPath, FieldSet};

/// Every object that was seen.
#[derive(Debug, Clone, Default)]
pub struct ObservedSet {
    objects: BTreeMap<ObjectId, Observed>,
    unlisted: BTreeSet<GroupKind>,
}

/// One object of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The object's own identity in its cluster's history.
    pub uid: Box<str>,
    /// The version that was seen.
    pub resource_version: Box<str>,
    /// Whose mark the object bears.
    pub mark: Mark,
    /// The proof that it bears, whether it is valid or not.
    pub proof: Option<Box<Proof>>,
    /// True if that proof is valid for this object and this Sync: the daemon itself wrote its marks.
    pub proven: bool,
    /// The field managers other than ours, where the object bears nobody's mark.
    pub managers: Vec<Box<str>>,
    /// True if our own entry among the managed fields is there.
    pub applied_by_us: bool,
    /// The hash that was recorded when the object was last applied.
    pub recorded: Option<SpecHash>,
    /// What is known of the fields that Git sets.
    pub standing: Standing,
    /// True if another object controls this one, and the garbage collector decides about it.
    pub controlled: bool,
    /// True if the object is being deleted.
    pub deleting: bool,
    /// What its deletion waits for, once it has begun.
    pub finalizers: Box<[Box<str>]>,
    /// The wave in which it was applied.
    pub wave: i32,
    /// A live annotation asks to leave the object alone.
    pub reconcile_disabled: bool,
    /// A live annotation asks not to prune the object.
    pub prune_disabled: bool,
    /// The key of that annotation or label.
    pub kept_by: Option<&'static str>,
    /// What it is of an installation of Moorline, by its labels.
    pub part: Part,
    /// Until this time a live annotation asks to leave edits by hand as they are: milliseconds since 1970.
    pub pause_until: Option<i64>,
    /// Whether it has come to its end.
    pub ended: Ended,
    /// What we knew last to be as Git says; there is none before an apply of our own.
    pub baseline: Option<Box<Baseline>>,
    /// Our own entry as it was seen where there is no baseline, packed.
    pub own: Option<Arc<[u8]>>,
    /// What people added to an object of ours; the first few.
    pub extras: Box<[Extra]>,
}

/// Whose mark an object bears: what the identity annotation and the managed fields say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The identity names this Sync and this very object.
    Ours,
    /// The object was applied by another Sync, which is named.
    Sync(Box<str>),
    /// There is an identity, and it names another object: this one is a copy.
    Copied,
    /// There is no mark.
    None,
}

impl ObservedSet {
    /// The object with this id.
    pub fn get(&self, id: &ObjectId) -> Option<&Observed> {
        self.objects.get(id)
    }

    /// Every object, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectId, &Observed)> {
        self.objects.iter()
    }

    /// Records an object as it was seen now.
    pub fn insert(&mut self, id: ObjectId, observed: Observed) {
        self.objects.insert(id, observed);
    }

    /// Records that an object is gone.
    pub fn remove(&mut self, id: &ObjectId) -> Option<Observed> {
        self.objects.remove(id)
    }

    /// Changes an object that was seen; nothing happens where it was not.
    pub fn change(&mut self, id: &ObjectId, change: impl FnOnce(&mut Observed)) {
        if let Some(observed) = self.objects.get_mut(id) {
            change(observed);
        }
    }

    /// Records which kinds could not be listed completely, and that all others were.
    pub fn set_unlisted(&mut self, kinds: BTreeSet<GroupKind>) {
        self.unlisted = kinds;
    }

    /// Records that a kind could not be listed completely: nothing of it may be pruned.
    pub fn unlisted(&mut self, kind: GroupKind) {
        self.unlisted.insert(kind);
    }

    /// True if every object of the kind is in the set.
    pub fn lists(&self, kind: &GroupKind) -> bool {
        !self.unlisted.contains(kind)
    }

    /// True if every object of the same kind is in the set.
    pub fn is_listed(&self, id: &ObjectId) -> bool {
        self.unlisted.is_empty() || !self.unlisted.contains(&id.group_kind())
    }

    /// How many objects were seen.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// True if nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Observed {
    /// Reads the metadata of an object in the reply to an apply of our own. That is the state which later
    /// events are held against.
    pub fn applied(object: &Object, owner: &SyncName) -> Self {
        let now = Self::of(object, owner);
        let baseline = Trace::of(object, &owner.manager()).baseline(&now.resource_version);
        Self { standing: Standing::Verified, baseline: Some(Box::new(baseline)), ..now }
    }

    /// Reads the metadata of an object that was not known before.
    pub fn seen(object: &Object, owner: &SyncName) -> Self {
        Self { own: baseline::own(object, &owner.manager()), ..Self::of(object, owner) }
    }

    /// The fields that are ours, where that is known.
    pub fn owned(&self) -> Option<FieldSet> {
        let known = self.baseline.as_ref().and_then(|baseline| baseline.own.as_ref());
        known.map(Own::fields).or_else(|| FieldSet::from_bytes(self.own.as_ref()?))
    }

    /// True if the reply to our own apply did not show our entry: then nothing can be said of it by its absence.
    pub fn hides_entries(&self) -> bool {
        self.baseline.as_ref().is_some_and(|baseline| baseline.own.is_none())
    }

    /// True if this field, as people are told of it, is not ours: somebody took it, or it was left to them.
    pub fn lacks(&self, field: &str) -> bool {
        let taken =
            matches!(&self.standing, Standing::Drifted(drift) if drift.fields.iter().any(|it| it == field));
        let is_it = |path: &FieldPath| path.to_string() == field;
        taken || self.owned().is_some_and(|own| !own.members().iter().any(is_it))
    }

    /// Reads the metadata of the object that this entry stands for, seen once more. An event that is older
    /// than what is known changes nothing; so does that of the state before a write whose reply was first.
    pub fn again(&self, object: &Object, owner: &SyncName) -> Self {
        let now = Self::of(object, owner);
        let (known, seen) = (&*self.resource_version, &*now.resource_version);
        if now.uid != self.uid {
            return self.remade(now, object, owner);
        }
        let ours = self.baseline.as_ref().map(|baseline| &*baseline.resource_version);
        match age(seen, known) {
            Some(Ordering::Less) => return self.clone(),
            // Versions that are no numbers have no order, but that of our own write is known.
            None if ours == Some(seen) && seen != known => return self.clone(),
            _ if seen == known => {
                let (standing, baseline, own) =
                    (self.standing.clone(), self.baseline.clone(), self.own.clone());
                return Self { standing, baseline, own, extras: self.extras.clone(), ..now };
            }
            _ => {}
        }
        let Some(baseline) = &self.baseline else { return self.unverified_again(now, object, owner) };
        let trace = Trace::of(object, &owner.manager());
        match judge::judge(baseline, &trace, object) {
            Verdict::Unchanged => {
                let baseline = Some(Box::new(baseline.carried_to(&trace, seen)));
                Self { standing: self.standing.clone(), baseline, ..now }
            }
            Verdict::Moved => {
                Self { standing: self.standing.moved(), baseline: self.baseline.clone(), ..now }
            }
            Verdict::Drifted(drift) => {
                let before = baseline.own.as_ref().map(Own::fields);
                let extras = extras_of(&now.mark, object, owner, before.as_ref());
                let standing = self.standing.drifted(drift);
                Self { standing, baseline: self.baseline.clone(), extras, ..now }
            }
        }
    }

    /// The object is seen once more before anybody has looked at it: what we have lost meanwhile is not as Git says,
    /// whatever the rest is.
    fn unverified_again(&self, now: Self, object: &Object, owner: &SyncName) -> Self {
        let trace = Trace::of(object, &owner.manager());
        let before = self.own.as_ref().and_then(|own| FieldSet::from_bytes(own));
        let standing =
            match (before.and_then(|before| judge::lost_since(&before, &trace, object)), &self.standing) {
                (Some(drift), standing) => standing.drifted(drift),
                (None, Standing::Verified) => Standing::Unverified,
                (None, standing @ (Standing::Unverified | Standing::Moved | Standing::Drifted(_))) => {
                    standing.clone()
                }
            };
        Self { standing, own: baseline::own(object, &owner.manager()), ..now }
    }

    /// The object was deleted and made anew. What was known of the old one is worth nothing.
    fn remade(&self, now: Self, object: &Object, owner: &SyncName) -> Self {
        let trace = Trace::of(object, &owner.manager());
        let drift = judge::remade(self.baseline.as_deref(), object, &trace);
        Self { standing: Standing::Drifted(Box::new(drift)), ..now }
    }

    /// Forgets what was known of the fields that Git sets, and which version that was.
    pub fn distrust(&mut self) {
        (self.standing, self.baseline) = (Standing::Unverified, None);
        self.resource_version = Box::default();
    }

    /// True if `other` leads to the same decisions, although it may be a later version of the object. Where fields of
    /// ours were changed, no later version is the same: somebody may have undone it.
    pub fn is_as(&self, other: &Self) -> bool {
        let flags = |of: &Self| {
            let asked = [of.reconcile_disabled, of.prune_disabled];
            ([of.applied_by_us, of.controlled, of.deleting], asked, of.kept_by, of.part)
        };
        let undone =
            matches!(self.standing, Standing::Drifted(_)) && self.resource_version != other.resource_version;
        !undone
            && flags(self) == flags(other)
            && (self.proven, &self.proof) == (other.proven, &other.proof)
            && (self.pause_until, self.ended) == (other.pause_until, other.ended)
            && (&self.uid, &self.mark, &self.recorded) == (&other.uid, &other.mark, &other.recorded)
            && (&self.standing, self.wave) == (&other.standing, other.wave)
            && (&self.managers, &self.extras, &self.finalizers)
                == (&other.managers, &other.extras, &other.finalizers)
    }

    /// Reads the metadata of a live object, as the Sync `owner` sees it.
    pub fn of(object: &Object, owner: &SyncName) -> Self {
        let text = |field| object.metadata(field).and_then(Value::as_str).unwrap_or_default();
        let is = |key, value| object.annotation(key) == Some(value);
        let entries = Entries::of(object, owner);
        let mark = mark(object, owner, &entries);
        let extras = extras_of(&mark, object, owner, None);
        let kept_by = api::kept_by(|key| object.annotation(key), |key| object.label(key));
        Self {
            recorded: object.annotation(api::SPEC_HASH_ANNOTATION).and_then(SpecHash::parse),
            proof: object.annotation(api::PROOF_ANNOTATION).and_then(Proof::parse).map(Box::new),
            applied_by_us: entries.ours,
            // Asked for only where the object is to be taken over.
            managers: match mark {
                Mark::Copied | Mark::None => entries.others,
                Mark::Ours | Mark::Sync(_) => Vec::new(),
            },
            mark,
            controlled: has_controller(object),
            finalizers: finalizers(object),
            deleting: is_deleting(object),
            wave: wave(object),
            reconcile_disabled: is(api::RECONCILE_ANNOTATION, "disabled"),
            prune_disabled: kept_by.is_some(),
            kept_by,
            part: Part::of(object),
            pause_until: object.annotation(api::PAUSE_ANNOTATION).and_then(time),
            ended: Ended::of(object),
            extras,
            ..Self::new(text("uid"), text("resourceVersion"))
        }
    }

    /// An object of which nothing else is known.
    pub fn new(uid: &str, resource_version: &str) -> Self {
        Self {
            uid: uid.into(),
            resource_version: resource_version.into(),
            mark: Mark::None,
            proof: None,
            proven: false,
            managers: Vec::new(),
            applied_by_us: false,
            recorded: None,
            standing: Standing::Unverified,
            controlled: false,
            deleting: false,
            finalizers: Box::default(),
            wave: 0,
            reconcile_disabled: false,
            prune_disabled: false,
            kept_by: None,
            part: Part::None,
            pause_until: None,
            ended: Ended::default(),
            baseline: None,
            own: None,
            extras: Box::default(),
        }
    }
}

fn is_deleting(object: &Object) -> bool {
    object.metadata("deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// What keeps an object that is being deleted; of others nobody asks.
fn finalizers(object: &Object) -> Box<[Box<str>]> {
    let all = object.metadata("finalizers").filter(|_| is_deleting(object)).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|one| Some(one.as_str()?.into())).collect()
}

/// What people added, asked for only where the object is ours.
fn extras_of(mark: &Mark, object: &Object, owner: &SyncName, before: Option<&FieldSet>) -> Box<[Extra]> {
    match mark {
        Mark::Ours => extras::extras(object, &owner.manager(), before),
        Mark::Sync(_) | Mark::Copied | Mark::None => Box::default(),
    }
}

/// Which of two resource versions is older, where they are numbers; they need not fit any integer.
fn age(one: &str, other: &str) -> Option<Ordering> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(one) && number(other)).then(|| {
        let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
        one.len().cmp(&other.len()).then_with(|| one.cmp(other))
    })
}

/// What cannot be read as a wave was not written by us, and counts as none.
fn wave(object: &Object) -> i32 {
    let text =
        object.annotation(api::WAVE_ANNOTATION).or_else(|| object.annotation(api::ARGO_WAVE_ANNOTATION));
    text.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// A time as RFC 3339 has it, in milliseconds since 1970; what cannot be read is none.
fn time(text: &str) -> Option<i64> {
    Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}

#[cfg(test)]
mod history;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(metadata: Value) -> Object {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let Value::Object(body) = body else { unreachable!("a literal mapping") };
        let id = ObjectId::new("", "ConfigMap", "shop", "a").unwrap();
        let origin = moorline_core::object::Origin { file: "live".into(), document: 0, line: 1, item: None };
        Object { id, version: "v1".into(), body, origin }
    }

    fn mark_of(metadata: Value) -> Mark {
        Observed::of(&live(metadata), &SyncName::new("ops", "web")).mark
    }

    #[test]
    fn an_identity_that_names_another_object_is_a_copy() {
        let id = |text: &str| json!({"annotations": {"moorline.dev/id": text}});
        assert_eq!(mark_of(id("ops/web|/ConfigMap|shop/a")), Mark::Ours);
        assert_eq!(mark_of(id("ops/web|/ConfigMap|shop/b")), Mark::Copied);
        assert_eq!(mark_of(id("ops/api|/ConfigMap|shop/a")), Mark::Sync("ops/api".into()));
        assert_eq!(mark_of(id("nonsense")), Mark::Copied);
        assert_eq!(mark_of(json!({})), Mark::None);
    }

    #[test]
    fn managed_fields_tell_who_applied() {
        let entry = |manager: &str, operation: &str, subresource: &str| json!({"manager": manager, "operation": operation, "subresource": subresource});
        let fields = json!({"managedFields": [
            entry("moorline/ops/web", "Update", ""), entry("kubectl", "Apply", ""), entry("kubectl", "Update", ""),
            entry("hpa", "Update", "scale"),
        ]});
        let observed = Observed::of(&live(fields), &SyncName::new("ops", "web"));
        assert!(!observed.applied_by_us, "an update under our name is not an apply");
        assert_eq!(observed.managers, [Box::from("kubectl")]);
        let ours = json!({"managedFields": [entry("moorline/ops/web", "Apply", "")]});
        assert!(Observed::of(&live(ours), &SyncName::new("ops", "web")).applied_by_us);
        let theirs = json!({"managedFields": [entry("moorline/ops/api", "Apply", "")]});
        assert_eq!(mark_of(theirs), Mark::Sync("ops/api".into()));
    }

    #[test]
    fn only_a_controller_makes_an_object_controlled() {
        let controlled = |controller| {
            let owners = json!({"ownerReferences": [{"uid": "1", "controller": controller}]});
            Observed::of(&live(owners), &SyncName::new("ops", "web")).controlled
        };
        assert!(controlled(true));
        assert!(!controlled(false));
    }
}
