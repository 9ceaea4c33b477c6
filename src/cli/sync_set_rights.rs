//! Permissions for SyncSets, whose Syncs are written by ServiceAccounts of their own.
//!
//! In: the spec of a SyncSet. Out: roles and bindings: its ServiceAccount writes the Syncs, and the
//! daemon may impersonate it and read the Secrets of the generators. A generator of clusters lists
//! Secrets, which no name limits.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::Value;

use super::rbac::Document;
use crate::api::{PullRequestGenerator, SecretRef, SyncName, SyncSetSpec};
use crate::desired::DesiredSet;
use crate::rbac::{Permissions, RoleSubject, daemon_manifests, manifests};
use crate::sync_set::{cluster_generators, git_generators, pull_request_generators, tag_generators};

/// Verbs on Syncs that every SyncSet needs.
const WRITES: [&str; 4] = ["get", "create", "patch", "delete"];
/// Verbs on Syncs for fields that change, where the chart's policy asks for them.
const VERBS: [(&str, &str); 2] = [("/spec/suspend", "suspend"), ("/spec/approval/revisions", "approve")];

/// The field with the Secret of a cluster.
const CLUSTER: &str = "/spec/cluster/secretRef/name";

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
    let of_git = git_generators(&spec).into_iter().filter_map(|git| git.secret_ref.as_ref());
    let of_tags = tag_generators(&spec).into_iter().filter_map(|tags| tags.secret_ref.as_ref());
    let of_hosts = pull_request_generators(&spec).into_iter().flat_map(host_logins);
    let logins = of_git.chain(of_tags).chain(of_hosts);
    let logins: BTreeSet<&str> = logins.map(|secret| &*secret.name).collect();
    let secrets: Vec<&str> = logins.into_iter().filter(|_| name.namespace != daemon.namespace).collect();
    // The daemon sends a login only for an account that may read its Secret.
    for secret in secrets.iter().filter(|_| account.is_some()) {
        rights = rights.with_get(&name.namespace, "secrets", secret);
    }
    // The daemon may list the Secrets of its own namespace already.
    if !cluster_generators(&spec).is_empty() && account.is_some() {
        // Its Syncs need `get` for the Secret of their cluster, and only the list knows the names.
        let is_of_syncs = account == spec.template.spec.service_account_name.as_deref();
        let verbs: &[&str] = if is_of_syncs && is_set(CLUSTER) { &["list", "get"] } else { &["list"] };
        rights = rights.with_all(&name.namespace, "secrets", verbs);
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

/// Returns the Secret of the host of a generator.
fn host_logins(generator: &PullRequestGenerator) -> impl Iterator<Item = &SecretRef> {
    let PullRequestGenerator { github, gitlab, gitea, .. } = generator;
    [github, gitlab, gitea].into_iter().flatten().map(|host| &host.secret_ref)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_generator_of_clusters_lists_secrets_as_the_account_of_its_set() {
        let daemon = SyncName::new("moorline", "moorline");
        let clusters = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}});
        let list = json!({"list": {"elements": [{"name": "a"}]}});
        let takes = json!([{"field": CLUSTER, "value": "params.cluster.name"}]);
        for (account, of_syncs, generator, set, expect) in [
            (Some("deployer"), "deployer", &clusters, &takes, Some(json!(["get", "list"]))),
            (Some("deployer"), "other", &clusters, &takes, Some(json!(["list"]))),
            (Some("deployer"), "deployer", &clusters, &json!([]), Some(json!(["list"]))),
            (Some("deployer"), "deployer", &list, &json!([]), None),
            (None, "deployer", &clusters, &takes, None),
        ] {
            let spec = json!({
                "generators": [generator], "name": "params.cluster.name", "set": set, "serviceAccountName": account,
                "template": {"spec": {"source": {"git": {"url": "https://h/a"}}, "serviceAccountName": of_syncs}},
            });
            let found = rights_of_set(&SyncName::new("team", "apps"), Some(&spec), &daemon).unwrap();
            let rules = found.iter().flat_map(|(_, document)| document["rules"].as_array()).flatten();
            let secrets = rules.filter(|rule| rule["resources"] == json!(["secrets"]));
            let verbs: Vec<Value> = secrets.map(|rule| rule["verbs"].clone()).collect();
            assert_eq!(verbs, expect.into_iter().collect::<Vec<_>>(), "{account:?} {of_syncs} {generator}");
        }
    }
}
