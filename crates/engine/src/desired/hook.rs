//! Hooks: objects that run in a phase of a sync instead of existing permanently.
//!
//! In: the annotations of an object.
//! Out: [`Hook`], or the invalid annotation. Our own annotation takes precedence, then Argo CD's,
//! then Helm's, so that a repository from either tool needs no edit.
//!
//! A run of a hook is identified by content: half of its hash is of the hook itself, half of the
//! set that it runs for. So it runs once for every change of the set, a retry finds the existing
//! run, and an earlier run never blocks the next.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::{DesiredObject, HashKeys};
use moorline_api as api;
use moorline_core::object::{GroupKind, ObjectId};
use moorline_render::HOOK_NAME_DIGITS;

/// Phase in which an object runs, and its cleanup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hook {
    /// It runs in every sync, in this phase.
    pub phase: Option<Phase>,
    /// It runs when a sync has failed.
    pub on_failure: bool,
    /// It runs when the Sync is deleted with its objects.
    pub delete_phase: Option<DeletePhase>,
    /// The syncs in which it runs.
    pub rollouts: RolloutFilter,
    /// It is deleted after success.
    pub delete_on_success: bool,
    /// It is deleted after failure.
    pub delete_on_failure: bool,
    /// An existing run is deleted before the next one begins, also for kinds that do not run to
    /// completion.
    pub replaces_previous: bool,
}

/// Phase of a sync. Phases compare in the order in which they are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Phase {
    /// Before all objects that are no hooks.
    PreSync,
    /// Objects that are no hooks, and the hooks that run together with them.
    #[default]
    Sync,
    /// After all other objects are applied and healthy.
    PostSync,
}

/// Phase of the deletion of a Sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletePhase {
    /// Before its objects are deleted.
    PreDelete,
    /// After they are deleted.
    PostDelete,
}

/// The syncs in which a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RolloutFilter {
    /// All syncs.
    #[default]
    All,
    /// Only the first sync.
    First,
    /// All syncs except the first.
    Later,
}

/// Position of an object in the order of applies: the phase first, then the wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PhaseWave {
    /// The phase of the sync.
    pub phase: Phase,
    /// The wave in the phase.
    pub wave: i32,
}

/// Role of an object, by its annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookRole {
    /// It exists permanently.
    Object,
    /// It runs in a phase.
    Hook(Hook),
    /// It is never applied, such as the tests of a chart.
    Skipped,
}

/// Annotation, expected values, actual value.
pub(super) type InvalidHookAnnotation<'a> = (&'static str, &'static str, &'a str);

const OURS: &str =
    "before, after, failure, before-delete, after-delete, or several of them with commas between";
const ARGO: &str = "PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete or Skip";
const HELM: &str = "one of Helm's hooks, such as pre-install,pre-upgrade";
const CLEARS: &str = "succeeded, failed, or both with a comma between";
const ARGO_CLEARS: &str = "HookSucceeded, HookFailed or BeforeHookCreation";
const HELM_CLEARS: &str = "hook-succeeded, hook-failed or before-hook-creation";
const TWICE: &str = "only one phase: write a second object for the other phase";

