//! Converts the cloud that gives the login for a source of Flux.
//!
//! In: `provider` and `serviceAccountName` of the source. Out: the same fields of a Sync, or the
//! reason why it could not log in. No token is read: only names are carried over.

use serde_json::Value;

use super::sync_builder::{SyncBuilder, text};

/// Clouds that give logins for registries, as Flux and as a Sync name them.
pub(super) const REGISTRY_CLOUDS: [(&str, &str); 3] = [("aws", "AWS"), ("azure", "Azure"), ("gcp", "GCP")];

/// Clouds that give logins for repositories.
pub(super) const GIT_CLOUDS: [(&str, &str); 1] = [("azure", "Azure")];

/// Providers that are no clouds: the login, if there is one, is a Secret.
const BY_SECRET: [&str; 2] = ["", "generic"];

/// Sets the cloud of the converted source, if one gives its login. With a Secret, Flux does not ask
/// the cloud.
pub(super) fn convert_cloud(
    source: &Value,
    place: &str,
    clouds: &[(&str, &str)],
    converted: &mut Value,
    draft: &mut SyncBuilder,
) {
    let spec = &source["spec"];
    let part = |field: &str| text(spec, &format!("/{field}"));
    let (provider, account) = (part("provider"), part("serviceAccountName"));
    let has_secret = !text(spec, "/secretRef/name").is_empty();
    if has_secret || BY_SECRET.contains(&provider) {
        if !account.is_empty() {
            draft.mark_lost(format!("{place}.serviceAccountName"), "the login comes from a Secret");
        }
        return;
    }
    let known = clouds.iter().find(|(theirs, _)| *theirs == provider);
    let Some((_, ours)) = known.filter(|_| text(spec, "/certSecretRef/name").is_empty()) else {
        let why = format!(
            "Flux logs in as {provider}, and that is not supported here: name a Secret in secretRef first"
        );
        return draft.refuse(format!("{place}.provider"), why);
    };
    converted["provider"] = (*ours).into();
    let (namespace, own) = (text(source, "/metadata/namespace"), &draft.requested.sync.namespace);
    if account.is_empty() {
        let why = "Flux logs in with the identity of its controller, the Sync with its serviceAccountName, or as the daemon: \
                   allow that account in the cloud";
        draft.mark_lost(format!("{place}.provider"), why);
        return;
    }
    converted["serviceAccountName"] = account.into();
    if namespace != &**own {
        let why = format!(
            "the login is for the ServiceAccount {account} of {own}: create it there, with the annotations of {namespace}/{account}"
        );
        draft.mark_lost(format!("{place}.serviceAccountName"), why);
    }
}
