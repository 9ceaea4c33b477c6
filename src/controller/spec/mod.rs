//! Validates `SyncSpec` into [`ValidatedSpec`]: defaults filled in, URLs and durations parsed.
//!
//! In: a Sync as the API server gave it. Out: [`ValidatedSpec`], or [`SpecError`] with a remedy,
//! for the condition Stalled. The API server refuses most of this already; it is checked again,
//! because a CustomResourceDefinition may be older than the daemon, and because an invalid Sync
//! must not stop the others.

mod cluster_target;
mod decryption;
mod depends_on;
mod health;
mod helm;
pub(crate) mod identity;
mod ignored_fields;
mod kustomize;
mod mounts;
mod narrowing;
mod prune_policy;
mod source;
mod substitution;
mod unknown_fields;
mod unreadable_spec;
mod validated_spec;
mod verification;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::api::{
    DriftMode, DurationText, PlainSpec, RenderSpec, RenderType, RevisionApproval, Sync, SyncName, SyncSpec,
};
pub use crate::desired::IgnoreRule;
use crate::name_rules;
use crate::plan;
use crate::render::{Glob, PlainOptions, RenderOptions, SourceType};
use crate::source::Address;
pub use decryption::Decryption;
pub use health::HealthOptions;
pub use helm::ChartValuesSource;
pub use identity::SourceIdentity;
pub(crate) use kustomize::kustomize_options;
pub use mounts::ValidatedMount;
pub(in crate::controller) use mounts::is_inside;
pub(crate) use narrowing::render_spec;
pub use source::ValidatedSource;
pub use substitution::ValuesSource;
pub(crate) use unknown_fields::{UnknownField, check_fields, find_unknown_field};
use unreadable_spec::unreadable;
pub use validated_spec::{TargetSecret, ValidatedSpec};
pub use verification::Verification;

/// Error in a spec, which only a change of the Sync resolves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The field, such as `spec.source.git.url`.
    pub field: Box<str>,
    /// The error and its remedy. Never contains a URL, which may hold a password.
    pub message: Box<str>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for SpecError {}

/// Validates a spec as [`validate`] does; repositories in the folder `disk` of the local disk are
/// allowed, as in a demonstration.
pub fn validate_within(
    name: &SyncName,
    spec: &SyncSpec,
    disk: Option<&Path>,
) -> Result<ValidatedSpec, SpecError> {
    let address = spec.source.git.as_ref().and_then(|git| Address::local_or_remote(&git.url).ok());
    let is_there =
        |address: &Address| address.local_path().zip(disk).is_some_and(|(path, disk)| path.starts_with(disk));
    let Some(address) = address.filter(is_there) else { return validate(name, spec) };
    let mut elsewhere = spec.clone();
    elsewhere.source.git.iter_mut().for_each(|git| git.url = "https://localhost/repository".to_owned());
    Ok(ValidatedSpec { address, ..validate(name, &elsewhere)? })
}

/// Validates a spec.
pub fn validate(name: &SyncName, spec: &SyncSpec) -> Result<ValidatedSpec, SpecError> {
    if let Some(rule) = name_rules::sync_name(&name.name) {
        return refuse("metadata.name", format!("the name of a Sync {rule}"));
    }
    let path = source::path(&spec.path)?;
    let target = spec.target_namespace.as_deref();
    if let Some(rule) = target.and_then(name_rules::namespace) {
        return refuse("spec.targetNamespace", format!("the name of a namespace {rule}"));
    }
    if spec.create_namespace && target.is_none() {
        return refuse("spec.createNamespace", "set targetNamespace to the namespace to create");
    }
    let source = source::source(spec.source.git.as_ref(), spec.source.oci.as_ref())?;
    Ok(ValidatedSpec {
        address: source.address,
        reference: source.reference,
        secret: source.secret,
        identity: source.identity,
        submodules: source.submodules,
        mounts: mounts::mounts(&spec.source.mounts)?,
        verify: source.verify,
        options: RenderOptions {
            path: path.clone(),
            kind: kind(&spec.render)?,
            plain: plain(&spec.render.plain)?,
            variables: crate::controller::spec::substitution::variables(spec.render.substitute.as_ref())?,
            kustomize: kustomize_options(&spec.render)?,
            helm: helm::helm(spec.render.helm.as_ref(), &name.name, target.unwrap_or(&name.namespace))?,
        },
        values: crate::controller::spec::substitution::values(spec.render.substitute.as_ref())?,
        chart: helm::chart(spec.render.helm.as_ref())?,
        decryption: decryption::decryption(spec.decryption.as_ref())?,
        chart_secret: named(
            "spec.render.helm.chart.secretRef.name",
            helm::secret(spec.render.helm.as_ref()),
        )?,
        chart_verify: helm::verification(spec.render.helm.as_ref())?,
        chart_identity: helm::identity(spec.render.helm.as_ref())?,
        chart_values: helm::values_from(spec.render.helm.as_ref())?,
        path,
        target_namespace: target.unwrap_or(&name.namespace).into(),
        create_namespace: spec.create_namespace,
        prune: spec.prune.enabled,
        asks_first: spec.approval.and_then(|it| it.revisions) == Some(RevisionApproval::Required),
        budget: prune_policy::budget(&spec.prune)?,
        protected: prune_policy::protected(&spec.prune)?,
        drift: match spec.drift.mode {
            DriftMode::Repair => plan::DriftMode::Repair,
            DriftMode::Report => plan::DriftMode::Report,
            DriftMode::Ignore => plan::DriftMode::Ignore,
        },
        extra_fields: spec.drift.extra_fields,
        conflicts: spec.conflicts,
        deletion: spec.deletion_policy,
        interval: span("spec.interval", &spec.interval)?,
        timeout: span("spec.timeout", &spec.timeout)?,
        service_account: named("spec.serviceAccountName", spec.service_account_name.as_deref())?,
        cluster: cluster_target::secret(name, spec.cluster.as_ref())?,
        depends_on: depends_on::dependencies(name, &spec.depends_on)?,
        health: health::health(&spec.health)?,
        rollback: spec.rollback.on_failure,
        ignore: spec
            .ignore_fields
            .iter()
            .enumerate()
            .map(crate::controller::spec::ignored_fields::ignore)
            .collect::<Result<_, _>>()?,
        suspend: spec.suspend,
    })
}

