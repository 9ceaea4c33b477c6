//! The containers of a Pod, as its status reports them.
//!
//! In: a live Pod. Out: [`PodSummary`]. Termination messages are never read: a container may print
//! anything, including secrets.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::report::board::NOT_SHOWN;
use crate::sanitize::sanitize;

/// The most containers of a Pod that are shown.
const MAX_CONTAINERS: usize = 32;
/// The most characters of a text.
const MAX_TEXT: usize = 300;

/// A Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodSummary {
    /// Its phase.
    pub phase: Box<str>,
    /// Its node, once it is scheduled.
    pub node: Box<str>,
    /// Reason of the Pod itself, such as an eviction.
    pub reason: Box<str>,
    /// Its containers: init containers, then the main ones, then ephemeral ones.
    pub containers: Vec<ContainerSummary>,
}

/// Role of a container in its Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerRole {
    /// Runs to completion before the others start.
    Init,
    /// Starts before the others and keeps running.
    Sidecar,
    /// A main container.
    Main,
    /// Added by a person for debugging.
    Ephemeral,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSummary {
    /// Its name.
    pub name: Box<str>,
    /// Its role.
    pub role: ContainerRole,
    /// Its image.
    pub image: Box<str>,
    /// True if it is ready.
    pub ready: bool,
    /// The number of restarts.
    pub restarts: u64,
    /// `waiting`, `running`, `terminated`, or empty before the first report.
    pub state: &'static str,
    /// Reason of that state.
    pub reason: Box<str>,
    /// Start of the run, if it runs.
    pub started: Option<Timestamp>,
    /// End of the last run, if one has ended.
    pub last_end: Option<ContainerEnd>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEnd {
    /// Its reason, such as `OOMKilled`.
    pub reason: Box<str>,
    /// The exit code.
    pub exit_code: Option<i64>,
    /// The time.
    pub finished: Option<Timestamp>,
}

impl ContainerRole {
    /// The label on the page.
    pub fn label(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Sidecar => "sidecar",
            Self::Main => "main",
            Self::Ephemeral => "ephemeral",
        }
    }
}

impl PodSummary {
    /// Reads a Pod.
    pub(super) fn read(body: &Map<String, Value>) -> Self {
        let part = |name: &str| body.get(name).unwrap_or(&Value::Null);
        let (spec, status) = (part("spec"), part("status"));
        let mut containers = Vec::new();
        for (listed, states, role) in [
            ("initContainers", "initContainerStatuses", ContainerRole::Init),
            ("containers", "containerStatuses", ContainerRole::Main),
            ("ephemeralContainers", "ephemeralContainerStatuses", ContainerRole::Ephemeral),
        ] {
            for container in items(spec, listed) {
                let name = text(container, "name");
                let state = items(status, states).find(|state| text(state, "name") == name);
                containers.push(container_summary(container, state.unwrap_or(&Value::Null), role));
            }
        }
        containers.truncate(MAX_CONTAINERS);
        Self {
            phase: text(status, "phase"),
            node: text(spec, "nodeName"),
            reason: text(status, "reason"),
            containers,
        }
    }

    /// Hides what may contain a value of a Secret.
    pub(super) fn hide(&mut self) {
        self.containers.iter_mut().for_each(|container| container.image = NOT_SHOWN.into());
    }

    /// The sum of the restarts of all containers.
    pub fn restarts(&self) -> u64 {
        self.containers.iter().fold(0, |sum, container| sum.saturating_add(container.restarts))
    }
}

fn container_summary(container: &Value, status: &Value, role: ContainerRole) -> ContainerSummary {
    let always = container.get("restartPolicy").and_then(Value::as_str) == Some("Always");
    let role = if role == ContainerRole::Init && always { ContainerRole::Sidecar } else { role };
    let state = status.get("state").unwrap_or(&Value::Null);
    let known = ["waiting", "running", "terminated"].into_iter().find(|word| state.get(word).is_some());
    let now = known.and_then(|word| state.get(word)).unwrap_or(&Value::Null);
    let last = status.pointer("/lastState/terminated").or_else(|| state.get("terminated"));
    ContainerSummary {
        name: text(container, "name"),
        role,
        image: text(container, "image"),
        ready: status.get("ready").and_then(Value::as_bool).unwrap_or_default(),
        restarts: status.get("restartCount").and_then(Value::as_u64).unwrap_or_default(),
        state: known.unwrap_or_default(),
        reason: text(now, "reason"),
        started: time(now, "startedAt"),
        last_end: last.map(|last| ContainerEnd {
            reason: text(last, "reason"),
            exit_code: last.get("exitCode").and_then(Value::as_i64),
            finished: time(last, "finishedAt"),
        }),
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten().take(MAX_CONTAINERS)
}

fn text(value: &Value, field: &str) -> Box<str> {
    let text = value.get(field).and_then(Value::as_str).unwrap_or_default();
    let text: String = text.chars().take(MAX_TEXT).collect();
    sanitize(&text).into()
}

fn time(value: &Value, field: &str) -> Option<Timestamp> {
    value.get(field)?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_shows_its_containers_and_never_what_they_printed() {
        let Value::Object(body) = json!({
            "spec": {"nodeName": "n1",
                "initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}, {"name": "load", "image": "l"}],
                "containers": [{"name": "web", "image": "shop:2"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "web", "ready": false, "restartCount": 7,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "hunter2"}},
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "message": "hunter2",
                    "finishedAt": "2026-11-22T11:00:00Z"}}}]},
        }) else {
            panic!("a literal mapping")
        };
        let mut pod = PodSummary::read(&body);
        assert!(!format!("{pod:?}").contains("hunter2"));
        let roles: Vec<_> = pod.containers.iter().map(|it| (&*it.name, it.role.label())).collect();
        assert_eq!(roles, [("proxy", "sidecar"), ("load", "init"), ("web", "main")]);
        let web = &pod.containers[2];
        assert_eq!((web.state, &*web.reason, web.restarts), ("waiting", "CrashLoopBackOff", 7));
        let end = web.last_end.as_ref().unwrap();
        assert_eq!((&*end.reason, end.exit_code), ("OOMKilled", Some(137)));
        assert_eq!(end.finished, "2026-11-22T11:00:00Z".parse().ok());
        assert_eq!((pod.restarts(), &*pod.node, &*pod.phase), (7, "n1", "Running"));
        pod.hide();
        assert!(!format!("{pod:?}").contains("shop:2"));
    }
}
