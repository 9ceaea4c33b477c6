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
    let account = text(decryption, "/serviceAccountName");
    if secret.is_empty() && account.is_empty() {
        let why = "the keys of Flux's controller are not read: put them into a Secret beside the Sync, and name it in secretRef";
        return draft.refuse("spec.decryption", why);
    }
    let (own, namespace) = (text(old.body, "/metadata/namespace"), draft.requested.sync.namespace.clone());
    if own != &*namespace {
        for (field, kind, name) in
            [("secretRef", "Secret", secret), ("serviceAccountName", "ServiceAccount", account)]
        {
            if !name.is_empty() {
                let why =
                    format!("keys are read in {namespace}, where the Sync is: copy {kind} {name} from {own}");
                draft.mark_lost(format!("spec.decryption.{field}"), why);
            }
        }
    }
    let mut sops = json!({});
    if !secret.is_empty() {
        sops["secretRef"] = json!({"name": secret});
    }
    if !account.is_empty() {
        sops["serviceAccountName"] = json!(account);
    }
    draft.spec["decryption"] = json!({"sops": sops});
}
