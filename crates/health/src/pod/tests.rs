//! Pods in the states that a cluster reports, and the expected health of each.

use crate::test_fixtures::check as check_kind;

fn check(spec: &str, status: &str, expect: &str) {
    check_kind("Pod", &format!(r#"{{"spec": {{{spec}}}, "status": {{{status}}}}}"#), expect);
}

fn waiting(reason: &str, message: &str) -> String {
    format!(
        r#"{{"name": "app", "ready": false, "state": {{"waiting": {{"reason": "{reason}", "message": "{message}"}}}}}}"#
    )
}

const ONCE: &str = r#""restartPolicy": "Never""#;

#[test]
fn phases() {
    check("", "", "Progressing: it is not scheduled yet");
    check("", r#""phase": "Succeeded""#, "Healthy");
    check("", r#""phase": "Unknown""#, "Unknown: its node does not report");
    check("", r#""phase": "Odd""#, r#"Unknown: its phase "Odd" is not known"#);
    check("", r#""phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]"#, "Healthy");
    check("", r#""phase": "Running""#, "Progressing: it is not ready");
    let gate = r#""phase": "Running", "conditions": [{"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": "m"}]"#;
    check("", gate, "Progressing: it is not ready: ReadinessGatesNotReady: m");
    // A Pod that runs to completion is ready long before it is done.
    check(
        ONCE,
        r#""phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]"#,
        "Progressing: it has not completed yet",
    );
    check(ONCE, r#""phase": "Succeeded""#, "Healthy");
}

#[test]
fn a_generation_is_none_of_a_pod_s_matters() {
    let json = r#"{"metadata": {"generation": 2}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}"#;
    check_kind("Pod", json, "Healthy");
}

#[test]
fn failures() {
    check("", r#""phase": "Failed""#, "Degraded: it failed");
    let evicted = r#""phase": "Failed", "reason": "Evicted", "message": "The node was low on memory.""#;
    check("", evicted, "Degraded: it failed: Evicted: The node was low on memory");
    let ended = |reason: &str| {
        format!(
            r#""phase": "Failed", "containerStatuses": [
                {{"name": "proxy", "state": {{"terminated": {{"exitCode": 0}}}}}},
                {{"name": "app", "state": {{"terminated": {{"exitCode": 137, "reason": "{reason}", "message": "password is hunter2"}}}}}}]"#
        )
    };
    check(ONCE, &ended("OOMKilled"), "Degraded: the container app ended with OOMKilled, exit code 137");
    check(ONCE, &ended("Error"), "Degraded: the container app ended with exit code 137");
}

#[test]
fn scheduling() {
    let scheduled = |reason: &str| {
        format!(
            r#""phase": "Pending", "conditions": [{{"type": "PodScheduled", "status": "False", "reason": "{reason}", "message": "0/3 nodes are available."}}]"#
        )
    };
    check(
        "",
        &scheduled("Unschedulable"),
        "Progressing: it cannot be scheduled: Unschedulable: 0/3 nodes are available",
    );
    check("", &scheduled("SchedulingGated"), "Progressing: it is blocked by scheduling gates");
}

#[test]
fn waiting_containers() {
    let check = |reason: &str, message: &str, expect: &str| {
        check(
            "",
            &format!(r#""phase": "Pending", "containerStatuses": [{}]"#, waiting(reason, message)),
            expect,
        );
    };
    check("ContainerCreating", "", "Progressing: the container app is being created");
    check("PodInitializing", "", "Progressing: the container app is being created");
    check("ImagePullBackOff", "", "Degraded: the container app waits: ImagePullBackOff");
    check("ErrImagePull", "no such image", "Degraded: the container app waits: ErrImagePull (no such image)");
    for reason in [
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "ErrImageNeverPull",
    ] {
        check(reason, "", &format!("Degraded: the container app waits: {reason}"));
    }
}

#[test]
fn containers_that_do_not_stay_up() {
    let status = |state: &str, restarts: u32, ready: bool| {
        format!(
            r#""phase": "Running", "conditions": [{{"type": "Ready", "status": "{}"}}], "containerStatuses": [
                {{"name": "app", "ready": {ready}, "restartCount": {restarts}, "state": {{{state}}},
                    "lastState": {{"terminated": {{"exitCode": 1, "reason": "Error", "message": "token=abc"}}}}}}]"#,
            if ready { "True" } else { "False" }
        )
    };
    let (waits, runs) = (r#""waiting": {"reason": "CrashLoopBackOff"}"#, r#""running": {}"#);
    let expect = "Degraded: the container app waits: CrashLoopBackOff (its last run ended with exit code 1)";
    check("", &status(waits, 1, false), expect);
    let between = "Degraded: the container app keeps restarting (its last run ended with exit code 1)";
    check("", &status(runs, 3, false), between);
    check("", &status(runs, 1, false), "Progressing: the container app is not ready");
    check("", &status(runs, 9, true), "Healthy");
    check(
        "",
        &status(r#""terminated": {"exitCode": 1}"#, 1, false),
        "Progressing: the container app is not ready",
    );
}

#[test]
fn init_containers_and_sidecars() {
    let spec = r#""initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "load"}, {"name": "move"}]"#;
    let status = |proxy: &str, load: &str, app: &str| {
        format!(
            r#""phase": "Pending", "initContainerStatuses": [
                {{"name": "proxy", {proxy}}}, {{"name": "load", {load}}}, {{"name": "move", "ready": false, "state": {{"waiting": {{"reason": "PodInitializing"}}}}}}],
                "containerStatuses": [{app}]"#
        )
    };
    let (up, down) = (
        r#""ready": true, "started": true, "state": {"running": {}}"#,
        r#""ready": false, "state": {"running": {}}"#,
    );
    let done = r#""ready": true, "state": {"terminated": {"exitCode": 0}}"#;
    let waits = waiting("PodInitializing", "");
    check(
        spec,
        &status(up, down, &waits),
        "Progressing: the init container load has not finished (0 of 2 have)",
    );
    check(
        spec,
        &status(up, done, &waits),
        "Progressing: the init container move has not finished (1 of 2 have)",
    );
    let crash = r#""ready": false, "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}"#;
    check(
        spec,
        &status(crash, down, &waits),
        "Degraded: the container proxy waits: CrashLoopBackOff (it ended)",
    );
    let ready = r#"{"name": "app", "ready": true, "state": {"running": {}}}"#;
    let only = r#""initContainers": [{"name": "proxy", "restartPolicy": "Always"}]"#;
    let late = format!(
        r#""phase": "Running", "conditions": [{{"type": "Ready", "status": "False"}}],
            "initContainerStatuses": [{{"name": "proxy", {down}}}], "containerStatuses": [{ready}]"#
    );
    check(only, &late, "Progressing: the container proxy is not ready");
}
