//! Converts resources of Argo CD and Flux to Syncs that apply the same objects.
//!
//! In: a live `Application`, `Kustomization` or `HelmRelease`, and the resources that belong to it.
//! Out: [`Adoption`]: the Sync, the fields that are not carried over, and the reasons why it would
//! differ. `application_set.rs` converts an ApplicationSet to a SyncSet. `tool_inventory.rs` lists
//! the objects that the old tool owns, `adoption_record.rs` stops and restores the old tool,
//! `adopted_from.rs` decides the fields that it has left behind on objects.

mod adopted_from;
mod adoption_record;
mod application_set;
mod argocd;
mod argocd_sources;
mod chart_sources;
mod cloud_logins;
mod decryption;
mod external_artifact;
mod flux;
mod flux_helm;
mod flux_sources;
mod flux_switches;
mod go_duration;
mod health_rules;
mod helm_options;
mod helm_parameters;
mod helm_storage;
mod ignore_fields;
mod includes;
mod kustomize_options;
mod leftovers;
mod set_generators;
mod set_placeholders;
mod source_refs;
mod substitution;
mod sync_builder;
mod sync_policy;
mod template_marks;
mod tool_inventory;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::{ADOPTED_FROM_ANNOTATION, SyncName};
use crate::object::ObjectId;
pub use adopted_from::AdoptedFrom;
pub use adoption_record::{
    AdoptionRecord, AdoptionRecordError, busy_reason, is_being_deleted, is_stopped, stop_patch,
};
pub use application_set::adopt_set;
pub use argocd::parent_application;
pub use external_artifact::{generator_name, generator_source};
pub use flux_switches::missing_switch;
pub use helm_storage::{storage_name, stored_inventory};
pub use leftovers::leftovers;
use sync_builder::SyncBuilder;
pub use tool_inventory::{OwnerMark, ToolInventory, mark, read_inventory};

/// A tool from which objects can be adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Argo CD, by an Application.
    ArgoCd,
    /// Flux, by a Kustomization.
    Flux,
    /// Flux, by a HelmRelease.
    FluxHelm,
}

/// All tools.
const TOOLS: [Tool; 3] = [Tool::ArgoCd, Tool::Flux, Tool::FluxHelm];

impl Tool {
    /// The tool whose resources are of this API group.
    pub fn from_group(group: &str) -> Option<Self> {
        TOOLS.into_iter().find(|tool| tool.group() == group)
    }

    /// The other tools.
    pub fn others(self) -> impl Iterator<Item = Self> {
        TOOLS.into_iter().filter(move |tool| *tool != self)
    }

    /// The API group of its resource.
    pub const fn group(self) -> &'static str {
        match self {
            Self::ArgoCd => "argoproj.io",
            Self::Flux => "kustomize.toolkit.fluxcd.io",
            Self::FluxHelm => "helm.toolkit.fluxcd.io",
        }
    }

    /// The version of its resource.
    pub const fn version(self) -> &'static str {
        match self {
            Self::ArgoCd => "v1alpha1",
            Self::Flux => "v1",
            Self::FluxHelm => "v2",
        }
    }

    /// The kind of its resource.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::ArgoCd => "Application",
            Self::Flux => "Kustomization",
            Self::FluxHelm => "HelmRelease",
        }
    }

    /// The resource name for kubectl.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::ArgoCd => "applications.argoproj.io",
            Self::Flux => "kustomizations.kustomize.toolkit.fluxcd.io",
            Self::FluxHelm => "helmreleases.helm.toolkit.fluxcd.io",
        }
    }

    /// The namespace in which it is usually installed.
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::ArgoCd => "argocd",
            Self::Flux | Self::FluxHelm => "flux-system",
        }
    }

    /// The display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ArgoCd => "Argo CD",
            Self::Flux | Self::FluxHelm => "Flux",
        }
    }

    /// The field managers under which it writes objects.
    pub const fn managers(self) -> &'static [&'static str] {
        match self {
            Self::ArgoCd => &["argocd-controller", "argocd-application-controller"],
            Self::Flux => &["kustomize-controller"],
            Self::FluxHelm => &["helm-controller"],
        }
    }

    /// The object id of one of its resources.
    pub fn id(self, namespace: &str, name: &str) -> Option<ObjectId> {
        ObjectId::new(self.group(), self.kind(), namespace, name).ok()
    }
}

/// The resource to adopt, and the resources that belong to it.
#[derive(Debug, Clone)]
pub struct OldResource<'a> {
    /// The tool that owns the resource.
    pub tool: Tool,
    /// The resource in its state before any adoption.
    pub body: &'a Value,
    /// The GitRepository or OCIRepository of a Kustomization; for a HelmRelease the one of its
    /// chart, or of `parent`.
    pub repository: Option<&'a Value>,
    /// The GitRepositories that this repository includes.
    pub included: &'a [Value],
    /// The ArtifactGenerator of an ExternalArtifact that is in the place of that repository.
    pub generator: Option<&'a Value>,
    /// The HelmChart that a HelmRelease names.
    pub chart: Option<&'a Value>,
    /// The HelmRepository or OCIRepository of the chart of a HelmRelease.
    pub chart_source: Option<&'a Value>,
    /// The Kustomization that applies a HelmRelease, or the Application that applies another one.
    pub parent: Option<&'a Value>,
    /// The ApplicationSet that generates an Application.
    pub application_set: Option<&'a Value>,
    /// The Syncs of the resources of the same kind that were adopted earlier, by namespace and
    /// name.
    pub adopted: BTreeMap<(String, String), SyncName>,
}

/// Options of the new Sync that the old resource does not contain.
#[derive(Debug, Clone)]
pub struct RequestedSync {
    /// Namespace and name of the Sync.
    pub sync: SyncName,
    /// The Secret in that namespace with the login for the repository.
    pub secret: Option<String>,
}

/// A remark about a field of the old resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRemark {
    /// The field, such as `spec.source.helm`.
    pub field: Box<str>,
    /// The problem with it, and the remedy.
    pub why: Box<str>,
}

/// A Sync that replaces the old resource, or a SyncSet that replaces an ApplicationSet.
#[derive(Debug, Clone)]
pub struct Adoption {
    /// The Sync or the SyncSet as a manifest.
    pub sync: Value,
    /// Fields that are not carried over.
    pub lost: Vec<FieldRemark>,
    /// Reasons why the Sync would not apply the same objects.
    pub refused: Vec<FieldRemark>,
}

/// Converts the old resource to a Sync.
pub fn adopt(old: &OldResource<'_>, wanted: &RequestedSync) -> Adoption {
    let mut draft = SyncBuilder::new(wanted.clone());
    match old.tool {
        Tool::ArgoCd => argocd::convert_application(old, &mut draft),
        Tool::Flux => flux::convert_kustomization(old, &mut draft),
        Tool::FluxHelm => flux_helm::convert_release(old, &mut draft),
    }
    let place =
        |field: &str| crate::adopt::sync_builder::text(old.body, &format!("/metadata/{field}")).to_owned();
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

#[cfg(test)]
mod application_set_tests;
#[cfg(test)]
mod argocd_field_tests;
#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod release_tests;
#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tests;
