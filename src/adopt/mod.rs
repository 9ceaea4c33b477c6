//! From what Argo CD or Flux holds to a Sync that holds the same.
//!
//! In: an `Application` or a `Kustomization` as the API server has it, and what belongs to it. Out: [`Adoption`]: the Sync,
//! what of the old resource is not in it, and what keeps it from being the same. Which objects the old tool owns is in
//! `owned.rs`, how it is stopped and started again in `former.rs`, what it leaves behind on objects in `predecessor.rs`.

mod argocd;
mod chart;
mod draft;
mod flux;
mod former;
mod ignored;
mod leftovers;
mod lengths;
mod owned;
mod policy;
mod predecessor;
mod substitution;
mod untouched;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::{ADOPTED_FROM_ANNOTATION, SyncName};
use crate::object::ObjectId;
use draft::Draft;
pub use former::{Former, FormerError, halt, is_at_work, is_ending, is_halted};
pub use leftovers::leftovers;
pub use owned::{Mark, Owned, mark, owned};
pub use predecessor::Predecessor;
pub use untouched::untouched;

/// A tool whose objects are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Argo CD, by an Application.
    ArgoCd,
    /// Flux, by a Kustomization.
    Flux,
}

impl Tool {
    /// The tool that has resources of this group, if it is one of these.
    pub fn of_group(group: &str) -> Option<Self> {
        [Self::ArgoCd, Self::Flux].into_iter().find(|tool| tool.group() == group)
    }

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::ArgoCd => Self::Flux,
            Self::Flux => Self::ArgoCd,
        }
    }

    /// The group of its resource.
    pub const fn group(self) -> &'static str {
        match self {
            Self::ArgoCd => "argoproj.io",
            Self::Flux => "kustomize.toolkit.fluxcd.io",
        }
    }

    /// The version of its resource.
    pub const fn version(self) -> &'static str {
        match self {
            Self::ArgoCd => "v1alpha1",
            Self::Flux => "v1",
        }
    }

    /// The kind of its resource.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::ArgoCd => "Application",
            Self::Flux => "Kustomization",
        }
    }

    /// The resource as kubectl takes it.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::ArgoCd => "applications.argoproj.io",
            Self::Flux => "kustomizations.kustomize.toolkit.fluxcd.io",
        }
    }

    /// Where it is usually installed.
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::ArgoCd => "argocd",
            Self::Flux => "flux-system",
        }
    }

    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ArgoCd => "Argo CD",
            Self::Flux => "Flux",
        }
    }

    /// The names under which it writes objects.
    pub const fn managers(self) -> &'static [&'static str] {
        match self {
            Self::ArgoCd => &["argocd-controller", "argocd-application-controller"],
            Self::Flux => &["kustomize-controller"],
        }
    }

    /// One resource of it, as the id of an object.
    pub fn id(self, namespace: &str, name: &str) -> Option<ObjectId> {
        ObjectId::new(self.group(), self.kind(), namespace, name).ok()
    }
}

/// What is adopted, and what belongs to it.
#[derive(Debug, Clone)]
pub struct Old<'a> {
    /// Whose it is.
    pub tool: Tool,
    /// The Application or Kustomization, as it was before anything was done to it.
    pub body: &'a Value,
    /// The GitRepository of a Kustomization.
    pub repository: Option<&'a Value>,
    /// The ApplicationSet that makes an Application.
    pub maker: Option<&'a Value>,
    /// The Syncs of the Kustomizations that were adopted before, by namespace and name.
    pub adopted: BTreeMap<(String, String), SyncName>,
}

/// What is wished of the Sync beside what the old resource says.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its namespace and name.
    pub sync: SyncName,
    /// The Secret in its namespace by which the repository is read.
    pub secret: Option<String>,
}

/// Something about a field of the old resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The field, such as `spec.source.helm`.
    pub field: Box<str>,
    /// What is the matter with it, and what to do.
    pub why: Box<str>,
}

/// A Sync in the place of the old resource.
#[derive(Debug, Clone)]
pub struct Adoption {
    /// The Sync as a manifest.
    pub sync: Value,
    /// What is not carried over, and why.
    pub lost: Vec<Remark>,
    /// What keeps the Sync from holding the same objects.
    pub refused: Vec<Remark>,
}

/// The Sync that holds what the old resource holds.
pub fn adopt(old: &Old<'_>, wanted: &Wanted) -> Adoption {
    let mut draft = Draft::new(wanted.clone());
    match old.tool {
        Tool::ArgoCd => argocd::argocd(old, &mut draft),
        Tool::Flux => flux::flux(old, &mut draft),
    }
    let place = |field: &str| draft::text(old.body, &format!("/metadata/{field}")).to_owned();
    let from = old.tool.id(&place("namespace"), &place("name"));
    let (name, namespace) = (&wanted.sync.name, &wanted.sync.namespace);
    let mut sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
        "metadata": {"name": name, "namespace": namespace, "annotations": {}},
        "spec": draft.spec,
    });
    sync["metadata"]["annotations"][ADOPTED_FROM_ANNOTATION] =
        from.map(|id| id.as_str().to_owned()).unwrap_or_default().into();
    Adoption { sync, lost: draft.lost, refused: draft.refused }
}

/// The objects that would get another namespace than before. Flux puts everything into the target namespace; Moorline only
/// what names none.
pub fn displaced<'a>(old: &Old<'_>, objects: impl Iterator<Item = &'a ObjectId>) -> Option<Remark> {
    let target = old.body.pointer("/spec/targetNamespace").and_then(Value::as_str)?;
    if old.tool != Tool::Flux {
        return None;
    }
    let elsewhere = |id: &&ObjectId| id.namespace().is_some_and(|namespace| namespace != target);
    let displaced: Vec<String> = objects.filter(elsewhere).map(ToString::to_string).collect();
    let first = displaced.first()?;
    let more = match displaced.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let why = format!(
        "Flux puts every object into {target}, Moorline only those that name no namespace: take the namespace out of {first}{more} in Git"
    );
    Some(Remark { field: "spec.targetNamespace".into(), why: why.into() })
}

#[cfg(test)]
mod tests;
