//! Cells of Pods as `kubectl get pods` prints them.
//!
//! In: a Pod and the current time.
//! Out: ready containers, status and restarts.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{CellFn, items, text};
use super::duration;

/// Returns the function that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CellFn> {
    Some(match name {
        "pod-gates" => gates,
        "pod-ready" => |it, _| {
            let seen = PodSummary::of(it);
            format!("{}/{}", seen.ready, seen.all).into()
        },
        "pod-restarts" => restarts,
        "pod-status" => |it, _| PodSummary::of(it).word.into(),
        _ => return None,
    })
}

/// Summary of the container statuses of a Pod.
struct PodSummary {
    all: usize,
    ready: usize,
    word: String,
    restarts: i64,
    /// Time at which the most recently restarted container ended.
    restarted: Option<Timestamp>,
}

impl PodSummary {
    fn of(pod: &Value) -> Self {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let sidecar = |name: &Value| {
            items(&spec["initContainers"]).any(|it| it["name"] == *name && it["restartPolicy"] == "Always")
        };
        let sidecars = items(&spec["initContainers"]).filter(|it| sidecar(&it["name"])).count();
        let phase = text(&status["phase"]);
        let gated = items(&status["conditions"])
            .any(|it| it["type"] == "PodScheduled" && it["reason"] == "SchedulingGated");
        let word = match text(&status["reason"]) {
            _ if gated => "SchedulingGated",
            "" => phase,
            reason => reason,
        };
        let all = items(&spec["containers"]).count() + sidecars;
        let mut seen = Self { all, ready: 0, word: word.to_owned(), restarts: 0, restarted: None };
        let initializing = seen.look_at_first(spec, status, &sidecar);
        let initialized = has_true(status, "Initialized");
        if !initializing || initialized {
            (seen.restarts, seen.restarted) = (0, None);
            for it in items(&status["initContainerStatuses"]).filter(|it| sidecar(&it["name"])) {
                seen.count_restarts(it);
            }
            seen.look_at_rest(status);
        }
        let ends = !pod["metadata"]["deletionTimestamp"].is_null();
        if ends && status["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut seen.word);
        } else if ends && !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut seen.word);
        }
        seen
    }

    /// Adds the init containers; returns true while they are running.
    fn look_at_first(&mut self, spec: &Value, status: &Value, sidecar: &dyn Fn(&Value) -> bool) -> bool {
        for (index, it) in items(&status["initContainerStatuses"]).enumerate() {
            self.count_restarts(it);
            let (ended, waits) = (&it["state"]["terminated"], text(&it["state"]["waiting"]["reason"]));
            if ended.is_object() && ended["exitCode"] == 0 {
                continue;
            }
            if sidecar(&it["name"]) && it["started"] == true {
                self.ready += usize::from(it["ready"] == true);
                continue;
            }
            self.word = if ended.is_object() {
                format!("Init:{}", how_it_ended(ended))
            } else if !waits.is_empty() && waits != "PodInitializing" {
                format!("Init:{waits}")
            } else {
                format!("Init:{index}/{}", items(&spec["initContainers"]).count())
            };
            return true;
        }
        false
    }

    /// Adds the main containers.
    fn look_at_rest(&mut self, status: &Value) {
        let (mut runs, mut failed) = (false, None);
        for it in items(&status["containerStatuses"]).rev() {
            self.count_restarts(it);
            let (ended, waits) = (&it["state"]["terminated"], text(&it["state"]["waiting"]["reason"]));
            if !waits.is_empty() {
                waits.clone_into(&mut self.word);
            } else if ended.is_object() {
                self.word = how_it_ended(ended);
                if ended["exitCode"] != 0 {
                    failed = Some(self.word.clone());
                }
            } else if it["ready"] == true && it["state"]["running"].is_object() {
                runs = true;
                self.ready += 1;
            }
        }
        // One completed container does not determine the status of the Pod.
        if self.word == "Completed" {
            if runs && has_true(status, "Ready") {
                "Running".clone_into(&mut self.word);
            } else if let Some(failed) = failed {
                self.word = failed;
            } else if runs {
                "NotReady".clone_into(&mut self.word);
            }
        }
    }

    fn count_restarts(&mut self, container: &Value) {
        self.restarts += container["restartCount"].as_i64().unwrap_or(0);
        let ended =
            container["lastState"]["terminated"]["finishedAt"].as_str().and_then(|it| it.parse().ok());
        self.restarted = self.restarted.max(ended);
    }
}

fn how_it_ended(ended: &Value) -> String {
    match (text(&ended["reason"]), ended["signal"].as_i64().unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", ended["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn has_true(status: &Value, condition: &str) -> bool {
    items(&status["conditions"]).any(|it| it["type"] == condition && it["status"] == "True")
}

fn restarts(pod: &Value, now: Timestamp) -> Value {
    let seen = PodSummary::of(pod);
    match seen.restarted.filter(|_| seen.restarts != 0) {
        Some(last) => format!("{} ({} ago)", seen.restarts, duration::between(last, now)).into(),
        None => seen.restarts.to_string().into(),
    }
}

fn gates(pod: &Value, _: Timestamp) -> Value {
    let gates: Vec<_> = items(&pod["spec"]["readinessGates"]).map(|it| text(&it["conditionType"])).collect();
    let open = gates.iter().filter(|it| has_true(&pod["status"], it)).count();
    if gates.is_empty() { "<none>".into() } else { format!("{open}/{}", gates.len()).into() }
}
