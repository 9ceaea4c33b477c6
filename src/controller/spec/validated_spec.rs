//! Valid spec of a Sync.
//!
//! In: the fields of a spec, parsed. Out: the policy that follows from them, and the ConfigMaps and
//! Secrets that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{
    ChartValuesSource, Decryption, HealthOptions, IgnoreRule, SourceIdentity, ValidatedMount, ValuesSource,
    Verification,
};
use crate::api::{ConflictPolicy, DeletionPolicy, ExtraFieldPolicy, SyncName};
use crate::object::GroupKind;
use crate::plan::{self, Policy, PruneBudget};
use crate::render::{HelmOptions, RenderOptions};
use crate::source::{Address, ChartRequest, Reference};

/// The Secret in the Sync's namespace with the access to another cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSecret {
    /// Its name.
    pub name: Box<str>,
    /// The key of the kubeconfig, if one is named.
    pub key: Option<Box<str>>,
}

/// A valid spec of a Sync, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedSpec {
    /// Address of the repository, or of the artifact.
    pub address: Address,
    /// Branch, tag or commit of the repository; tag or digest of the artifact.
    pub reference: Reference,
    /// The Secret in the Sync's namespace with the credentials of the repository.
    pub secret: Option<Box<str>>,
    /// Signatures that the repository or the artifact must have.
    pub verify: Option<Verification>,
    /// The cloud that gives the credentials of the repository instead.
    pub identity: Option<SourceIdentity>,
    /// Fetch the files of submodules too.
    pub submodules: bool,
    /// Other sources, whose files lie in folders of this one.
    pub mounts: Vec<ValidatedMount>,
    /// The folder or file in the repository, without `./`; empty for all of it. `options` has the
    /// same path.
    pub path: String,
    /// Options of the renderer, with the variables that the Sync sets inline.
    pub options: RenderOptions,
    /// The chart to render, if it is not in the repository.
    pub chart: Option<ChartRequest>,
    /// The Secret in the Sync's namespace with the credentials of the server of the chart.
    pub chart_secret: Option<Box<str>>,
    /// Signatures that the chart must have.
    pub chart_verify: Option<Verification>,
    /// The cloud that gives the credentials of the server of the chart instead.
    pub chart_identity: Option<SourceIdentity>,
    /// ConfigMaps and Secrets with values of the chart.
    pub chart_values: Vec<ChartValuesSource>,
    /// ConfigMaps and Secrets with more variables.
    pub values: Vec<ValuesSource>,
    /// Keys for encrypted files; none if they are refused.
    pub decryption: Option<Decryption>,
    /// Namespace of objects that set none.
    pub target_namespace: Box<str>,
    /// Create that namespace if it is missing.
    pub create_namespace: bool,
    /// Delete objects that are no longer in Git.
    pub prune: bool,
    /// A new revision is applied only after a person has approved it.
    pub asks_first: bool,
    /// Number of objects that one prune may delete without approval.
    pub budget: PruneBudget,
    /// Kinds that are deleted only with approval, including those that are always protected.
    pub protected: BTreeSet<GroupKind>,
    /// Reaction to a changed field that Git sets.
    pub drift: plan::DriftMode,
    /// Reaction to an extra field.
    pub extra_fields: ExtraFieldPolicy,
    /// Reaction to a field that Git sets and another manager owns.
    pub conflicts: ConflictPolicy,
    /// Policy for the objects when the Sync is deleted.
    pub deletion: DeletionPolicy,
    /// Interval of polls of the repository.
    pub interval: Duration,
    /// Longest time that one reconcile may wait.
    pub timeout: Duration,
    /// ServiceAccount to impersonate; none for the daemon itself.
    pub service_account: Option<Box<str>>,
    /// The Secret of the cluster in which the objects live; none for the home cluster.
    pub cluster: Option<TargetSecret>,
    /// Syncs that must be ready first.
    pub depends_on: BTreeMap<SyncName, Duration>,
    /// Health settings of its objects.
    pub health: HealthOptions,
    /// Roll back to the last healthy commit when the objects of a new one do not become healthy.
    pub rollback: bool,
    /// Fields that are left to other managers.
    pub ignore: Vec<IgnoreRule>,
    /// Write nothing.
    pub suspend: bool,
}

/// Default of `spec.timeout`.
const TIMEOUT: Duration = Duration::from_secs(300);

impl ValidatedSpec {
    /// Returns the spec of a run without a Sync resource: all other fields have their defaults.
    pub fn plain(
        address: Address,
        reference: Reference,
        path: &str,
        namespace: &str,
        interval: Duration,
    ) -> Self {
        let path = path.trim_start_matches("./").trim_matches('/');
        let path = if path == "." { String::new() } else { path.to_owned() };
        let policy = Policy::default();
        Self {
            address,
            reference,
            secret: None,
            identity: None,
            verify: None,
            submodules: false,
            mounts: Vec::new(),
            options: RenderOptions {
                path: path.clone(),
                helm: HelmOptions { namespace: namespace.into(), ..HelmOptions::default() },
                ..RenderOptions::default()
            },
            values: Vec::new(),
            chart: None,
            decryption: None,
            chart_secret: None,
            chart_verify: None,
            chart_identity: None,
            chart_values: Vec::new(),
            path,
            target_namespace: namespace.into(),
            create_namespace: false,
            prune: policy.prune,
            asks_first: false,
            budget: policy.budget,
            protected: policy.protected,
            drift: policy.drift,
            extra_fields: ExtraFieldPolicy::default(),
            conflicts: ConflictPolicy::default(),
            deletion: DeletionPolicy::default(),
            interval,
            timeout: TIMEOUT,
            service_account: None,
            cluster: None,
            depends_on: BTreeMap::new(),
            health: HealthOptions::default(),
            rollback: false,
            ignore: Vec::new(),
            suspend: false,
        }
    }

    /// Returns all ConfigMaps and Secrets with variables, then those with values of the chart.
    pub fn values_sources(&self) -> impl Iterator<Item = &ValuesSource> {
        self.values.iter().chain(self.chart_values.iter().map(|values| &values.source))
    }

    /// Returns the policy of the plan as far as the spec and an approval decide it.
    pub fn policy(&self, approved: Option<String>) -> Policy {
        Policy {
            suspended: self.suspend,
            drift: self.drift,
            prune: self.prune,
            budget: self.budget,
            protected: self.protected.clone(),
            approved,
            ..Policy::default()
        }
    }
}
