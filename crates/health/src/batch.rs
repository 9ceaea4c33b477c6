//! Workloads that run to completion: Job and CronJob.
//!
//! In: a live object.
//! Out: its health. The Job controller writes no `observedGeneration`: the template of a Job is
//! immutable, and `suspend` is read from the spec.

use super::{Context, Health};
use crate::message::{count_of_are, quote};
use crate::object_view::ObjectView;

pub(super) fn job(live: ObjectView<'_>, _: &Context) -> Health {
    // A finished Job stays finished, also if the spec says `suspend` now.
    if let Some(failed) = live.true_condition("Failed").or_else(|| live.true_condition("FailureTarget")) {
        return Health::degraded(format!("it failed: {}", failed.reason_and_message()));
    }
    if live.true_condition("Complete").is_some() {
        return Health::Healthy;
    }
    // The condition Suspended with status False only means that the Job was resumed.
    if live.is_true(&["spec", "suspend"]) {
        return Health::Suspended;
    }
    let count = |field| live.count(&["status", field]);
    let (succeeded, failed) = (count("succeeded"), count("failed"));
    let wanted = live.number(&["spec", "completions"]).unwrap_or(1).max(1);
    let done = format!("{} complete", count_of_are(succeeded, wanted, "Pod"));
    Health::progressing(match failed {
        0 => done,
        _ => format!("{done}, and {failed} failed"),
    })
}

/// A CronJob whose latest run ended without success is Progressing at first: the controller records
/// the end of a run before its success. After the deadline the missing success is a failure.
pub(super) fn cron_job(live: ObjectView<'_>, _: &Context) -> Health {
    if live.is_true(&["spec", "suspend"]) {
        return Health::Suspended;
    }
    let active = live.items(&["status", "active"]).len();
    // Without a history of Jobs the controller may never see that a run succeeded.
    let keeps_none = live.number(&["spec", "successfulJobsHistoryLimit"]) == Some(0);
    let Some(started) = live.text(&["status", "lastScheduleTime"]).filter(|_| active == 0 && !keeps_none)
    else {
        return Health::Healthy;
    };
    // RFC 3339 times in UTC, as Kubernetes writes them, sort as text.
    match live.text(&["status", "lastSuccessfulTime"]) {
        Some(succeeded) if succeeded >= started => Health::Healthy,
        _ => Health::progressing(format!("its run of {} has not succeeded", quote(started))),
    }
}

#[cfg(test)]
mod tests {
    use crate::test_fixtures::check;

    #[test]
    fn a_job() {
        let check = |spec: &str, status: &str, expect: &str| {
            check("Job.batch", &format!(r#"{{"spec": {{{spec}}}, "status": {{{status}}}}}"#), expect);
        };
        let condition = |kind: &str, status: &str| {
            format!(
                r#""conditions": [{{"type": "{kind}", "status": "{status}", "reason": "R", "message": "m"}}]"#
            )
        };
        check("", "", "Progressing: 0 of 1 Pod is complete");
        check(
            r#""completions": 3"#,
            r#""active": 1, "succeeded": 1"#,
            "Progressing: 1 of 3 Pods is complete",
        );
        check("", r#""failed": 2"#, "Progressing: 0 of 1 Pod is complete, and 2 failed");
        check("", &condition("Complete", "True"), "Healthy");
        check("", &condition("SuccessCriteriaMet", "True"), "Progressing: 0 of 1 Pod is complete");
        check("", &condition("Failed", "True"), "Degraded: it failed: R: m");
        check("", &condition("FailureTarget", "True"), "Degraded: it failed: R: m");
        check("", &condition("Failed", "False"), "Progressing: 0 of 1 Pod is complete");
        check(r#""suspend": true"#, &condition("Suspended", "True"), "Suspended");
        check(r#""suspend": true"#, "", "Suspended");
        check(r#""suspend": true"#, &condition("Complete", "True"), "Healthy");
        check(r#""suspend": true"#, &condition("Failed", "True"), "Degraded: it failed: R: m");
        // Resumed, and not complete yet.
        check(r#""suspend": false"#, &condition("Suspended", "False"), "Progressing: 0 of 1 Pod is complete");
    }

    #[test]
    fn a_job_has_no_generation_to_wait_for() {
        let done = r#"{"metadata": {"generation": 2}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}"#;
        check("Job.batch", done, "Healthy");
    }

    #[test]
    fn a_cron_job() {
        let check = |spec: &str, status: &str, expect: &str| {
            check("CronJob.batch", &format!(r#"{{"spec": {{{spec}}}, "status": {{{status}}}}}"#), expect);
        };
        let (ten, eleven) = (r#""2026-01-01T10:00:00Z""#, r#""2026-01-01T11:00:00Z""#);
        check("", "", "Healthy");
        check(r#""suspend": true"#, "", "Suspended");
        check("", &format!(r#""active": [{{}}], "lastScheduleTime": {ten}"#), "Healthy");
        check("", &format!(r#""lastScheduleTime": {ten}, "lastSuccessfulTime": {eleven}"#), "Healthy");
        let failed = format!(r#""lastScheduleTime": {eleven}, "lastSuccessfulTime": {ten}"#);
        check("", &failed, "Progressing: its run of 2026-01-01T11:00:00Z has not succeeded");
        check(
            "",
            &format!(r#""lastScheduleTime": {ten}"#),
            "Progressing: its run of 2026-01-01T10:00:00Z has not succeeded",
        );
        check(r#""successfulJobsHistoryLimit": 0"#, &failed, "Healthy");
    }
}
