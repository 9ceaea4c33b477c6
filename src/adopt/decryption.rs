//! Converts the keys for encrypted files of a Kustomization to those of a Sync.
//!
//! In: `spec.decryption`. Out: `spec.decryption.sops`, or the reason why the files could not be
//! decrypted. No key is read: only the name of the Secret is carried over.

use serde_json::json;

use super::OldResource;
use super::sync_builder::{SyncBuilder, is_set, text};

/// Known fields.
const KNOWN: [&str; 3] = ["provider", "secretRef", "serviceAccountName"];

pub(super) fn convert_decryption(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let decryption = &old.body["spec"]["decryption"];
    if !is_set(decryption) {
        return;
    }
    draft.mark_unknown_lost(decryption, "spec.decryption", &KNOWN);
    let (provider, secret) = (text(decryption, "/provider"), text(decryption, "/secretRef/name"));
    if provider != "sops" {
        return draft
            .refuse("spec.decryption.provider", format!("only sops is supported, and this is {provider}"));
    }
    if is_set(&decryption["serviceAccountName"]) {
        let why =
            "keys of a cloud are not asked for: encrypt the files for a key of age, too, and name its Secret";
        return draft.refuse("spec.decryption.serviceAccountName", why);
    }
    if secret.is_empty() {
        let why = "the keys of Flux's controller are not read: put them into a Secret beside the Sync, and name it in secretRef";
        return draft.refuse("spec.decryption", why);
    }
    let (own, namespace) = (text(old.body, "/metadata/namespace"), draft.requested.sync.namespace.clone());
    if own != &*namespace {
        let why = format!("keys are read in {namespace}, where the Sync is: copy Secret {secret} from {own}");
        draft.mark_lost("spec.decryption.secretRef", why);
    }
    draft.spec["decryption"] = json!({"sops": {"secretRef": {"name": secret}}});
}
