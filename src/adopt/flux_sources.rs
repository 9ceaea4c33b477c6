//! Converts the source that a Kustomization names: a repository, a registry, or a part of one.
//!
//! In: the Kustomization, and the source that it names. Out: the source and the path of a Sync, or
//! the reason why its files would be others.

use serde_json::{Value, json};

use super::OldResource;
use super::chart_sources;
use super::cloud_logins::{REGISTRY_CLOUDS, convert_cloud};
use super::external_artifact::find_folder;
use super::flux;
use super::sync_builder::{SyncBuilder, is_set, text};

/// Fields of an OCIRepository that change the files, or that make them less trusted.
const REFUSED_FIELDS: [(&str, &str); 2] = [
    ("insecure", "registries are asked over https only: give the registry a certificate"),
    ("ignore", "these files would be applied: leave them out of the artifact, then out of spec.ignore"),
];

/// Fields of an OCIRepository for which a Sync has another way.
const LOST_FIELDS: [(&str, &str); 2] = [
    ("proxySecretRef", "the daemon's own environment names a proxy (HTTPS_PROXY)"),
    ("accessFrom", "a Sync reads the registry itself"),
];

/// Other known fields of an OCIRepository.
const FIELDS: [&str; 11] = [
    "verify",
    "certSecretRef",
    "interval",
    "layerSelector",
    "provider",
    "ref",
    "secretRef",
    "serviceAccountName",
    "suspend",
    "timeout",
    "url",
];

/// Media type of the layer of a chart.
const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Converts the source and the path of a Kustomization: the old resource itself, or the one that
/// applies it.
pub(super) fn convert_source(old: &OldResource<'_>, by: &Value, place: &str, draft: &mut SyncBuilder) {
    let path = text(by, "/spec/path");
    draft.path(path);
    match text(by, "/spec/sourceRef/kind") {
        "GitRepository" => flux::repository(old, draft),
        "OCIRepository" => registry(old, draft),
        "ExternalArtifact" => match find_folder(old.generator, text(by, "/spec/sourceRef/name"), path) {
            Ok(found) => {
                draft.path(&found.path);
                match found.kind {
                    "GitRepository" => flux::repository(old, draft),
                    _ => registry(old, draft),
                }
            }
            Err(why) => draft.refuse(format!("{place}.sourceRef"), why),
        },
        kind => draft.refuse(
            format!("{place}.sourceRef"),
            format!(
                "a Sync follows a Git repository or an artifact of a registry, and this is of the kind {kind}: push its files to one of them"
            ),
        ),
    }
}

/// Converts an OCIRepository with manifests.
fn registry(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let Some(source) = old.repository else {
        return draft
            .refuse("spec.sourceRef", "there is no such OCIRepository, so that the artifact is not known");
    };
    let (spec, place) = (&source["spec"], "OCIRepository spec");
    let mut oci = json!({"url": text(spec, "/url").trim_end_matches('/')});
    if let Some(reference) = reference(&spec["ref"]) {
        oci["ref"] = reference;
    }
    // Flux unpacks the layer in any case: with `copy` its reader does, later.
    let layer = text(spec, "/layerSelector/mediaType");
    if !layer.is_empty() {
        oci["layer"] = json!({"mediaType": layer});
    }
    draft.refuse_each(spec, place, &REFUSED_FIELDS);
    draft.mark_each_lost(spec, place, &LOST_FIELDS);
    let known: Vec<&str> =
        REFUSED_FIELDS.iter().chain(&LOST_FIELDS).map(|(field, _)| *field).chain(FIELDS).collect();
    draft.mark_unknown_lost(spec, place, &known);
    if draft.requested.secret.is_none() {
        convert_cloud(source, place, &REGISTRY_CLOUDS, &mut oci, draft);
    }
    if let Some(secret) = login(source, draft) {
        oci["secretRef"] = json!({"name": secret});
    }
    if is_set(&spec["verify"]) {
        let namespace = text(source, "/metadata/namespace");
        if let Some(converted) = chart_sources::signers(&spec["verify"], place, namespace, draft) {
            oci["verify"] = converted;
        }
    }
    draft.spec["source"]["oci"] = oci;
    if let Some(interval) = flux::span("interval", place, spec, draft) {
        draft.spec["interval"] = interval.into();
    }
    if spec["suspend"] == json!(true) {
        draft.spec["suspend"] = true.into();
        draft.mark_lost(
            format!("{place}.suspend"),
            "the artifact is suspended, so the Sync is suspended, too",
        );
    }
}