/// Reads the hook annotations of an object.
pub(super) fn read<'a>(
    annotation: impl Fn(&str) -> Option<&'a str>,
) -> Result<HookRole, InvalidHookAnnotation<'a>> {
    let ([argo, argo_clears], [helm, helm_clears]) = (api::ARGO_HOOK_ANNOTATIONS, api::HELM_HOOK_ANNOTATIONS);
    let dialects = [
        AnnotationSyntax { key: api::HOOK_ANNOTATION, says: OURS, word: ours },
        AnnotationSyntax { key: argo, says: ARGO, word: of_argo },
        AnnotationSyntax { key: helm, says: HELM, word: of_helm },
    ];
    let clears = [
        (api::HOOK_DELETE_ANNOTATION, CLEARS, ["succeeded", "failed", "failed"]),
        (argo_clears, ARGO_CLEARS, ["HookSucceeded", "HookFailed", "BeforeHookCreation"]),
        (helm_clears, HELM_CLEARS, ["hook-succeeded", "hook-failed", "before-hook-creation"]),
    ];
    let found = dialects
        .iter()
        .zip(clears)
        .find_map(|(dialect, clears)| annotation(dialect.key).map(|text| (dialect, clears, text)));
    let Some((dialect, (key, says, words), text)) = found else { return Ok(HookRole::Object) };
    let mut hook = match dialect.read(text)? {
        HookRole::Hook(hook) => hook,
        other @ (HookRole::Object | HookRole::Skipped) => return Ok(other),
    };
    for word in annotation(key).into_iter().flat_map(words_of) {
        match words.iter().position(|known| *known == word) {
            Some(0) => hook.delete_on_success = true,
            Some(1) => hook.delete_on_failure = true,
            Some(_) => hook.replaces_previous = true,
            None => return Err((key, says, annotation(key).unwrap_or_default())),
        }
    }
    Ok(HookRole::Hook(hook))
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// The hook annotations of one tool.
struct AnnotationSyntax {
    key: &'static str,
    says: &'static str,
    word: fn(&str) -> Option<HookTrigger>,
}

/// Meaning of one value in a hook annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HookTrigger {
    At(Phase, RolloutFilter),
    Failure,
    Delete(DeletePhase),
    /// A normal object.
    None,
    /// A hook that never runs here.
    Never,
}

impl AnnotationSyntax {
    fn read<'a>(&self, text: &'a str) -> Result<HookRole, InvalidHookAnnotation<'a>> {
        let mut hook = Hook::default();
        let (mut runs, mut skips) = (false, false);
        for word in words_of(text) {
            let moment = (self.word)(word).ok_or((self.key, self.says, text))?;
            runs |= !matches!(moment, HookTrigger::Never | HookTrigger::None);
            match moment {
                HookTrigger::At(phase, _) if hook.phase.is_some_and(|known| known != phase) => {
                    return Err((self.key, TWICE, text));
                }
                HookTrigger::At(phase, rollouts) => {
                    let both = hook.phase.is_some() && hook.rollouts != rollouts;
                    hook.phase = Some(phase);
                    hook.rollouts = if both { RolloutFilter::All } else { rollouts };
                }
                HookTrigger::Failure => hook.on_failure = true,
                HookTrigger::Delete(parting) => hook.delete_phase = Some(parting),
                HookTrigger::None => {}
                HookTrigger::Never => skips = true,
            }
        }
        match (runs, skips) {
            (true, _) => Ok(HookRole::Hook(hook)),
            (false, true) => Ok(HookRole::Skipped),
            (false, false) if words_of(text).next().is_none() => Err((self.key, self.says, text)),
            (false, false) => Ok(HookRole::Object),
        }
    }
}

fn ours(word: &str) -> Option<HookTrigger> {
    Some(match word {
        "before" => HookTrigger::At(Phase::PreSync, RolloutFilter::All),
        "after" => HookTrigger::At(Phase::PostSync, RolloutFilter::All),
        "failure" => HookTrigger::Failure,
        "before-delete" => HookTrigger::Delete(DeletePhase::PreDelete),
        "after-delete" => HookTrigger::Delete(DeletePhase::PostDelete),
        _ => return None,
    })
}

fn of_argo(word: &str) -> Option<HookTrigger> {
    Some(match word {
        "PreSync" => HookTrigger::At(Phase::PreSync, RolloutFilter::All),
        "Sync" => HookTrigger::At(Phase::Sync, RolloutFilter::All),
        "PostSync" => HookTrigger::At(Phase::PostSync, RolloutFilter::All),
        "SyncFail" => HookTrigger::Failure,
        "PreDelete" => HookTrigger::Delete(DeletePhase::PreDelete),
        "PostDelete" => HookTrigger::Delete(DeletePhase::PostDelete),
        "Skip" => HookTrigger::Never,
        _ => return None,
    })
}

