//! Sources in a registry that make no sense.

use serde_json::{Value, json};

use super::nonsense::{Bad, bad};

/// An artifact instead of a repository.
pub(crate) fn oci(over: Value) -> Value {
    let mut oci = json!({"url": "oci://host/shop"});
    for (name, value) in over.as_object().expect("fields") {
        oci[name] = value.clone();
    }
    json!({"source": {"git": null, "oci": oci}})
}

pub(crate) fn bad_artifacts() -> Vec<Bad> {
    const URL: &str = "spec.source.oci.url";
    const REF: &str = "spec.source.oci.ref";
    let named = |url: &str| oci(json!({"url": url}));
    let referenced = |reference: Value| oci(json!({"ref": reference}));
    vec![
        bad(json!({"source": {"git": null}}), "write exactly one of git and oci", "spec.source"),
        bad(
            json!({"source": {"oci": {"url": "oci://host/shop"}}}),
            "exactly one of git and oci",
            "spec.source",
        ),
        bad(named("https://host/planted"), "write oci://host/path", URL),
        bad(named("oci://user:planted@host/shop"), "leave user, password and digest out", URL),
        bad(named("oci://host/shop@sha256:planted"), "leave user, password and digest out", URL),
        bad(named("oci://host/shop:planted"), "leave the tag out of the URL", URL),
        bad(named("oci://host"), "write the repository as registries name it", URL),
        bad(named("oci://host/Planted"), "write the repository as registries name it", URL),
        bad(named("oci://host/../planted"), "write the repository as registries name it", URL),
        bad(named("oci://host/a//planted"), "write the repository as registries name it", URL),
        bad(named("oci://host/a?planted"), "write the repository as registries name it", URL),
        bad(named("oci://host/%2e%2e/planted"), "write the repository as registries name it", URL),
        bad(
            oci(json!({"secretRef": {"name": "Login"}})),
            "write the name of a Secret",
            "spec.source.oci.secretRef.name",
        ),
        bad(referenced(json!({})), "write exactly one of tag, semver and digest", REF),
        bad(
            referenced(json!({"tag": "v1", "semver": "1.x"})),
            "write exactly one of tag, semver and digest",
            REF,
        ),
        bad(
            referenced(json!({"tag": "v1", "filter": "a"})),
            "use filter with semver only",
            "spec.source.oci.ref.filter",
        ),
        bad(
            referenced(json!({"tag": "a/b"})),
            "write a tag as registries have it",
            "spec.source.oci.ref.tag",
        ),
        bad(
            referenced(json!({"semver": "latest"})),
            "write a range of versions",
            "spec.source.oci.ref.semver",
        ),
        bad(referenced(json!({"digest": "sha256:12"})), "64 hex digits", "spec.source.oci.ref.digest"),
        bad(
            oci(json!({"layer": {"mediaType": "none"}})),
            "write a media type",
            "spec.source.oci.layer.mediaType",
        ),
        bad(oci(json!({"layer": {"operation": "Unpack"}})), "Unsupported value", "spec.source"),
    ]
}
