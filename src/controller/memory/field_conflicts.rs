//! Remembers conflicts over fields of a Sync's objects, and warnings of the API server.
//!
//! In: conflicts, fields that outlive their removal from Git, warnings.
//! Out: the places to leave out of the next apply, and remarks for the status.
//!
//! The data is a cache: the next conflict restores it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::SpecHash;
use crate::cluster::POLL;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::{GroupKind, ObjectId};
use crate::report::ObjectRemark;

/// Field conflicts of a Sync, by object.
#[derive(Debug, Default)]
pub(crate) struct FieldConflicts(Mutex<BTreeMap<ObjectId, ObjectConflicts>>);

#[derive(Debug, Clone)]
struct ObjectConflicts {
    /// Hash of the manifest for which this is known.
    hash: SpecHash,
    yielded: Vec<YieldedField>,
    remains: Vec<LeftoverField>,
    /// Texts about the warnings of the API server on the last apply.
    warnings: Vec<Box<str>>,
}

/// A field that is left to another manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YieldedField {
    /// JSON pointer into the manifest.
    pub(crate) pointer: Box<str>,
    /// The field, as the API server writes it.
    pub(crate) field: Box<str>,
    pub(crate) manager: Box<str>,
}

/// A field that is no longer in Git and could not be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftoverField {
    pub(crate) field: String,
    pub(crate) why: String,
}

impl FieldConflicts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectId, ObjectConflicts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the places to leave out of an apply. A changed manifest claims all of its fields
    /// again.
    pub(crate) fn yielded(&self, wanted: &DesiredObject) -> Vec<Box<str>> {
        let all = self.lock();
        let known = all.get(&wanted.id).filter(|known| known.hash == wanted.hash);
        known.into_iter().flat_map(|known| known.yielded.iter().map(|it| it.pointer.clone())).collect()
    }

    /// Adds fields that are left to other managers.
    pub(crate) fn yield_to(&self, wanted: &DesiredObject, fields: Vec<YieldedField>) {
        self.change(wanted, |entry| {
            for field in fields {
                if !entry.yielded.iter().any(|known| known.pointer == field.pointer) {
                    entry.yielded.push(field);
                }
            }
        });
    }

    /// Removes fields that no other manager owns any more.
    pub(crate) fn reclaim(&self, wanted: &DesiredObject, pointers: &[Box<str>]) {
        self.change(wanted, |entry| entry.yielded.retain(|known| !pointers.contains(&known.pointer)));
    }

    /// Replaces the fields that stay although Git no longer sets them.
    pub(crate) fn remain(&self, wanted: &DesiredObject, remains: Vec<LeftoverField>) {
        self.change(wanted, |entry| entry.remains = remains);
    }

    /// Replaces the warnings of the server on an object that it accepted.
    pub(crate) fn warned(&self, wanted: &DesiredObject, warnings: &[Box<str>]) {
        self.change(wanted, |entry| entry.warnings = shown_warnings(wanted.contains_secret, warnings));
    }

    fn change(&self, wanted: &DesiredObject, change: impl FnOnce(&mut ObjectConflicts)) {
        let mut all = self.lock();
        let mut entry =
            all.remove(&wanted.id).filter(|known| known.hash == wanted.hash).unwrap_or(ObjectConflicts {
                hash: wanted.hash,
                yielded: Vec::new(),
                remains: Vec::new(),
                warnings: Vec::new(),
            });
        change(&mut entry);
        if !(entry.yielded.is_empty() && entry.remains.is_empty() && entry.warnings.is_empty()) {
            all.insert(wanted.id.clone(), entry);
        }
    }

    /// Returns the remarks on these objects, and forgets all other objects.
    pub(crate) fn remarks(&self, desired: &DesiredSet) -> Vec<ObjectRemark> {
        let mut all = self.lock();
        all.retain(|id, entry| desired.get(id).is_some_and(|wanted| wanted.hash == entry.hash));
        let of_entry = |(id, entry): (&ObjectId, &ObjectConflicts)| {
            let shown = |field: &str| match desired.get(id) {
                Some(wanted) => wanted.display_path(field).into_owned(),
                None => field.to_owned(),
            };
            let remark = |reason, message| ObjectRemark { id: id.clone(), reason, message };
            let yielded = entry.yielded.iter().map(|it| {
                let field = shown(&it.field);
                remark("FieldYielded", format!("{field} is left to {} (conflicts: Yield)", it.manager))
            });
            let remains = entry.remains.iter().map(|it| {
                let field = shown(&it.field);
                remark("FieldRemains", format!("{field} is no longer in Git but was not removed: {}", it.why))
            });
            let warnings = entry.warnings.iter().map(|text| remark("Warning", text.to_string()));
            yielded.chain(remains).chain(warnings).collect::<Vec<_>>()
        };
        all.iter().flat_map(of_entry).collect()
    }
}

