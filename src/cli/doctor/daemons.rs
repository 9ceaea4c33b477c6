//! Checks a daemon: its Deployment, and who holds its Lease.

use super::super::installation::Daemon;
use super::super::operate::heartbeats::describe_heartbeat;
use super::finding::Finding;
use crate::cluster::{Heartbeat, LeaseState};

pub(super) fn check_deployment(daemon: &Daemon, namespace: &str) -> Finding {
    let check = "daemon";
    let Some(deployment) = &daemon.deployment else {
        let message = format!("no Deployment of the daemon is found in the namespace {namespace}");
        return match daemon.lease_state.heartbeat {
            Heartbeat::Alive => Finding::warning(
                check,
                format!("{message}, though a daemon holds its Lease"),
                "if it runs elsewhere, ignore this; otherwise name its namespace with -n",
            ),
            _ => Finding::error(
                check,
                message,
                "name its namespace with -n, or install it: moorline install --help",
            ),
        };
    };
    let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
    let image = daemon.image().unwrap_or("unknown");
    let (wanted, available) =
        (deployment["spec"]["replicas"].as_u64().unwrap_or(1), &deployment["status"]["availableReplicas"]);
    match available.as_u64().unwrap_or_default() {
        0 => Finding::warning(
            check,
            format!("no Pod of the Deployment {namespace}/{name} is available (image {image})"),
            format!(
                "look at its Pods: kubectl describe pods -n {namespace} -l app.kubernetes.io/name=moorline"
            ),
        ),
        available if available < wanted => Finding::warning(
            check,
            format!(
                "{available} of {wanted} Pods of the Deployment {namespace}/{name} are available (image {image})"
            ),
            format!(
                "look at its Pods: kubectl describe pods -n {namespace} -l app.kubernetes.io/name=moorline"
            ),
        ),
        available => {
            let are = if available == 1 { "Pod is" } else { "Pods are" };
            let message =
                format!("{available} {are} available of the Deployment {namespace}/{name} (image {image})");
            Finding::ok(check, message)
        }
    }
}

pub(super) fn check_lease(daemon: &Daemon) -> Finding {
    judge_lease(&daemon.lease, &daemon.lease_state)
}

/// Judges a Lease by the clock of the API server.
fn judge_lease(lease: &str, state: &LeaseState) -> Finding {
    let check = "lease";
    let namespace = lease.split('/').next().unwrap_or_default();
    let logs =
        format!("look at the daemon's log: kubectl logs -n {namespace} -l app.kubernetes.io/name=moorline");
    let age = state.age.unwrap_or_default().as_secs();
    match (describe_heartbeat(state.heartbeat, lease, "Syncs"), state.heartbeat) {
        (None, _) => match &state.holder {
            Some(holder) => {
                let version = state
                    .version
                    .as_deref()
                    .map(|version| format!(", version {version}"))
                    .unwrap_or_default();
                let message =
                    format!("the Lease {lease} is held by {holder}{version}, and was renewed {age} s ago");
                Finding::ok(check, message)
            }
            None => Finding::warning(
                check,
                format!("the Lease {lease} was released {age} s ago, and nobody holds it"),
                "wait some seconds for the next daemon, and run this again",
            ),
        },
        (Some(problem), Heartbeat::Unknown) => {
            Finding::unknown(check, problem, "get the permission to get leases")
        }
        (Some(problem), _) => Finding::error(check, problem, logs),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::finding::Level;
    use super::*;

    fn state(heartbeat: Heartbeat, holder: Option<&str>) -> LeaseState {
        let age = Some(Duration::from_secs(3));
        LeaseState { heartbeat, holder: holder.map(Into::into), age, version: Some("1.2.0".into()) }
    }

    #[test]
    fn a_lease_is_held_released_old_missing_or_hidden() {
        let check = |heartbeat: Heartbeat, holder: Option<&str>, level: Level, part: &str| {
            let found = judge_lease("a/moorline", &state(heartbeat, holder));
            assert!(found.level == level && found.text().contains(part), "{found:?}");
        };
        let held = "the Lease a/moorline is held by pod-1, version 1.2.0, and was renewed 3 s ago";
        check(Heartbeat::Alive, Some("pod-1"), Level::Ok, held);
        check(Heartbeat::Alive, None, Level::Warning, "was released 3 s ago");
        let old = Heartbeat::Silent(Duration::from_secs(250));
        check(old, Some("pod-1"), Level::Error, "for 4 min: the Lease a/moorline is not renewed; look at");
        check(Heartbeat::Missing, None, Level::Error, "there is no Lease a/moorline");
        check(Heartbeat::Unknown, None, Level::Unknown, "get leases");
    }

    #[test]
    fn a_deployment_has_pods_or_a_problem() {
        let check = |deployment: Option<(u64, u64)>, heartbeat: Heartbeat, level: Level, part: &str| {
            let deployment = deployment.map(|(wanted, available)| {
                json!({
                    "metadata": {"name": "moorline"}, "spec": {"replicas": wanted},
                    "status": {"availableReplicas": available},
                })
            });
            let lease_state = state(heartbeat, None);
            let daemon = Daemon { lease: "a/moorline".into(), lease_state, deployment, settings: None };
            let found = check_deployment(&daemon, "a");
            assert!(found.level == level && found.text().contains(part), "{found:?}");
        };
        check(
            Some((1, 1)),
            Heartbeat::Alive,
            Level::Ok,
            "1 Pod is available of the Deployment a/moorline (image unknown)",
        );
        check(Some((2, 1)), Heartbeat::Alive, Level::Warning, "1 of 2 Pods");
        check(Some((1, 0)), Heartbeat::Missing, Level::Warning, "no Pod of the Deployment a/moorline");
        check(None, Heartbeat::Alive, Level::Warning, "though a daemon holds its Lease");
        check(None, Heartbeat::Missing, Level::Error, "moorline install");
    }
}