/// Parses a Sync as the API server gave it. A status that cannot be read counts as absent, which is
/// safe: the next reconcile determines it again.
pub fn read(mut sync: Value) -> Result<Sync, SpecError> {
    if let Ok(read) = serde_json::from_value(sync.clone()) {
        return Ok(read);
    }
    let spec = sync.get("spec").cloned().unwrap_or_default();
    if let Some(fields) = sync.as_object_mut() {
        fields.remove("status");
    }
    serde_json::from_value(sync).map_err(|_| unreadable(&spec))
}

fn refuse<T>(field: impl Into<Box<str>>, message: impl Into<Box<str>>) -> Result<T, SpecError> {
    Err(SpecError { field: field.into(), message: message.into() })
}

fn kind(render: &RenderSpec) -> Result<SourceType, SpecError> {
    match (render.kind, &render.helm) {
        (RenderType::Plain | RenderType::Kustomize, Some(_)) => {
            refuse("spec.render.helm", "helm is valid only for type Helm: remove it, or change the type")
        }
        // Helm options mean a chart; no other folder takes them.
        (RenderType::Helm, _) | (RenderType::Auto, Some(_)) => Ok(SourceType::Helm),
        (RenderType::Auto, None) => Ok(SourceType::Auto),
        (RenderType::Plain, None) => Ok(SourceType::Plain),
        (RenderType::Kustomize, None) => Ok(SourceType::Kustomize),
    }
}

fn plain(plain: &PlainSpec) -> Result<PlainOptions, SpecError> {
    let globs = |field: &str, texts: &[String]| {
        let pattern = |(at, text): (usize, &String)| {
            let field = || format!("spec.render.plain.{field}[{at}]");
            if text.is_empty() || text.starts_with('/') || text.split('/').any(|part| part == "..") {
                return refuse(
                    field(),
                    "write a glob relative to the path, such as base/**, without .. in it",
                );
            }
            Glob::new(text).or_else(|error| refuse(field(), format!("write a valid glob: {}", error.msg)))
        };
        texts.iter().enumerate().map(pattern).collect::<Result<Vec<_>, _>>()
    };
    let (include, exclude) = (globs("include", &plain.include)?, globs("exclude", &plain.exclude)?);
    Ok(PlainOptions { recurse: plain.recurse, include, exclude })
}

fn span(field: &str, span: &DurationText) -> Result<Duration, SpecError> {
    span.duration()
        .map_or_else(|| refuse(field, "write a duration from 5s to 24h, such as 30s, 5m or 1h30m"), Ok)
}

