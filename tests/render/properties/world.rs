//! A small world for plans: what Git wants, what a cluster holds, what a person allows, and how a plan
//! changes the cluster when it is carried out. The ids are few, so that everything meets everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use moorline::api::{CanonicalForm, SpecHash};
use moorline::desired::{DesiredSet, Scope, Scopes, build_desired_set};
use moorline::object::{GroupKind, ObjectId};
use moorline::observed::{Observed, ObservedSet, Ownership, Verification};
use moorline::plan::{Action, Plan, Policy, Stage, Step, plan};
use moorline::render::{self, Rendered};
use moorline::tree::FileTree;
use serde_json::{Value, json};

/// Every id, with its API version. Two of them are one object under two groups; one kind is never known.
const IDS: [(&str, &str); 17] = [
    ("/Namespace|/a", "v1"),
    ("/Namespace|/b", "v1"),
    ("apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com", "v1"),
    ("storage.k8s.io/StorageClass|/x", "v1"),
    ("rbac.authorization.k8s.io/ClusterRole|/x", "v1"),
    ("/ConfigMap|a/x", "v1"),
    ("/ConfigMap|a/y", "v1"),
    ("/ConfigMap|b/x", "v1"),
    ("/Secret|a/x", "v1"),
    ("/PersistentVolumeClaim|a/x", "v1"),
    ("/Service|a/x", "v1"),
    ("apps/Deployment|a/x", "v1"),
    ("example.com/Widget|a/x", "v1"),
    ("unknown.example.com/Gadget|a/x", "v1"),
    ("networking.k8s.io/Ingress|a/x", "v1"),
    ("extensions/Ingress|a/x", "v1beta1"),
    ("admissionregistration.k8s.io/ValidatingWebhookConfiguration|/x", "v1"),
];

/// More ConfigMaps, so that more than ten objects can be pruned at once.
const CROWD: usize = 16;

pub(crate) fn id(text: &str) -> ObjectId {
    ObjectId::parse(text).expect("a literal id")
}

pub(crate) fn ids() -> Vec<(ObjectId, &'static str)> {
    let crowd = (0..CROWD).map(|at| (id(&format!("/ConfigMap|b/crowd-{at:02}")), "v1"));
    IDS.iter().map(|(text, version)| (id(text), *version)).chain(crowd).collect()
}

/// One object in Git.
#[derive(Debug, Clone)]
pub(crate) struct Want {
    pub(crate) wave: i32,
    pub(crate) content: u8,
    pub(crate) reconcile_disabled: bool,
    pub(crate) apply_once: bool,
    pub(crate) prune_disabled: bool,
}

/// One object in the cluster; `recorded` says whether its hash is that of Git, another, or missing.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) observed: Observed,
    pub(crate) recorded: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Approval {
    Absent,
    Stale,
    Right,
}

/// The desired set of a world, made once; it is shown by what it is made of.
#[derive(Clone)]
pub(crate) struct Desired(pub(crate) Rc<DesiredSet>);

impl Deref for Desired {
    type Target = DesiredSet;

    fn deref(&self) -> &DesiredSet {
        &self.0
    }
}

impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects", self.0.len())
    }
}

/// Everything that a plan depends on.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// The desired objects, by way of files, one for each object.
    pub(crate) desired: Desired,
    pub(crate) wants: BTreeMap<ObjectId, Want>,
    pub(crate) live: BTreeMap<ObjectId, Live>,
    pub(crate) unlisted: BTreeSet<GroupKind>,
    pub(crate) policy: Policy,
    pub(crate) approval: Approval,
    /// Objects that stay, being deleted, until somebody lets them go.
    pub(crate) finalizers: BTreeSet<ObjectId>,
}

impl World {
    pub(crate) fn observed(&self) -> ObservedSet {
        observed_of(self.live.iter(), &self.unlisted, &self.desired)
    }

    /// The policy, with the approval as the plan asks for it.
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = self.policy.clone();
        policy.approved = match self.approval {
            Approval::Absent => None,
            Approval::Stale => Some("0123456789abcdef".to_owned()),
            Approval::Right => plan(&self.desired, &self.observed(), &policy).approval,
        };
        policy
    }
}

