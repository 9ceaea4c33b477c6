//! Converts a Flux Kustomization, with its GitRepository, to a Sync.
//!
//! In: both resources. Out: the spec of a Sync, field by field. Fields that would render other
//! objects are refused; fields that only change the operation are listed as lost.

use serde_json::{Value, json};

use super::cloud_logins::{GIT_CLOUDS, convert_cloud};
use super::decryption;
use super::flux_sources::convert_source;
use super::go_duration::convert_go_duration;
use super::health_rules::convert_health_expressions;
use super::ignore_fields;
use super::includes::convert_includes;
use super::kustomize_options::convert_flux_options;
use super::substitution;
use super::sync_builder::{SyncBuilder, is_set, text};
use super::{OldResource, Tool};

/// Fields of a Kustomization that affect rendering and that a Sync does not have.
const REFUSED_FIELDS: [(&str, &str); 1] = [(
    "kubeConfig",
    "a Sync applies to its own cluster only: install Moorline in the target cluster, and adopt there",
)];

/// Fields of a Kustomization for which a Sync has another way.
const LOST_FIELDS: [(&str, &str); 3] = [
    ("force", "annotate objects that have to be recreated with moorline.dev/recreate: enabled"),
    ("healthChecks", "health.wait waits for all objects of a Sync"),
    ("buildMetadata", "objects get no annotations about their origin"),
];

/// Fields of a GitRepository that change the files.
const FILES: [(&str, &str); 1] =
    [("ignore", "these files would be applied: remove them from the folder, then from spec.ignore")];

/// Fields of a GitRepository for which a Sync has another way.
const LOST_REPOSITORY_FIELDS: [(&str, &str); 2] = [
    ("proxySecretRef", "the daemon's own environment names a proxy (HTTPS_PROXY)"),
    ("sparseCheckout", "only what is below the path is read anyway"),
];

/// Other known fields of a Kustomization and of a GitRepository: they are converted, or a Sync does
/// not need them.
const SPEC: [&str; 23] = [
    "commonMetadata",
    "components",
    "decryption",
    "deletionPolicy",
    "dependsOn",
    "healthCheckExprs",
    "ignore",
    "ignoreMissingComponents",
    "images",
    "interval",
    "namePrefix",
    "nameSuffix",
    "patches",
    "path",
    "postBuild",
    "prune",
    "retryInterval",
    "serviceAccountName",
    "sourceRef",
    "suspend",
    "targetNamespace",
    "timeout",
    "wait",
];
const REPOSITORY: [&str; 11] = [
    "include",
    "interval",
    "provider",
    "recurseSubmodules",
    "ref",
    "secretRef",
    "serviceAccountName",
    "suspend",
    "timeout",
    "url",
    "verify",
];

pub(super) fn convert_kustomization(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let spec = &old.body["spec"];
    convert_source(old, old.body, "spec", draft);
    draft.refuse_each(spec, "spec", &REFUSED_FIELDS);
    draft.mark_each_lost(spec, "spec", &LOST_FIELDS);
    let known: Vec<&str> =
        REFUSED_FIELDS.iter().chain(&LOST_FIELDS).map(|(field, _)| *field).chain(SPEC).collect();
    draft.mark_unknown_lost(spec, "spec", &known);
    let target = text(spec, "/targetNamespace");
    if !target.is_empty() {
        draft.spec["targetNamespace"] = target.into();
    }
    draft.spec["prune"] = json!({"enabled": spec["prune"] == json!(true)});
    if spec["suspend"] == json!(true) {
        draft.spec["suspend"] = true.into();
    }
    convert_flux_options(spec, draft);
    substitution::convert_post_build(old, draft);
    decryption::convert_decryption(old, draft);
    health(spec, draft);
    convert_health_expressions(spec, draft);
    identity(old, draft);
    dependencies(old, draft);
    ignore_fields::convert_ignore(spec, "spec.ignore", draft);
    parent(old, draft);
    let orphans = text(spec, "/deletionPolicy") == "Orphan" || spec["prune"] != json!(true);
    if !orphans {
        let why = "deleting the Kustomization deleted its objects, deleting the Sync keeps them: set deletionPolicy: Delete on the Sync for the old behaviour";
        draft.mark_lost("spec.deletionPolicy", why);
    }
}

