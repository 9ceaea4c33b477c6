//! Health of a Pod, and the problem that keeps its containers from running.
//!
//! In: a live Pod.
//! Out: its health, and [`find_problem`], the one problem to report, also as the cause of a
//! workload's bad health. The termination message (`terminated.message`) is never quoted: a
//! container may print anything, including secrets.

use serde_json::Value;

use super::condition::Condition;
use super::{Context, Health};
use crate::message::quote;
use crate::object_view::ObjectView;

/// Reasons for waiting that are normal during a start.
const NORMAL_WAIT_REASONS: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// From this many restarts on, a container that is not ready is in a crash loop and not merely
/// slow. Its back-off is visible only between two runs; without this limit its health would flap.
const CRASH_LOOP_RESTARTS: u64 = 3;

pub(super) fn pod(live: ObjectView<'_>, _: &Context) -> Health {
    let forever = live.text(&["spec", "restartPolicy"]).is_none_or(|policy| policy == "Always");
    match live.text(&["status", "phase"]) {
        Some("Succeeded") => Health::Healthy,
        Some("Failed") => Health::degraded(failure_reason(live)),
        Some("Unknown") => Health::unknown("its node does not report"),
        Some("Running") if forever && live.true_condition("Ready").is_some() => Health::Healthy,
        Some("Running" | "Pending") => match find_problem(live) {
            Some(PodProblem { is_permanent: true, why }) => Health::degraded(why),
            Some(PodProblem { is_permanent: false, why }) => Health::progressing(why),
            None if forever => Health::progressing("it is not ready"),
            None => Health::progressing("it has not completed yet"),
        },
        Some(phase) => Health::unknown(format!("its phase {:?} is not known", quote(phase))),
        None => Health::progressing("it is not scheduled yet"),
    }
}

/// Problem that keeps a Pod from becoming ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodProblem {
    /// True if the Pod will not recover without a change, as far as the status shows.
    pub(super) is_permanent: bool,
    /// The problem, as a sentence.
    pub(super) why: String,
}

impl PodProblem {
    fn permanent(why: String) -> Option<Self> {
        Some(Self { is_permanent: true, why })
    }

    fn transient(why: impl Into<String>) -> Option<Self> {
        Some(Self { is_permanent: false, why: why.into() })
    }
}

/// Finds the one problem to report for a Pod that has not ended: first scheduling, then the start
/// of its containers, then readiness. `None` if the status reports none.
pub(super) fn find_problem(live: ObjectView<'_>) -> Option<PodProblem> {
    if let Some(scheduled) = live.condition("PodScheduled").filter(Condition::is_false) {
        return match scheduled.reason {
            "SchedulingGated" => PodProblem::transient("it is blocked by scheduling gates"),
            _ => PodProblem::transient(format!("it cannot be scheduled: {}", scheduled.reason_and_message())),
        };
    }
    let statuses = |field: &str| live.items(&["status", field]).iter();
    let every = || statuses("initContainerStatuses").chain(statuses("containerStatuses"));
    if let Some(why) = every().find_map(container_failure) {
        return PodProblem::permanent(why);
    }
    if let Some(why) = starting(live) {
        return PodProblem::transient(why);
    }
    // A sidecar that is not ready keeps its Pod from being ready; all other init containers have
    // ended by now.
    let mut sidecars = statuses("initContainerStatuses").filter(|status| is_sidecar(live, name(status)));
    let unready = |status: &&Value| status.get("ready").and_then(Value::as_bool) == Some(false);
    if let Some(container) = statuses("containerStatuses").find(unready).or_else(|| sidecars.find(unready)) {
        return PodProblem::transient(match state(container, "waiting") {
            Some(_) => format!("the container {} is being created", quote(name(container))),
            None => format!("the container {} is not ready", quote(name(container))),
        });
    }
    // Readiness gates, and nodes that do not report.
    let ready = live.condition("Ready").filter(Condition::is_false)?;
    PodProblem::transient(format!("it is not ready: {}", ready.reason_and_message()))
}

/// Describes the init container that runs now.
fn starting(live: ObjectView<'_>) -> Option<String> {
    let statuses = live.items(&["status", "initContainerStatuses"]);
    let once = || statuses.iter().filter(|status| !is_sidecar(live, name(status)));
    let done = |status: &&Value| {
        let code = status.pointer("/state/terminated/exitCode").and_then(Value::as_u64);
        code == Some(0)
    };
    let next = once().find(|status| !done(status))?;
    let (finished, all) = (once().filter(done).count() as u64, once().count() as u64);
    Some(format!("the init container {} has not finished ({finished} of {all} have)", quote(name(next))))
}

/// Failure of one container, as a sentence.
fn container_failure(status: &Value) -> Option<String> {
    let container = quote(name(status));
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
        if failed && !NORMAL_WAIT_REASONS.contains(&reason) {
            return Some(match text("message") {
                "" => format!("the container {container} waits: {}", quote(reason)),
                message => format!("the container {container} waits: {} ({})", quote(reason), quote(message)),
            });
        }
    }
    let ready = status.get("ready").and_then(Value::as_bool).unwrap_or_default();
    match last {
        Some(last) if !ready && restarts >= CRASH_LOOP_RESTARTS => {
            Some(format!("the container {container} keeps restarting ({last})"))
        }
        _ => None,
    }
}

/// Describes the end of a container's last run. The number of restarts is omitted: a sentence that
/// changed with each restart would reset the deadline every time.
fn last_end(status: &Value) -> Option<String> {
    let ended = status.pointer("/lastState/terminated").or_else(|| state(status, "terminated"))?;
    let code = ended.get("exitCode").and_then(Value::as_i64);
    let reason = ended
        .get("reason")
        .and_then(Value::as_str)
        .filter(|reason| !["Error", "Completed", ""].contains(reason));
    Some(match (reason, code) {
        (Some(reason), Some(code)) => format!("its last run ended with {}, exit code {code}", quote(reason)),
        (Some(reason), None) => format!("its last run ended with {}", quote(reason)),
        (None, Some(code)) => format!("its last run ended with exit code {code}"),
        (None, None) => "its last run ended".to_owned(),
    })
}

/// Reason for which a Pod failed: its own (an eviction, a deadline), else that of the first failed
/// container.
pub(super) fn failure_reason(live: ObjectView<'_>) -> String {
    let reason = live.text(&["status", "reason"]).filter(|reason| !reason.is_empty());
    let message = live.text(&["status", "message"]).filter(|message| !message.is_empty());
    match (reason, message) {
        (Some(reason), Some(message)) => return format!("it failed: {}: {}", quote(reason), quote(message)),
        (Some(text), None) | (None, Some(text)) => return format!("it failed: {}", quote(text)),
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
            format!("the container {} ended with exit code {code}", quote(name(status)))
        }
        Some(reason) => {
            format!("the container {} ended with {}, exit code {code}", quote(name(status)), quote(reason))
        }
    }
}

/// True for an init container that keeps running beside the others.
fn is_sidecar(live: ObjectView<'_>, container: &str) -> bool {
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