pub(crate) fn desired_of<'a>(wants: impl Iterator<Item = (&'a ObjectId, &'a Want)>) -> DesiredSet {
    let versions: BTreeMap<_, _> = ids().into_iter().collect();
    // The name of the file decides the order in which the renderer meets it.
    let files: Vec<_> = wants
        .enumerate()
        .map(|(at, (id, want))| (format!("{at:03}.json"), body(id, versions[id], want).to_string()))
        .collect();
    let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let complete = match render::render(&tree, &render::RenderOptions::default()) {
        Rendered::Complete(complete) => complete,
        Rendered::Incomplete(incomplete) => panic!("{:?}", incomplete.problems),
    };
    let mut scopes = Scopes::builtin();
    scopes.insert(GroupKind::new("example.com", "Widget"), Scope::Namespaced);
    scopes.insert(GroupKind::new("extensions", "Ingress"), Scope::Namespaced);
    build_desired_set(complete, "default", &scopes).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn body(id: &ObjectId, version: &str, want: &Want) -> Value {
    let mut annotations = json!({"moorline.dev/wave": want.wave.to_string()});
    for (set, key, value) in [
        (want.reconcile_disabled, "moorline.dev/reconcile", "disabled"),
        (want.apply_once, "moorline.dev/apply", "once"),
        (want.prune_disabled, "moorline.dev/prune", "disabled"),
    ] {
        if set {
            annotations[key] = value.into();
        }
    }
    let api_version = match id.group() {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    annotations["example.com/content"] = want.content.to_string().into();
    let mut metadata = json!({"name": id.name(), "annotations": annotations});
    // Objects of a kind that nobody knows name no namespace, so that their id is not the one they will have.
    if let Some(namespace) = id.namespace().filter(|_| id.kind() != "Gadget") {
        metadata["namespace"] = namespace.into();
    }
    json!({"apiVersion": api_version, "kind": id.kind(), "metadata": metadata})
}

pub(crate) fn observed_of<'a>(
    live: impl Iterator<Item = (&'a ObjectId, &'a Live)>,
    unlisted: &BTreeSet<GroupKind>,
    desired: &DesiredSet,
) -> ObservedSet {
    let mut observed = ObservedSet::default();
    for (id, live) in live {
        let other = SpecHash { form: CanonicalForm::V1, digest: [7; 32] };
        let recorded =
            live.recorded.map(|same| desired.get(id).filter(|_| same).map_or(other, |want| want.hash));
        observed.insert(id.clone(), Observed { recorded_hash: recorded, ..live.observed.clone() });
    }
    unlisted.iter().for_each(|kind| observed.mark_unlisted(kind.clone()));
    observed
}

/// Carries out the first `most` steps; a stage whose object stays, being deleted, is the last one.
pub(crate) fn carry_out(world: &mut World, plan: &Plan, most: usize) {
    let mut left = most;
    for (_, steps) in &plan.stages {
        let mut stays = false;
        for step in steps {
            if left == 0 {
                return;
            }
            left -= 1;
            stays |= take(world, step);
        }
        if stays {
            return;
        }
    }
}

/// Carries out one step; true if the object is still there although it should go.
fn take(world: &mut World, Step { id, action }: &Step) -> bool {
    match action {
        Action::Create => {
            assert!(!world.live.contains_key(id), "{id} is there already");
            let live = Live { observed: plain(&format!("new {id}")), recorded: Some(true) };
            world.live.insert(id.clone(), live);
            applied(world, id);
        }
        Action::ReplaceHookRuns { .. } => unreachable!("no hook is named by its content here"),
        Action::Adopt { .. } | Action::Update(_) => applied(world, id),
        Action::HandOver { to } => {
            let observed = &mut world.live.get_mut(id).expect("it is there").observed;
            (observed.ownership, observed.proven) = (Ownership::OtherSync(to.clone()), false);
        }
        Action::Prune { uid, resource_version } => {
            // It may have gone with its namespace, or be another that was deleted under its other group.
            let Some(live) = world.live.get_mut(id) else { return false };
            assert_eq!((uid, resource_version), (&live.observed.uid, &live.observed.resource_version));
            if world.finalizers.contains(id) {
                live.observed.deleting = true;
                return true;
            }
            // One object may be served under two groups.
            let uid = uid.clone();
            world.live.retain(|_, live| live.observed.uid != uid);
            if id.is_kind("", "Namespace") {
                world.live.retain(|other, _| other.namespace() != Some(id.name()));
            }
            if id.kind() == "CustomResourceDefinition" {
                world.live.retain(|other, _| other.kind() != "Widget");
            }
        }
    }
    false
}

fn applied(world: &mut World, id: &ObjectId) {
    let want = &world.wants[id];
    // An object has one identity, also where it is served under two groups.
    let uid = world.live[id].observed.uid.clone();
    for live in world.live.values_mut().filter(|live| live.observed.uid == uid && !uid.is_empty()) {
        (live.observed.ownership, live.observed.proven) = (Ownership::Copy, false);
    }
    let live = world.live.get_mut(id).expect("it is there");
    live.recorded = Some(true);
    let seen = &mut live.observed;
    (seen.ownership, seen.proven) = (Ownership::Ours, true);
    seen.applied_by_us = true;
    seen.verification = Verification::Verified;
    seen.wave = want.wave;
    seen.prune_disabled = want.prune_disabled;
    seen.resource_version = format!("{}'", seen.resource_version).into();
}

/// An object as we apply it.
pub(crate) fn plain(uid: &str) -> Observed {
    Observed {
        applied_by_us: true,
        proven: true,
        ownership: Ownership::Ours,
        verification: Verification::Verified,
        ..Observed::new(uid, "1")
    }
}

/// Returns the place of a step: prunes or not, its wave, and the place of its stage in the plan.
pub(crate) fn places(plan: &Plan) -> Vec<(bool, i32, usize, &Step)> {
    let stages = plan.stages.iter().enumerate().flat_map(|(at, (stage, steps))| {
        let (prunes, wave) = match stage {
            Stage::Apply { turn, .. } => (false, turn.wave),
            Stage::Prune { wave, .. } => (true, wave.0),
        };
        steps.iter().map(move |step| (prunes, wave, at, step))
    });
    stages.collect()
}