/// Converts the GitRepository.
pub(super) fn repository(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let Some(repository) = old.repository else {
        draft.refuse("spec.sourceRef", "there is no such GitRepository, so that the repository is not known");
        return;
    };
    let spec = &repository["spec"];
    let place = "GitRepository spec";
    let namespace = text(repository, "/metadata/namespace");
    let secret = text(spec, "/secretRef/name");
    let is_near = namespace == &*draft.requested.sync.namespace;
    if is_near && !secret.is_empty() && draft.requested.secret.is_none() {
        // The keys of such a Secret are the same in Flux and in Moorline.
        draft.requested.secret = Some(secret.to_owned());
    }
    let login = match secret {
        "" => String::new(),
        secret => format!("Flux reads the repository with the Secret {namespace}/{secret}"),
    };
    draft.url(&format!("{place}.url"), text(spec, "/url"), &login);
    if draft.requested.secret.is_none() {
        let mut git = draft.spec["source"]["git"].take();
        convert_cloud(repository, place, &GIT_CLOUDS, &mut git, draft);
        draft.spec["source"]["git"] = git;
    }
    reference(&spec["ref"], draft);
    convert_includes(old, draft);
    draft.refuse_each(spec, place, &FILES);
    draft.mark_each_lost(spec, place, &LOST_REPOSITORY_FIELDS);
    let known: Vec<&str> =
        FILES.iter().chain(&LOST_REPOSITORY_FIELDS).map(|(field, _)| *field).chain(REPOSITORY).collect();
    draft.mark_unknown_lost(spec, place, &known);
    if spec["recurseSubmodules"] == json!(true) {
        draft.spec["source"]["git"]["submodules"] = true.into();
    }
    if is_set(&spec["verify"]) {
        let mode = match text(spec, "/verify/mode") {
            mode @ ("Tag" | "TagAndHEAD") => mode,
            _ => "HEAD",
        };
        let keys = text(spec, "/verify/secretRef/name");
        draft.spec["source"]["git"]["verify"] = json!({"mode": mode, "secretRef": {"name": keys}});
        if !is_near {
            let why = format!(
                "the keys are read from a Secret {keys} in {}: copy the public keys from {namespace}/{keys} there",
                draft.requested.sync.namespace
            );
            draft.mark_lost(format!("{place}.verify"), why);
        }
    }
    if let Some(interval) = span("interval", place, spec, draft) {
        draft.spec["interval"] = interval.into();
    }
    if spec["suspend"] == json!(true) {
        draft.spec["suspend"] = true.into();
        draft.mark_lost(
            format!("{place}.suspend"),
            "the repository is suspended, so the Sync is suspended, too",
        );
    }
}

/// Converts the reference. The later one in Flux's order of precedence wins; without any, Flux
/// follows `master`.
fn reference(reference: &Value, draft: &mut SyncBuilder) {
    let text = |field: &str| text(reference, &format!("/{field}"));
    let name = text("name");
    let found = match () {
        () if !text("commit").is_empty() => json!({"commit": text("commit")}),
        () if !name.is_empty() => {
            let branch = name.strip_prefix("refs/heads/").map(|branch| json!({"branch": branch}));
            let tag = || name.strip_prefix("refs/tags/").map(|tag| json!({"tag": tag}));
            match branch.or_else(tag) {
                Some(found) => found,
                None => {
                    draft.refuse(
                        "GitRepository spec.ref.name",
                        "only branches and tags are followed: name one of them",
                    );
                    return;
                }
            }
        }
        () if !text("semver").is_empty() => json!({"semver": text("semver")}),
        () if !text("tag").is_empty() => json!({"tag": text("tag")}),
        () if !text("branch").is_empty() => json!({"branch": text("branch")}),
        () => json!({"branch": "master"}),
    };
    if is_set(&reference["semverFilter"]) {
        draft.refuse(
            "GitRepository spec.ref.semverFilter",
            "versions are taken from whole tags: name the tag",
        );
    }
    draft.spec["source"]["git"]["ref"] = found;
}

