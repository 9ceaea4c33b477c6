//! Pod: whether it runs, and what its containers wait for.
//!
//! In: a live Pod. Out: its health, and [`trouble`], the one thing that keeps it, which also names the cause of a workload's
//! trouble. Of what a container printed nothing is repeated: its last words (`terminated.message`) may be anything.

use serde_json::Value;

use super::condition::Condition;
use super::live::Live;
use super::sentence::told;
use super::{Context, Health};

/// What a container waits for while all is well.
const FINE: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// From this many restarts on, a container that is not ready is not merely slow. A crash loop shows its back-off only
/// between two runs; without this its health would come and go.
const RESTARTS: u64 = 3;

pub(super) fn pod(live: Live<'_>, _: &Context) -> Health {
    let forever = live.text(&["spec", "restartPolicy"]).is_none_or(|policy| policy == "Always");
    match live.text(&["status", "phase"]) {
        Some("Succeeded") => Health::Healthy,
        Some("Failed") => Health::degraded(end(live)),
        Some("Unknown") => Health::unknown("its node does not report"),
        Some("Running") if forever && live.holds("Ready").is_some() => Health::Healthy,
        Some("Running" | "Pending") => match trouble(live) {
            Some(Trouble { hopeless: true, why }) => Health::degraded(why),
            Some(Trouble { hopeless: false, why }) => Health::progressing(why),
            None if forever => Health::progressing("it is not ready"),
            None => Health::progressing("it has not come to its end"),
        },
        Some(phase) => Health::unknown(format!("its phase {:?} is not known", told(phase))),
        None => Health::progressing("it was not scheduled yet"),
    }
}

/// What keeps a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// True where it will not pass by itself, as far as one can tell.
    pub(super) hopeless: bool,
    /// A sentence.
    pub(super) why: String,
}

impl Trouble {
    fn hopeless(why: String) -> Option<Self> {
        Some(Self { hopeless: true, why })
    }

    fn passing(why: impl Into<String>) -> Option<Self> {
        Some(Self { hopeless: false, why: why.into() })
    }
}

/// The one thing that keeps a Pod that has not ended: where it runs, then how its containers start, then whether they are
/// ready. None where nothing says anything.
pub(super) fn trouble(live: Live<'_>) -> Option<Trouble> {
    if let Some(scheduled) = live.condition("PodScheduled").filter(Condition::is_false) {
        return match scheduled.reason {
            "SchedulingGated" => Trouble::passing("its scheduling gates are closed"),
            _ => Trouble::passing(format!("it cannot be scheduled: {}", scheduled.says())),
        };
    }
    let statuses = |field: &str| live.items(&["status", field]).iter();
    let every = || statuses("initContainerStatuses").chain(statuses("containerStatuses"));
    if let Some(why) = every().find_map(failure) {
        return Trouble::hopeless(why);
    }
    if let Some(why) = starting(live) {
        return Trouble::passing(why);
    }
    // A sidecar that is not ready keeps its Pod from being ready; other init containers are done by now.
    let mut sidecars = statuses("initContainerStatuses").filter(|status| is_sidecar(live, name(status)));
    let unready = |status: &&Value| status.get("ready").and_then(Value::as_bool) == Some(false);
    if let Some(container) = statuses("containerStatuses").find(unready).or_else(|| sidecars.find(unready)) {
        return Trouble::passing(match state(container, "waiting") {
            Some(_) => format!("the container {} is being created", told(name(container))),
            None => format!("the container {} is not ready", told(name(container))),
        });
    }
    // Readiness gates, and nodes that do not report.
    let ready = live.condition("Ready").filter(Condition::is_false)?;
    Trouble::passing(format!("it is not ready: {}", ready.says()))
}

/// Which init container runs, while one does.
fn starting(live: Live<'_>) -> Option<String> {
    let statuses = live.items(&["status", "initContainerStatuses"]);
    let once = || statuses.iter().filter(|status| !is_sidecar(live, name(status)));
    let done = |status: &&Value| {
        let code = status.pointer("/state/terminated/exitCode").and_then(Value::as_u64);
        code == Some(0)
    };
    let next = once().find(|status| !done(status))?;
    let (finished, all) = (once().filter(done).count() as u64, once().count() as u64);
    Some(format!("the init container {} has not finished ({finished} of {all} have)", told(name(next))))
}