fn of_helm(word: &str) -> Option<HookTrigger> {
    Some(match word {
        "pre-install" => HookTrigger::At(Phase::PreSync, RolloutFilter::First),
        "pre-upgrade" => HookTrigger::At(Phase::PreSync, RolloutFilter::Later),
        "post-install" => HookTrigger::At(Phase::PostSync, RolloutFilter::First),
        "post-upgrade" => HookTrigger::At(Phase::PostSync, RolloutFilter::Later),
        "pre-delete" => HookTrigger::Delete(DeletePhase::PreDelete),
        "post-delete" => HookTrigger::Delete(DeletePhase::PostDelete),
        "crd-install" => HookTrigger::None,
        // A chart's tests run on request only, and a rollback here is another commit.
        "test" | "test-success" | "test-failure" | "pre-rollback" | "post-rollback" => HookTrigger::Never,
        _ => return None,
    })
}

/// Number of bytes of a hook's hash that are of the hook itself.
pub(super) const HALF: usize = 16;

/// True if both may be runs, at different times, of one hook whose name ends in a content hash.
pub fn have_same_base_name(one: &ObjectId, other: &ObjectId) -> bool {
    let kind = |id: &ObjectId| (id.group_kind(), id.namespace().map(str::to_owned));
    one != other && base(one).is_some() && base(one) == base(other) && kind(one) == kind(other)
}

/// Returns the name without the content hash.
fn base(id: &ObjectId) -> Option<&str> {
    let name = id.name();
    let (base, digits) = name.split_at_checked(name.len().checked_sub(HOOK_NAME_DIGITS)?)?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (!base.is_empty() && digits.bytes().all(is_digit)).then_some(base)
}

/// Mixes the hash of the set into the hashes of its hooks.
pub(super) fn mix_set_hash_into_hooks(objects: &mut [DesiredObject]) {
    let (hooks, rest): (Vec<_>, Vec<_>) =
        objects.iter_mut().partition(|object| object.annotations.hook.is_some());
    if hooks.is_empty() {
        return;
    }
    let is_of_secrets = rest.iter().any(|object| object.contains_secret);
    let mut of_set = Sha256::new();
    for object in rest {
        of_set.update(object.id.as_str());
        of_set.update([0]);
        of_set.update(object.hash.digest);
    }
    let of_set = of_set.finalize();
    let mut first: BTreeMap<HookDependency, PhaseWave> = BTreeMap::new();
    for hook in hooks {
        hook.hash.digest[HALF..].copy_from_slice(&of_set[..HALF]);
        if is_of_secrets && matches!(hook.hash_keys, HashKeys::NotNeeded) {
            hook.hash_keys = HashKeys::Missing;
        }
        let turn = hook.annotations.phase_wave();
        let namespace = hook.id.namespace().map(|name| HookDependency::Namespace(name.into()));
        for container in namespace.into_iter().chain([HookDependency::Definition(hook.id.group_kind())]) {
            first.entry(container).and_modify(|known| *known = turn.min(*known)).or_insert(turn);
        }
    }
    for object in objects {
        object.annotations.needed_by_hook_at =
            container(object).and_then(|container| first.get(&container).copied());
    }
}

/// An object that must exist before a hook can be created.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum HookDependency {
    Namespace(Box<str>),
    Definition(GroupKind),
}

