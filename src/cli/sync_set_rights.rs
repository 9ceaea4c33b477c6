//! Permissions for SyncSets, whose Syncs are written by ServiceAccounts of their own.
//!
//! In: the spec of a SyncSet. Out: roles and bindings: its ServiceAccount writes the Syncs, and the
//! daemon may impersonate it and read the Secrets of the generators.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::Value;

use super::rbac::Document;
use crate::api::{SyncName, SyncSetSpec};
use crate::desired::DesiredSet;
use crate::rbac::{Permissions, RoleSubject, daemon_manifests, manifests};
use crate::sync_set::git_generators;

/// Verbs on Syncs that every SyncSet needs.
const WRITES: [&str; 4] = ["get", "create", "patch", "delete"];
/// Verbs on Syncs for fields that change, where the chart's policy asks for them.
const VERBS: [(&str, &str); 2] = [("/spec/suspend", "suspend"), ("/spec/approval/revisions", "approve")];

/// Returns the permissions of the SyncSets among these objects.
pub(super) fn rights_of_sets(desired: &DesiredSet, daemon: &SyncName) -> anyhow::Result<Vec<Document>> {
    let mut all = Vec::new();
    for set in desired.objects().iter().filter(|object| object.id.is_kind("moorline.dev", "SyncSet")) {
        let name = SyncName::new(set.id.namespace().unwrap_or_default(), set.id.name());
        all.extend(rights_of_set(&name, set.body().get("spec"), daemon)?);
    }
    Ok(all)
}

/// Returns the permissions of a SyncSet.
pub(super) fn rights_of_set(
    name: &SyncName,
    spec: Option<&Value>,
    daemon: &SyncName,
) -> anyhow::Result<Vec<Document>> {
    let spec: SyncSetSpec = serde_json::from_value(spec.cloned().unwrap_or_default())
        .with_context(|| format!("the SyncSet {name} cannot be read"))?;
    let account = spec.service_account_name.as_deref();
    let role = format!("moorline-sync-set-{}-{}", name.namespace, name.name);
    let mut verbs = WRITES.to_vec();
    let is_set = |field: &str| spec.set.iter().any(|one| one.field == field);
    verbs.extend(VERBS.into_iter().filter(|(field, _)| is_set(field)).map(|(_, verb)| verb));
    let mut rights = Permissions::default().with_syncs(&name.namespace, &verbs);
    // The daemon can read all Secrets of its own namespace already.
    let logins = git_generators(&spec).into_iter().filter_map(|git| git.secret_ref.as_ref());
    let logins: BTreeSet<&str> = logins.map(|secret| &*secret.name).collect();
    let secrets: Vec<&str> = logins.into_iter().filter(|_| name.namespace != daemon.namespace).collect();
    // The daemon sends a login only for an account that may read its Secret.
    for secret in secrets.iter().filter(|_| account.is_some()) {
        rights = rights.with_get(&name.namespace, "secrets", secret);
    }
    let of_daemon = RoleSubject {
        name: daemon.name.clone(),
        namespace: daemon.namespace.clone(),
        role: format!("{role}-daemon").into(),
    };
    let subject = match account {
        Some(account) => {
            RoleSubject { name: account.into(), namespace: name.namespace.clone(), role: role.into() }
        }
        None => RoleSubject { role: role.into(), ..of_daemon.clone() },
    };
    let of_daemon = daemon_manifests(account, &secrets, &BTreeSet::new(), &name.namespace, &of_daemon);
    Ok(manifests(&rights, &subject).into_iter().chain(of_daemon).collect())
}