fn health(spec: &Value, draft: &mut SyncBuilder) {
    let waits = spec["wait"] == json!(true) || is_set(&spec["healthChecks"]);
    draft.spec["health"] = json!({"wait": waits});
    let Some(timeout) = span("timeout", "spec", spec, draft) else { return };
    if waits {
        draft.spec["health"]["timeout"] = timeout.clone().into();
    }
    draft.spec["timeout"] = timeout.into();
}

/// Converts a duration of Flux to one that a Sync takes.
pub(super) fn span(field: &str, place: &str, spec: &Value, draft: &mut SyncBuilder) -> Option<String> {
    let text = text(spec, &format!("/{field}"));
    let (length, changed) = convert_go_duration(text)?;
    if changed {
        draft.mark_lost(
            format!("{place}.{field}"),
            format!("a Sync takes 5s to 24h, so that {text} becomes {length}"),
        );
    }
    Some(length)
}

/// Converts the ServiceAccount, which has to be in the namespace of the Sync.
pub(super) fn identity(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let account = text(old.body, "/spec/serviceAccountName");
    if account.is_empty() {
        return;
    }
    draft.spec["serviceAccountName"] = account.into();
    let (own, sync) = (text(old.body, "/metadata/namespace"), draft.requested.sync.clone());
    if own != &*sync.namespace {
        let why = format!(
            "the Sync acts as the ServiceAccount {account} of {}: make it there, and run moorline rbac --sync {} -n {} | kubectl apply -f -",
            sync.namespace, sync.name, sync.namespace
        );
        draft.mark_lost("spec.serviceAccountName", why);
    }
}

/// Converts the dependencies, which have to be adopted first.
pub(super) fn dependencies(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let kind = old.tool.kind().to_ascii_lowercase();
    let own = text(old.body, "/metadata/namespace");
    let mut all = Vec::new();
    for (at, on) in old.body["spec"]["dependsOn"].as_array().into_iter().flatten().enumerate() {
        let place = format!("spec.dependsOn[{at}]");
        let (name, namespace) = (text(on, "/name"), text(on, "/namespace"));
        let namespace = if namespace.is_empty() { own } else { namespace };
        match old.adopted.get(&(namespace.to_owned(), name.to_owned())) {
            Some(sync) if sync.namespace == draft.requested.sync.namespace => {
                all.push(json!({"name": sync.name}))
            }
            Some(sync) => all.push(json!({"name": sync.name, "namespace": sync.namespace})),
            None => {
                let why = format!("adopt that one first: moorline adopt {kind}/{name} -n {namespace}");
                draft.refuse(&*place, why);
            }
        }
        if is_set(&on["readyExpr"]) {
            draft.mark_lost(
                format!("{place}.readyExpr"),
                "it waits until the other Sync has applied its newest commit and is healthy",
            );
        }
    }
    if !all.is_empty() {
        draft.spec["dependsOn"] = all.into();
    }
}

/// Refuses or reports a resource whose parent applies it: the parent would set some of its
/// fields again.
pub(super) fn parent(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let mark = |place: &str| text(old.body, &format!("/metadata/labels/{place}"));
    let (name, sync) = (mark("kustomize.toolkit.fluxcd.io~1name"), mark("moorline.dev~1sync"));
    let parent = match () {
        () if !name.is_empty()
            && (name != text(old.body, "/metadata/name") || old.tool == Tool::FluxHelm) =>
        {
            format!("the Kustomization {name}")
        }
        () if !sync.is_empty() => format!("the Sync {sync}"),
        () => return,
    };
    if is_applied_unsuspended(old.body) {
        let why = format!(
            "{parent} applies this one with suspend: false, and would restart it: set suspend: true in that repository first, and sync it"
        );
        draft.refuse("spec.suspend", why);
    }
    let why = format!(
        "{parent} applies this one: set suspend: true in that repository, too, to make the adoption permanent"
    );
    draft.mark_lost("metadata.labels", why);
}

/// True if another manager applies the resource with `suspend: false`.
fn is_applied_unsuspended(body: &Value) -> bool {
    let entries = body.pointer("/metadata/managedFields").and_then(Value::as_array);
    let says = |entry: &Value| {
        entry["operation"] == "Apply" && entry.pointer("/fieldsV1/f:spec/f:suspend").is_some()
    };
    body.pointer("/spec/suspend") == Some(&json!(false)) && entries.into_iter().flatten().any(says)
}
