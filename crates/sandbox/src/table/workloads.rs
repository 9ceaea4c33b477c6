//! Cells of workloads and autoscalers.
//!
//! In: a workload and the current time.
//! Out: the content of a cell.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{CellFn, items, or, pairs, selector, text};
use super::{at, duration};

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
/// Maximum number of autoscaler metrics in a cell.
const METRICS_SHOWN: usize = 2;

/// Returns the function that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CellFn> {
    Some(match name {
        "containers" => |it, _| containers(it, "spec.template.spec", "name"),
        "cron-containers" => |it, _| containers(it, "spec.jobTemplate.spec.template.spec", "name"),
        "cron-images" => |it, _| containers(it, "spec.jobTemplate.spec.template.spec", "image"),
        "images" => |it, _| containers(it, "spec.template.spec", "image"),
        "job-completions" => completions,
        "job-duration" => job_duration,
        "job-status" => job_status,
        "last-schedule" => last_schedule,
        "node-selector" => |it, _| or(pairs(at(it, "spec.template.spec.nodeSelector")), NONE),
        "none" => |_, _| NONE.into(),
        "replicas-ready" => replicas_ready,
        "scaled" => scaled,
        "selector" => own_selector,
        "suspended" => |it, _| if it["spec"]["suspend"] == true { "True" } else { "False" }.into(),
        "targets" => targets,
        "template-containers" => |it, _| containers(it, "template.spec", "name"),
        "template-images" => |it, _| containers(it, "template.spec", "image"),
        "template-labels" => |it, _| or(pairs(at(it, "template.metadata.labels")), NONE),
        _ => return None,
    })
}

fn containers(it: &Value, spec: &str, field: &str) -> Value {
    let all = items(&at(it, spec)["containers"]).map(|it| text(&it[field]));
    all.collect::<Vec<_>>().join(",").into()
}

/// Selectors of older kinds are plain maps.
fn own_selector(it: &Value, _: Timestamp) -> Value {
    let own = &it["spec"]["selector"];
    let structured =
        own.get("matchLabels").is_some_and(Value::is_object) || own.get("matchExpressions").is_some();
    or(if structured { selector(own) } else { pairs(own) }, NONE)
}

fn replicas_ready(it: &Value, _: Timestamp) -> Value {
    let number = |it: &Value| it.as_i64().unwrap_or(0);
    format!("{}/{}", number(&it["status"]["readyReplicas"]), number(&it["spec"]["replicas"])).into()
}

fn completions(it: &Value, _: Timestamp) -> Value {
    let succeeded = it["status"]["succeeded"].as_i64().unwrap_or(0);
    match (it["spec"]["completions"].as_i64(), it["spec"]["parallelism"].as_i64().unwrap_or(0)) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, many @ 2..) => format!("{succeeded}/1 of {many}"),
        (None, _) => format!("{succeeded}/1"),
    }
    .into()
}

fn job_duration(it: &Value, now: Timestamp) -> Value {
    let moment = |field: &str| it["status"][field].as_str().and_then(|it| it.parse::<Timestamp>().ok());
    let Some(start) = moment("startTime") else { return "".into() };
    duration::between(start, moment("completionTime").unwrap_or(now)).into()
}

fn job_status(it: &Value, _: Timestamp) -> Value {
    let has = |kind: &str| {
        items(&it["status"]["conditions"]).any(|it| it["type"] == kind && it["status"] == "True")
    };
    let ends = !it["metadata"]["deletionTimestamp"].is_null();
    let states = [
        ("Complete", has("Complete")),
        ("Failed", has("Failed")),
        ("Terminating", ends),
        ("Suspended", has("Suspended")),
        ("FailureTarget", has("FailureTarget")),
        ("SuccessCriteriaMet", has("SuccessCriteriaMet")),
    ];
    states.into_iter().find(|(_, is)| *is).map_or("Running", |(state, _)| state).into()
}

fn last_schedule(it: &Value, now: Timestamp) -> Value {
    let last = &it["status"]["lastScheduleTime"];
    if last.is_null() { NONE.into() } else { duration::since(last, now).into() }
}

fn scaled(it: &Value, _: Timestamp) -> Value {
    let target = &it["spec"]["scaleTargetRef"];
    format!("{}/{}", text(&target["kind"]), text(&target["name"])).into()
}

/// Formats current and target metrics; `autoscaling/v1` supports only CPU.
fn targets(it: &Value, _: Timestamp) -> Value {
    if it["apiVersion"] == "autoscaling/v1" {
        let percent =
            |it: &Value, otherwise: &str| it.as_i64().map_or(otherwise.to_owned(), |it| format!("{it}%"));
        let now = percent(&it["status"]["currentCPUUtilizationPercentage"], UNKNOWN);
        return format!("cpu: {now}/{}", percent(&it["spec"]["targetCPUUtilizationPercentage"], "80%"))
            .into();
    }
    let all: Vec<_> = items(&it["spec"]["metrics"])
        .enumerate()
        .map(|(index, wanted)| metric(wanted, &it["status"]["currentMetrics"][index]))
        .collect();
    let shown = all.iter().take(METRICS_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(METRICS_SHOWN) {
        _ if all.is_empty() => NONE.into(),
        0 => shown.into(),
        more => format!("{shown} + {more} more...").into(),
    }
}

fn metric(wanted: &Value, measured: &Value) -> String {
    let field = match text(&wanted["type"]) {
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (&wanted[field]["target"], &measured[field]["current"]);
    let amount = |it: &Value| it.as_str().unwrap_or(UNKNOWN).to_owned();
    let percent =
        |it: &Value, otherwise: &str| it.as_i64().map_or(otherwise.to_owned(), |it| format!("{it}%"));
    let average = !target["averageValue"].is_null();
    match field {
        "external" | "object" if average => {
            format!("{}/{} (avg)", amount(&current["averageValue"]), amount(&target["averageValue"]))
        }
        "external" | "object" => format!("{}/{}", amount(&current["value"]), amount(&target["value"])),
        "pods" => format!("{}/{}", amount(&current["averageValue"]), amount(&target["averageValue"])),
        _ if average => {
            let name = text(&wanted[field]["name"]);
            format!("{name}: {}/{}", amount(&current["averageValue"]), amount(&target["averageValue"]))
        }
        _ => {
            let name = text(&wanted[field]["name"]);
            let now = percent(&current["averageUtilization"], UNKNOWN);
            format!("{name}: {now}/{}", percent(&target["averageUtilization"], "<auto>"))
        }
    }
}