/// Converts a reference; of several the one that Flux prefers.
pub(super) fn reference(reference: &Value) -> Option<Value> {
    let part = |field: &str| Some(text(reference, &format!("/{field}"))).filter(|it| !it.is_empty());
    if let Some(digest) = part("digest") {
        return Some(json!({"digest": digest}));
    }
    let Some(range) = part("semver") else { return Some(json!({"tag": part("tag")?})) };
    let mut found = json!({"semver": range});
    if let Some(filter) = part("semverFilter") {
        found["filter"] = filter.into();
    }
    Some(found)
}

/// Returns the Secret with the login for the registry.
fn login(source: &Value, draft: &mut SyncBuilder) -> Option<String> {
    let (spec, place) = (&source["spec"], "OCIRepository spec");
    let requested = draft.requested.secret.clone();
    if requested.is_some() {
        return requested;
    }
    let (secret, certificates) = (text(spec, "/secretRef/name"), text(spec, "/certSecretRef/name"));
    let (namespace, own) = (text(source, "/metadata/namespace"), draft.requested.sync.namespace.clone());
    let make = format!(
        "create a Secret in {own} of the type kubernetes.io/dockerconfigjson, or with the keys username and password, and pass its name with --secret; Moorline copies no credentials"
    );
    if !secret.is_empty() && !certificates.is_empty() && secret != certificates {
        let why = format!(
            "one Secret has the login and the certificates: copy the keys of {certificates} and {secret} into one in {own}, and pass its name with --secret"
        );
        draft.refuse(format!("{place}.certSecretRef"), why);
        return None;
    }
    let (field, name) =
        if secret.is_empty() { ("certSecretRef", certificates) } else { ("secretRef", secret) };
    if name.is_empty() {
        return None;
    }
    if namespace != &*own {
        let why = format!("Flux reads the artifact with the Secret {namespace}/{name}: {make}");
        draft.refuse(format!("{place}.{field}"), why);
        return None;
    }
    Some(name.to_owned())
}

/// Makes a chart of a registry the source itself, where no repository applies it. The archive has
/// the chart in a folder of its name.
pub(super) fn follow_chart(url: &str, reference: Value, secret: Option<&str>, draft: &mut SyncBuilder) {
    let name = url.rsplit('/').next().unwrap_or_default();
    let mut oci = json!({"url": url, "ref": reference, "layer": {"mediaType": CHART_LAYER}});
    if let Some(secret) = secret {
        oci["secretRef"] = json!({"name": secret});
    }
    draft.spec["source"]["oci"] = oci;
    draft.path(name);
}

/// Converts the version of a chart to the reference of an artifact: one version is a tag, in which
/// a registry has no plus.
pub(super) fn chart_reference(version: &str) -> Value {
    let core = version.strip_prefix('v').unwrap_or(version).split(['-', '+']).next().unwrap_or_default();
    let is_part = |part: &str| ["x", "X"].contains(&part) || part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = core.split('.').all(is_part);
    let is_range = version.contains(['*', '<', '>', '=', '!', '~', '^', '|', ',', ' '])
        || is_number && (core.contains(['x', 'X']) || core.split('.').count() < 3);
    match version {
        "" => json!({"semver": "*"}),
        range if is_range => json!({"semver": range}),
        tag => json!({"tag": tag.replace('+', "_")}),
    }
}

/// True if a URL or a host names an artifact of a registry for Argo CD, which leaves out the scheme
/// of a registry of charts.
pub(super) fn is_registry(url: &str) -> bool {
    url.starts_with("oci://") || is_set(&url.into()) && !url.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_chart_is_a_tag_or_a_range() {
        for (version, expect) in [
            ("1.2.3", json!({"tag": "1.2.3"})),
            ("v1.2.3-rc.1", json!({"tag": "v1.2.3-rc.1"})),
            ("1.2.3+build", json!({"tag": "1.2.3_build"})),
            ("1.2", json!({"semver": "1.2"})),
            ("1.x.x", json!({"semver": "1.x.x"})),
            ("1", json!({"semver": "1"})),
            ("latest", json!({"tag": "latest"})),
            (">=1.2.3 <2.0.0", json!({"semver": ">=1.2.3 <2.0.0"})),
            ("", json!({"semver": "*"})),
        ] {
            assert_eq!(chart_reference(version), expect, "{version}");
        }
    }

    #[test]
    fn the_reference_that_flux_prefers_counts() {
        for (written, expect) in [
            (json!({"tag": "a", "semver": "1.x", "digest": "sha256:0"}), Some(json!({"digest": "sha256:0"}))),
            (json!({"tag": "a", "semver": "1.x"}), Some(json!({"semver": "1.x"}))),
            (json!({"semver": "1.x", "semverFilter": "^v"}), Some(json!({"semver": "1.x", "filter": "^v"}))),
            (json!({"tag": "a", "semverFilter": "^v"}), Some(json!({"tag": "a"}))),
            (Value::Null, None),
        ] {
            assert_eq!(reference(&written), expect, "{written}");
        }
    }
}
