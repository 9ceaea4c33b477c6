//! Checks the Secrets of a daemon: that of the webhooks, and that of the keys for proofs.
//!
//! In: the settings, and the metadata of the Secrets. Out: a finding for each. Their content is not
//! read.

use std::path::Path;

use serde_json::Value;

use super::super::installation::{Daemon, container};
use super::finding::Finding;
use crate::cluster::{Connection, Lookup};

/// Name of the Secret with the keys, as the daemon names it.
pub(super) fn key_secret(daemon: &Daemon) -> String {
    let named = daemon.settings.as_ref().and_then(|settings| settings.key_secret.clone());
    named.map_or_else(|| format!("{}-key", name_of(&daemon.lease)), |name| name.to_string())
}

pub(super) async fn check_keys(connection: &Connection, daemon: &Daemon) -> Finding {
    let (namespace, name) = (namespace_of(&daemon.lease), key_secret(daemon));
    let found = connection.look_up_metadata(&path(namespace, &name)).await;
    judge_keys(namespace, &name, &found)
}

fn judge_keys(namespace: &str, name: &str, found: &Lookup) -> Finding {
    let check = "keys";
    match found {
        Lookup::Found(_) => Finding::ok(
            check,
            format!("the Secret {namespace}/{name} with the keys for proofs of ownership is there"),
        ),
        Lookup::Missing => Finding::error(
            check,
            format!("there is no Secret {namespace}/{name} with the keys for proofs of ownership"),
            format!(
                "restore it from a backup; or create it empty, and approve each prune of objects from before: \
                 kubectl create secret generic {name} -n {namespace}"
            ),
        ),
        Lookup::Forbidden | Lookup::Failed(_) => hidden(check, namespace, name, found),
    }
}

pub(super) async fn check_webhook(connection: &Connection, daemon: &Daemon) -> Finding {
    let check = "webhooks";
    let (Some(settings), Some(deployment)) = (&daemon.settings, &daemon.deployment) else {
        let message = "the settings of the daemon are not known";
        let remedy = "get the permission to list deployments and get configmaps in its namespace, and name that with -n";
        return Finding::unknown(check, message, remedy);
    };
    let Some(file) = &settings.webhook_secret_file else {
        return Finding::ok(
            check,
            "webhooks are disabled (settings.webhookSecretFile): repositories are polled",
        );
    };
    let Some(name) = mounted_secret(deployment, file) else {
        return Finding::warning(
            check,
            format!("the settings name the file {}, and no Secret is mounted there", file.display()),
            "set webhookSecret in the values of the chart, which mounts it",
        );
    };
    let namespace = namespace_of(&daemon.lease);
    judge_webhook(namespace, name, &connection.look_up_metadata(&path(namespace, name)).await)
}

fn judge_webhook(namespace: &str, name: &str, found: &Lookup) -> Finding {
    let check = "webhooks";
    match found {
        Lookup::Found(_) => {
            Finding::ok(check, format!("the Secret {namespace}/{name} that signs webhook calls is there"))
        }
        Lookup::Missing => Finding::error(
            check,
            format!("there is no Secret {namespace}/{name}, which the daemon needs for webhook calls"),
            format!(
                "create it: kubectl create secret generic {name} -n {namespace} --from-literal=secret=..."
            ),
        ),
        Lookup::Forbidden | Lookup::Failed(_) => hidden(check, namespace, name, found),
    }
}

fn hidden(check: &'static str, namespace: &str, name: &str, found: &Lookup) -> Finding {
    match found {
        Lookup::Failed(cause) => Finding::unknown(
            check,
            format!("the Secret {namespace}/{name} cannot be read: {cause}"),
            "try again",
        ),
        _ => Finding::unknown(
            check,
            format!("you may not see if the Secret {namespace}/{name} is there"),
            format!("ask somebody who may: kubectl get secret {name} -n {namespace}"),
        ),
    }
}

/// The Secret of the volume that has a file of the daemon's container.
fn mounted_secret<'a>(deployment: &'a Value, file: &Path) -> Option<&'a str> {
    let mounts = container(deployment)?["volumeMounts"].as_array()?;
    let mount =
        mounts.iter().find(|mount| mount["mountPath"].as_str().is_some_and(|path| file.starts_with(path)))?;
    let volumes = deployment.pointer("/spec/template/spec/volumes")?.as_array()?;
    let volume = volumes.iter().find(|volume| volume["name"] == mount["name"])?;
    volume["secret"]["secretName"].as_str()
}

fn path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets/{name}")
}

fn namespace_of(lease: &str) -> &str {
    lease.split('/').next().unwrap_or_default()
}

fn name_of(lease: &str) -> &str {
    lease.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_secret_is_there_missing_or_hidden() {
        let there = Lookup::Found(json!({}));
        for (found, level) in
            [(&there, Level::Ok), (&Lookup::Missing, Level::Error), (&Lookup::Forbidden, Level::Unknown)]
        {
            assert_eq!(judge_keys("a", "b", found).level, level);
            assert_eq!(judge_webhook("a", "b", found).level, level);
        }
        let remedy = judge_keys("a", "b", &Lookup::Missing).text();
        assert!(remedy.contains("kubectl create secret generic b -n a"), "{remedy}");
    }

    #[test]
    fn the_secret_behind_a_file_is_found_by_its_mount() {
        let pod = json!({
            "containers": [{"volumeMounts": [
                {"name": "settings", "mountPath": "/etc/moorline/settings"},
                {"name": "webhook", "mountPath": "/etc/moorline/webhook"},
            ]}],
            "volumes": [
                {"name": "settings", "configMap": {"name": "moorline"}},
                {"name": "webhook", "secret": {"secretName": "hooks"}},
            ],
        });
        let deployment = json!({"spec": {"template": {"spec": pod}}});
        let secret = |file: &str| mounted_secret(&deployment, Path::new(file));
        assert_eq!(secret("/etc/moorline/webhook/secret"), Some("hooks"));
        assert_eq!(secret("/etc/moorline/settings/daemon.yaml"), None);
        assert_eq!(secret("/else"), None);
    }
}