/// Returns the container that an object is, if it is one.
fn container(object: &DesiredObject) -> Option<HookDependency> {
    if object.id.is_kind("", "Namespace") {
        return Some(HookDependency::Namespace(object.id.name().into()));
    }
    if !object.id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let body = object.body();
    let spec = body.get("spec")?;
    let kind = spec.get("names")?.get("kind")?.as_str()?;
    Some(HookDependency::Definition(GroupKind::new(spec.get("group")?.as_str()?, kind)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::desired::DesiredSet;
    use crate::desired::{Scopes, build_desired_set};
    use moorline_core::tree::FileTree;
    use moorline_render::{RenderOptions, Rendered, render};

    fn kind(annotations: &[(&str, &'static str)]) -> Result<HookRole, InvalidHookAnnotation<'static>> {
        read(|key| annotations.iter().find(|(known, _)| *known == key).map(|(_, text)| *text))
    }

    #[test]
    fn every_dialect_is_understood() {
        let none = Hook::default();
        let at = |phase| Hook { phase: Some(phase), ..none };
        let check = |key: &str, text: &'static str, expect: Hook| {
            assert_eq!(kind(&[(key, text)]), Ok(HookRole::Hook(expect)), "{key}: {text}");
        };
        let (ours, [argo, _], [helm, _]) =
            (api::HOOK_ANNOTATION, api::ARGO_HOOK_ANNOTATIONS, api::HELM_HOOK_ANNOTATIONS);
        check(ours, "before", at(Phase::PreSync));
        check(ours, " after , failure ", Hook { on_failure: true, ..at(Phase::PostSync) });
        check(ours, "before-delete", Hook { delete_phase: Some(DeletePhase::PreDelete), ..none });
        check(argo, "PreSync", at(Phase::PreSync));
        check(argo, "Sync", at(Phase::Sync));
        check(argo, "PostSync,SyncFail", Hook { on_failure: true, ..at(Phase::PostSync) });
        check(argo, "PostDelete", Hook { delete_phase: Some(DeletePhase::PostDelete), ..none });
        check(helm, "pre-install,pre-upgrade", at(Phase::PreSync));
        check(helm, "post-install", Hook { rollouts: RolloutFilter::First, ..at(Phase::PostSync) });
        check(helm, "pre-upgrade", Hook { rollouts: RolloutFilter::Later, ..at(Phase::PreSync) });
        check(helm, "post-install,post-upgrade,post-rollback", at(Phase::PostSync));
        assert_eq!(kind(&[]), Ok(HookRole::Object));
        assert_eq!(kind(&[(helm, "crd-install")]), Ok(HookRole::Object));
        assert_eq!(kind(&[(helm, "test")]), Ok(HookRole::Skipped));
        assert_eq!(kind(&[(argo, "Skip")]), Ok(HookRole::Skipped));
        // Our annotation takes precedence over Argo CD's, and that over Helm's.
        let all = [(helm, "test"), (argo, "PostSync"), (ours, "before")];
        assert_eq!(kind(&all), Ok(HookRole::Hook(at(Phase::PreSync))));
        assert_eq!(kind(&all[..2]), Ok(HookRole::Hook(at(Phase::PostSync))));
    }

    #[test]
    fn what_means_nothing_is_named() {
        let check = |annotations: &[(&'static str, &'static str)], expect: (&str, &str)| {
            let (key, says, _) = kind(annotations).unwrap_err();
            assert_eq!((key, says), expect, "{annotations:?}");
        };
        let ours = api::HOOK_ANNOTATION;
        check(&[(ours, "PreSync")], (ours, OURS));
        check(&[(ours, "")], (ours, OURS));
        check(&[("argocd.argoproj.io/hook", "PreSync,PostSync")], ("argocd.argoproj.io/hook", TWICE));
        check(&[("helm.sh/hook", "pre-instal")], ("helm.sh/hook", HELM));
        let clears = api::HOOK_DELETE_ANNOTATION;
        check(&[(ours, "before"), (clears, "HookSucceeded")], (clears, CLEARS));
    }

    #[test]
    fn how_it_has_to_end_to_be_deleted_is_said_in_the_same_dialect() {
        let check = |annotations: &[(&str, &'static str)], expect: [bool; 2]| {
            let Ok(HookRole::Hook(hook)) = kind(annotations) else { panic!("{annotations:?}") };
            assert_eq!([hook.delete_on_success, hook.delete_on_failure], expect, "{annotations:?}");
        };
        let (ours, clears) = (api::HOOK_ANNOTATION, api::HOOK_DELETE_ANNOTATION);
        check(&[(ours, "before")], [false, false]);
        check(&[(ours, "before"), (clears, "succeeded, failed")], [true, true]);
        let argo = ("argocd.argoproj.io/hook", "PreSync");
        let policy = "argocd.argoproj.io/hook-delete-policy";
        check(&[argo, (policy, "BeforeHookCreation,HookSucceeded")], [true, false]);
        check(&[argo, (clears, "failed")], [false, false]);
        check(
            &[("helm.sh/hook", "pre-install"), ("helm.sh/hook-delete-policy", "hook-failed")],
            [false, true],
        );
    }

    fn set(value: &str, command: &str) -> DesiredSet {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"command": command},
            "metadata": {"name": "migrate", "annotations": {"moorline.dev/hook": "before"}}});
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": value}});
        let (job, map): (Value, Value) = (job, map);
        let tree = FileTree::from_texts([
            ("job.json", job.to_string().as_str()),
            ("map.json", map.to_string().as_str()),
        ]);
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
            panic!("it is sound")
        };
        build_desired_set(complete, "shop", &Scopes::builtin()).unwrap()
    }

    #[test]
    fn what_a_hook_cannot_be_without_comes_with_it() {
        let namespace =
            |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let annotations = json!({"moorline.dev/hook": "before", "moorline.dev/wave": "3"});
        let metadata = json!({"name": "a", "namespace": "shop", "annotations": annotations});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata});
        let files = [namespace("shop"), namespace("other"), job].map(|body: Value| body.to_string());
        let named: Vec<String> = (0..files.len()).map(|at| format!("{at}.json")).collect();
        let tree =
            FileTree::from_texts(named.iter().map(String::as_str).zip(files.iter().map(String::as_str)));
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
            panic!("it is sound")
        };
        let set = build_desired_set(complete, "shop", &Scopes::builtin()).unwrap();
        let turn = |name: &str| {
            let found = set.objects().iter().find(|it| it.id.name() == name).unwrap();
            found.annotations.phase_wave()
        };
        assert_eq!(turn("shop"), PhaseWave { phase: Phase::PreSync, wave: 3 });
        assert_eq!(turn("other"), PhaseWave::default());
    }

    #[test]
    fn a_name_that_content_gives_has_its_base() {
        let id = |text: &str| ObjectId::parse(text).unwrap();
        let check = |one: &str, other: &str, expect: bool| {
            assert_eq!(have_same_base_name(&id(one), &id(other)), expect, "{one} {other}");
        };
        let one = "batch/Job|shop/up-0123456789";
        check(one, "batch/Job|shop/up-abcdef0123", true);
        check(one, one, false);
        check(one, "batch/Job|shop/down-abcdef0123", false);
        check(one, "batch/Job|other/up-abcdef0123", false);
        check(one, "/Pod|shop/up-abcdef0123", false);
        check(one, "batch/Job|shop/up-abcdefghij", false);
        check("batch/Job|shop/0123456789", "batch/Job|shop/abcdef0123", false);
    }

    #[test]
    fn a_hook_is_known_by_itself_and_by_what_it_runs_for() {
        let hook = |set: &DesiredSet| {
            set.objects().iter().find(|it| it.annotations.hook.is_some()).cloned().unwrap()
        };
        let hash = |set: &DesiredSet| hook(set).hash;
        let (one, same, other, changed) = (set("1", "up"), set("1", "up"), set("2", "up"), set("1", "down"));
        assert_eq!(hash(&one), hash(&same));
        assert_eq!(hash(&one), hash(&set("1", "up").without_ignored_fields(&[])));
        assert_ne!(hash(&one), hash(&other));
        assert!(hook(&one).is_same_hook(&hash(&other)));
        assert!(!hook(&one).is_same_hook(&hash(&changed)));
        // An object that is no hook depends only on itself.
        let map =
            |set: &DesiredSet| set.objects().iter().find(|it| it.annotations.hook.is_none()).unwrap().hash;
        assert_eq!(map(&one), map(&changed));
        assert!(one.has_ordering());
    }
}