/// What is wrong with one container, as a sentence.
fn failure(status: &Value) -> Option<String> {
    let container = told(name(status));
    let restarts = status.get("restartCount").and_then(Value::as_u64).unwrap_or_default();
    let last = last_end(status);
    if let Some(waiting) = state(status, "waiting") {
        let text = |field: &str| waiting.get(field).and_then(Value::as_str).unwrap_or_default();
        let reason = text("reason");
        if reason == "CrashLoopBackOff" {
            let last = last.unwrap_or_else(|| "it ended".to_owned());
            return Some(format!("the container {container} waits: CrashLoopBackOff ({last})"));
        }
        let failed =
            ["Error", "BackOff", "Never", "Failed", "Unavailable"].iter().any(|end| reason.ends_with(end))
                || reason.starts_with("Err")
                || reason.starts_with("Invalid");
        if failed && !FINE.contains(&reason) {
            return Some(match text("message") {
                "" => format!("the container {container} waits: {}", told(reason)),
                message => format!("the container {container} waits: {} ({})", told(reason), told(message)),
            });
        }
    }
    let ready = status.get("ready").and_then(Value::as_bool).unwrap_or_default();
    match last {
        Some(last) if !ready && restarts >= RESTARTS => {
            Some(format!("the container {container} does not stay up ({last})"))
        }
        _ => None,
    }
}

/// How a container's last run ended. The number of restarts is left out: a sentence that changed with each would never be
/// too old.
fn last_end(status: &Value) -> Option<String> {
    let ended = status.pointer("/lastState/terminated").or_else(|| state(status, "terminated"))?;
    let code = ended.get("exitCode").and_then(Value::as_i64);
    let reason = ended
        .get("reason")
        .and_then(Value::as_str)
        .filter(|reason| !["Error", "Completed", ""].contains(reason));
    Some(match (reason, code) {
        (Some(reason), Some(code)) => format!("its last run ended with {}, exit code {code}", told(reason)),
        (Some(reason), None) => format!("its last run ended with {}", told(reason)),
        (None, Some(code)) => format!("its last run ended with exit code {code}"),
        (None, None) => "its last run ended".to_owned(),
    })
}

/// Why a Pod failed: its own word (an eviction, a deadline), else that of the first container that failed.
pub(super) fn end(live: Live<'_>) -> String {
    let reason = live.text(&["status", "reason"]).filter(|reason| !reason.is_empty());
    let message = live.text(&["status", "message"]).filter(|message| !message.is_empty());
    match (reason, message) {
        (Some(reason), Some(message)) => return format!("it failed: {}: {}", told(reason), told(message)),
        (Some(text), None) | (None, Some(text)) => return format!("it failed: {}", told(text)),
        (None, None) => {}
    }
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let ended = |status: &&Value| {
        let code = status.pointer("/state/terminated/exitCode").and_then(Value::as_i64);
        code.is_some_and(|code| code != 0)
    };
    let failed = statuses.iter().find_map(|field| live.items(&["status", field]).iter().find(ended));
    let failed = failed.and_then(|status| Some((status, state(status, "terminated")?)));
    let Some((status, terminated)) = failed else { return "it failed".to_owned() };
    let code = terminated.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
    match terminated.get("reason").and_then(Value::as_str) {
        None | Some("Error" | "") => {
            format!("the container {} ended with exit code {code}", told(name(status)))
        }
        Some(reason) => {
            format!("the container {} ended with {}, exit code {code}", told(name(status)), told(reason))
        }
    }
}

/// Whether an init container runs beside the others, for good.
fn is_sidecar(live: Live<'_>, container: &str) -> bool {
    let named = |spec: &&Value| spec.get("name").and_then(Value::as_str) == Some(container);
    let spec = live.items(&["spec", "initContainers"]).iter().find(named);
    spec.is_some_and(|spec| spec.get("restartPolicy").and_then(Value::as_str) == Some("Always"))
}

fn name(status: &Value) -> &str {
    status.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn state<'a>(status: &'a Value, which: &str) -> Option<&'a Value> {
    status.get("state")?.get(which)
}

#[cfg(test)]
mod tests;