/// Returns the texts about warnings. A warning may quote the object, and the values of a Secret
/// must not be shown.
fn shown_warnings(secret: bool, warnings: &[Box<str>]) -> Vec<Box<str>> {
    if !secret {
        return warnings.iter().map(|text| format!("the API server warns: {text}").into()).collect();
    }
    let untold = "the API server sent a warning that is not shown, because it may quote the Secret";
    warnings.first().map(|_| untold.into()).into_iter().collect()
}

/// Returns one remark for each kind that the server cannot watch.
pub(crate) fn polled(desired: &DesiredSet, is_polled: impl Fn(&GroupKind) -> bool) -> Vec<ObjectRemark> {
    let kinds: BTreeMap<GroupKind, &ObjectId> =
        desired.objects().iter().rev().map(|object| (object.id.group_kind(), &object.id)).collect();
    let of_polled = kinds.into_iter().filter(|(kind, _)| is_polled(kind));
    let remark = |(kind, id): (GroupKind, &ObjectId)| ObjectRemark {
        id: id.clone(),
        reason: "Polled",
        message: format!(
            "the API server cannot watch {kind}, so it is listed every {} s: drift is detected with that delay",
            POLL.as_secs()
        ),
    };
    of_polled.map(remark).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::{Scopes, build_desired_set};
    use crate::render::{RenderOptions, Rendered, render};
    use crate::tree::FileTree;

    #[test]
    fn a_kind_without_watches_is_reported_once() {
        let text = |kind: &str, name: &str| {
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}).to_string()
        };
        let files = [text("ConfigMap", "a"), text("Secret", "a"), text("Secret", "b")];
        let tree = ["0.json", "1.json", "2.json"].into_iter().zip(files.iter().map(String::as_str));
        let Rendered::Complete(complete) = render(&FileTree::from_texts(tree), &RenderOptions::default())
        else {
            panic!("the manifests are sound")
        };
        let desired = build_desired_set(complete, "shop", &Scopes::builtin()).unwrap();
        let told = polled(&desired, |kind| *kind == GroupKind::new("", "Secret"));
        let told: Vec<_> = told.iter().map(|it| (it.id.as_str(), it.reason)).collect();
        assert_eq!(told, [("/Secret|shop/a", "Polled")]);
    }

    #[test]
    fn remarks_on_a_secret_are_not_repeated() {
        let told_of = |kind: &str, warnings: &[&str]| {
            let warnings: Vec<Box<str>> = warnings.iter().map(|text| Box::from(*text)).collect();
            shown_warnings(kind == "Secret", &warnings)
        };
        assert_eq!(told_of("ConfigMap", &["one"]), ["the API server warns: one".into()]);
        let of_secret = told_of("Secret", &["hunter2 is weak", "hunter2 is short"]);
        assert_eq!(of_secret.len(), 1, "the same once");
        assert!(of_secret[0].contains("not shown") && !of_secret[0].contains("hunter2"), "{}", of_secret[0]);
        assert!(told_of("Secret", &[]).is_empty());
    }
}