/// Validates the name of an object in the Sync's own namespace.
fn named(field: &str, name: Option<&str>) -> Result<Option<Box<str>>, SpecError> {
    match name {
        Some(name) if !name_rules::is_dns_subdomain(name) => refuse(
            field,
            "write the name of an object in the Sync's own namespace: lower-case letters, digits, - and .",
        ),
        name => Ok(name.map(Into::into)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{ConflictPolicy, DeletionPolicy, ExtraFieldPolicy};
    use crate::object::{GroupKind, ObjectId};
    use crate::plan::{Policy, PruneBudget};
    use crate::source::Reference;

    /// Validates this spec of a Sync `moorline/shop`.
    fn validated(spec: Value) -> Result<ValidatedSpec, SpecError> {
        let sync = json!({
            "apiVersion": "moorline.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {"name": "shop", "namespace": "moorline"},
            "spec": spec,
        });
        validate(&SyncName::new("moorline", "shop"), &read(sync)?.spec)
    }

    fn with_url(url: &str) -> Value {
        json!({"source": {"git": {"url": url}}})
    }

    #[test]
    fn a_url_alone_is_a_whole_wish() {
        let valid_spec = validated(with_url("https://host/a")).unwrap();
        assert_eq!(
            (&valid_spec.reference, valid_spec.path.as_str(), &valid_spec.secret),
            (&Reference::Head, "", &None)
        );
        assert_eq!((&*valid_spec.target_namespace, valid_spec.create_namespace), ("moorline", false));
        assert_eq!(
            (valid_spec.interval, valid_spec.timeout),
            (Duration::from_secs(30), Duration::from_secs(300))
        );
        assert_eq!(
            (valid_spec.deletion, valid_spec.conflicts),
            (DeletionPolicy::Orphan, ConflictPolicy::Force)
        );
        assert_eq!((valid_spec.extra_fields, &valid_spec.ignore), (ExtraFieldPolicy::Report, &Vec::new()));
        assert_eq!(valid_spec.policy(None), Policy::default());
    }

    #[test]
    fn everything_that_is_written_is_wished() {
        let valid_spec = validated(json!({
            "source": {"git": {"url": "ssh://git@host/a", "ref": {"branch": "main"}, "secretRef": {"name": "key"}}},
            "path": "./clusters//prod/./",
            "render": {"plain": {"recurse": false, "include": ["*.yaml"], "exclude": ["a/**"]}},
            "targetNamespace": "shop",
            "createNamespace": true,
            "prune": {"enabled": false, "budget": {"count": 5, "percent": 50}, "protect": ["Secret", "A.b.c"]},
            "deletionPolicy": "Delete",
            "drift": {"mode": "Report", "extraFields": "Remove"},
            "conflicts": "Fail",
            "interval": "1m",
            "timeout": "1h",
            "serviceAccountName": "deployer",
            "ignoreFields": [{"target": {"kind": "Deployment"}, "paths": ["/spec/replicas"]}],
            "suspend": true,
        }))
        .unwrap();
        assert_eq!(valid_spec.path, "clusters/prod");
        assert_eq!(
            (valid_spec.secret.as_deref(), valid_spec.service_account.as_deref()),
            (Some("key"), Some("deployer"))
        );
        let plain = &valid_spec.options.plain;
        assert_eq!((plain.recurse, plain.include.len(), plain.exclude.len()), (false, 1, 1));
        assert_eq!(
            (valid_spec.deletion, valid_spec.conflicts),
            (DeletionPolicy::Delete, ConflictPolicy::Fail)
        );
        let policy = valid_spec.policy(Some("hash".to_owned()));
        assert_eq!((policy.suspended, policy.prune, policy.drift), (true, false, plan::DriftMode::Report));
        assert_eq!(policy.budget, PruneBudget { count: Some(5), percent: Some(50) });
        assert_eq!(policy.protected.len(), Policy::default().protected.len() + 2);
        assert!(policy.protected.contains(&GroupKind::new("b.c", "A")));
        assert!(policy.protected.contains(&GroupKind::new("", "Secret")));
        let id = |text| ObjectId::parse(text).unwrap();
        assert!(valid_spec.ignore[0].matches(&id("apps/Deployment|shop/web")));
        assert!(!valid_spec.ignore[0].matches(&id("apps/StatefulSet|shop/web")));
    }

    #[test]
    fn what_cannot_be_read_is_named_and_never_quoted() {
        let check = |spec: Value, expect: &str| {
            let refusal = validated(spec).unwrap_err().to_string();
            assert!(refusal.starts_with(expect) && !refusal.contains("planted"), "{refusal}");
        };
        let unread = "this version of Moorline cannot read it";
        check(json!({}), &format!("spec: {unread}"));
        check(
            json!({"source": {"git": "https://user:planted, expected@host/a"}}),
            &format!("spec.source: {unread}; a mapping is expected; see `kubectl explain sync.spec.source`"),
        );
        check(json!({"source": {"git": {}}}), &format!("spec.source: {unread}; a missing field `url`;"));
        let mut spec = with_url("https://host/a");
        spec["conflicts"] = json!("planted");
        check(
            spec.clone(),
            &format!("spec.conflicts: {unread}; one of `Force`, `Yield`, `Fail` is expected;"),
        );
        spec["conflicts"] = json!("Force");
        spec["suspend"] = json!("planted");
        check(spec, &format!("spec.suspend: {unread}; a boolean is expected;"));
    }

    #[test]
    fn a_status_that_cannot_be_read_counts_as_absent() {
        let sync = |status: Value| {
            json!({
                "apiVersion": "moorline.dev/v1alpha1",
                "kind": "Sync",
                "metadata": {"name": "shop"},
                "spec": with_url("https://host/a"),
                "status": status,
            })
        };
        assert_eq!(read(sync(json!({"objects": "many"}))).unwrap().status, None);
        assert!(read(sync(json!({"objects": {"desired": 1}}))).unwrap().status.is_some());
    }

    #[test]
    fn a_login_without_a_host_is_no_address() {
        for url in ["git:planted@host:a", "host:a", "https://user:planted@host/a", "file:///planted"] {
            let refusal = validated(with_url(url)).unwrap_err();
            assert_eq!(&*refusal.field, "spec.source.git.url");
            assert!(!refusal.message.contains("planted"), "{refusal}");
        }
        assert!(validated(with_url("git@host:a")).is_ok());
    }
}
