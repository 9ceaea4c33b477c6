//! Converts the HelmRepository or OCIRepository of a chart.
//!
//! In: the source, and the HelmRelease that names it. Out: `render.helm.chart` of a Sync, or the
//! reason why its chart would be another one.

use serde_json::{Value, json};

use super::OldResource;
use super::cloud_logins::{REGISTRY_CLOUDS, convert_cloud};
use super::sync_builder::{SyncBuilder, is_set, text};

/// Fields of a HelmRepository and of an OCIRepository that a Sync does not have.
const REFUSED_SOURCE_FIELDS: [(&str, &str); 2] =
    [("insecure", "registries are asked over https only"), ("ignore", "all files of a chart are used")];

/// Fields of a HelmRepository and of an OCIRepository for which a Sync has another way.
const LOST_SOURCE_FIELDS: [(&str, &str); 3] = [
    ("passCredentials", "the login is sent to the server in the URL, and to no other"),
    ("proxySecretRef", "the daemon's own environment names a proxy (HTTPS_PROXY)"),
    ("accessFrom", "a Sync reads the repository itself"),
];

/// Other known fields of both.
const SOURCE: [&str; 13] = [
    "certSecretRef",
    "interval",
    "layerSelector",
    "provider",
    "ref",
    "secretRef",
    "serviceAccountName",
    "suspend",
    "timeout",
    "type",
    "url",
    "force",
    "verify",
];

/// Converts a chart of a HelmRepository.
pub(super) fn helm_repository(old: &OldResource<'_>, chart: &Value, draft: &mut SyncBuilder) {
    let Some(source) = old.chart_source else {
        return draft.refuse(
            "spec.chart.spec.sourceRef",
            "there is no such HelmRepository, so that the chart is not known",
        );
    };
    let (url, name) = (text(source, "/spec/url").trim_end_matches('/'), text(chart, "/chart"));
    let version = Some(text(chart, "/version")).filter(|version| !version.is_empty()).unwrap_or("*");
    let mut found = match url.starts_with("oci://") {
        true => json!({"url": format!("{url}/{name}"), "version": version}),
        false => json!({"url": url, "name": name, "version": version}),
    };
    login(source, "HelmRepository spec", &mut found, draft);
    draft.spec["render"]["helm"]["chart"] = found;
}

/// Converts a chart of an OCIRepository.
pub(super) fn oci_repository(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let Some(source) = old.chart_source else {
        return draft
            .refuse("spec.chartRef", "there is no such OCIRepository, so that the chart is not known");
    };
    let part = |field: &str| text(source, &format!("/spec/ref/{field}"));
    if !part("semverFilter").is_empty() {
        draft.refuse(
            "OCIRepository spec.ref.semverFilter",
            "versions are taken from whole tags: name the tag",
        );
    }
    let mut found = json!({"url": text(source, "/spec/url").trim_end_matches('/')});
    match (part("digest"), part("semver"), part("tag")) {
        ("", "", "") => found["version"] = "latest".into(),
        ("", "", tag) => found["version"] = tag.into(),
        ("", range, _) => found["version"] = range.into(),
        (_, _, "") => {
            draft.refuse("OCIRepository spec.ref.digest", "name the tag of the digest in spec.ref.tag, too")
        }
        (digest, _, tag) => (found["version"], found["digest"]) = (tag.into(), digest.into()),
    }
    login(source, "OCIRepository spec", &mut found, draft);
    draft.spec["render"]["helm"]["chart"] = found;
    signatures(&source["spec"]["verify"], "OCIRepository spec", text(source, "/metadata/namespace"), draft);
}

/// Converts the signatures that a chart must have, with their keys in a Secret of `namespace`.
pub(super) fn signatures(verify: &Value, place: &str, namespace: &str, draft: &mut SyncBuilder) {
    if !is_set(verify) {
        return;
    }
    let chart = &draft.spec["render"]["helm"]["chart"];
    if !text(chart, "/url").starts_with("oci://") || is_set(&chart["digest"]) {
        let why = "signatures are carried over of charts in a registry and without a digest: \
                   set the digest of one version instead";
        return draft.refuse(format!("{place}.verify"), why);
    }
    if let Some(converted) = signers(verify, place, namespace, draft) {
        draft.spec["render"]["helm"]["chart"]["verify"] = converted;
    }
}

/// Converts signers whose keys are in a Secret of `namespace`; none if they are refused.
pub(super) fn signers(
    verify: &Value,
    place: &str,
    namespace: &str,
    draft: &mut SyncBuilder,
) -> Option<Value> {
    let keys = text(verify, "/secretRef/name");
    let is_by_keys = text(verify, "/provider") == "cosign" && !is_set(&verify["matchOIDCIdentity"]);
    if keys.is_empty() || !is_by_keys {
        let why = "signatures of cosign by the keys of a Secret are carried over: name such keys, write verify of the Sync by hand, \
                   or set the digest of one version instead";
        draft.refuse(format!("{place}.verify"), why);
        return None;
    }
    let own = draft.requested.sync.namespace.clone();
    if namespace != &*own {
        let why = format!(
            "the keys are read from a Secret {keys} in {own}: copy the public keys from {namespace}/{keys} there"
        );
        draft.mark_lost(format!("{place}.verify"), why);
    }
    Some(json!({"keys": {"secretRef": {"name": keys}}}))
}

/// Converts the login of the source of a chart.
fn login(source: &Value, place: &str, chart: &mut Value, draft: &mut SyncBuilder) {
    let spec = &source["spec"];
    draft.refuse_each(spec, place, &REFUSED_SOURCE_FIELDS);
    draft.mark_each_lost(spec, place, &LOST_SOURCE_FIELDS);
    let known = REFUSED_SOURCE_FIELDS.iter().chain(&LOST_SOURCE_FIELDS).map(|(field, _)| *field);
    let known: Vec<&str> = known.chain(SOURCE).collect();
    draft.mark_unknown_lost(spec, place, &known);
    if is_set(&spec["suspend"]) {
        let why =
            "the source is suspended, and the Sync takes the newest version of its range: name one version";
        draft.mark_lost(format!("{place}.suspend"), why);
    }
    // Of a chart repository over https, Flux ignores the provider.
    if text(chart, "/url").starts_with("oci://") {
        convert_cloud(source, place, &REGISTRY_CLOUDS, chart, draft);
    }
    let (secret, certificates) = (text(spec, "/secretRef/name"), text(spec, "/certSecretRef/name"));
    if !secret.is_empty() && !certificates.is_empty() && secret != certificates {
        let why = format!(
            "one Secret has the login and the certificates: copy the keys of {certificates} into {secret}"
        );
        draft.refuse(format!("{place}.certSecretRef"), why);
    }
    let name = if secret.is_empty() { certificates } else { secret };
    if name.is_empty() {
        return;
    }
    chart["secretRef"] = json!({"name": name});
    let (namespace, own) = (text(source, "/metadata/namespace"), draft.requested.sync.namespace.clone());
    if namespace != &*own {
        let why = format!("the login is read from a Secret {name} in {own}: copy {namespace}/{name} there");
        draft.mark_lost(format!("{place}.secretRef"), why);
    }
}
