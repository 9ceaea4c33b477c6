//! Deadlines of objects in progress: Progressing becomes Degraded after a time.
//!
//! In: the health by a rule, the [`Progress`] recorded so far, and the time.
//! Out: the next [`Progress`], which is the only state between two reads, and the health to show.
//! Each new sentence counts as progress and restarts the deadline. An object that alternates
//! between sentences is stopped by the total time, which is a few deadlines long.

use serde_json::{Map, Value};

use super::{Context, Health, Reports, always_reports, builtin_rule, generic};
use crate::message::format_duration;
use crate::object_view::ObjectView;
use crate::third_party;
use moorline_core::object::GroupKind;

/// For kinds without a rule: databases and clusters take their time in a cloud.
const GENERIC_DEADLINE: i64 = 30 * 60_000;
/// Total progressing time, in deadlines, however often the sentence changes.
const DEADLINES_IN_ALL: i64 = 6;
/// For objects without a status, of a kind that was never seen to report: many definitions have a
/// status by habit.
const MISSING_STATUS_TIMEOUT: i64 = 60_000;
/// Extra time for controllers with their own deadline, so that their report comes first.
const GRACE: i64 = 60_000;
/// Upper limit in seconds of a deadline that is read from a spec: a week.
const LONGEST: u64 = 7 * 24 * 3600;

/// Times at which an object started to progress and last changed, in milliseconds on any one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    began: i64,
    moved: i64,
    why: Box<str>,
}

impl Progress {
    /// Returns the state to keep after a read: `None` unless the object is progressing.
    #[must_use]
    pub fn update(before: Option<Self>, found: &Health, now: i64) -> Option<Self> {
        let Health::Progressing { why } = found else { return None };
        Some(match before {
            Some(before) if *before.why == **why => before,
            Some(before) => Self { began: before.began, moved: now, why: why.as_str().into() },
            None => Self { began: now, moved: now, why: why.as_str().into() },
        })
    }

    /// Time at which the deadline ends if nothing changes, and the health has to be judged again.
    pub fn deadline_at(&self, deadline: i64) -> i64 {
        let all = self.began.saturating_add(deadline.saturating_mul(DEADLINES_IN_ALL));
        self.moved.saturating_add(deadline).min(all)
    }
}

/// Deadline for progress of an object, in milliseconds. A timeout of the Sync overrides it.
pub fn deadline_for(kind: &GroupKind, body: &Map<String, Value>) -> i64 {
    let known = || third_party::deadline(kind).unwrap_or(GENERIC_DEADLINE);
    let default = builtin_rule(kind).map_or_else(known, |family| family.deadline);
    let live = ObjectView::new(body);
    let own = match (&*kind.group, &*kind.kind) {
        // The Deployment controller judges with more information: it sees each new Pod.
        ("apps", "Deployment") => live.number(&["spec", "progressDeadlineSeconds"]),
        ("batch", "Job") => live.number(&["spec", "activeDeadlineSeconds"]),
        // Pods that run to completion get as much time as Jobs.
        ("", "Pod") if live.text(&["spec", "restartPolicy"]).is_some_and(|policy| policy != "Always") => {
            Some(live.number(&["spec", "activeDeadlineSeconds"]).unwrap_or(3600))
        }
        _ => None,
    };
    // The controller enforces deadlines that are shorter than ours.
    let own = own.map(|seconds| i64::try_from(seconds.min(LONGEST)).unwrap_or_default() * 1000 + GRACE);
    own.unwrap_or_default().max(default)
}

/// Deadline of an object: the timeout of the Sync overrides that of the kind.
pub(super) fn progress_timeout(
    kind: &GroupKind,
    body: &Map<String, Value>,
    context: &Context,
    timeout: Option<i64>,
) -> i64 {
    match may_never_report(kind, body, context) {
        true => MISSING_STATUS_TIMEOUT,
        false => timeout.unwrap_or_else(|| deadline_for(kind, body)),
    }
}

/// True if the object has had its time to report something, and its kind may never report. `now` is
/// in milliseconds since 1970.
pub(super) fn has_stayed_without_report(
    kind: &GroupKind,
    body: &Map<String, Value>,
    context: &Context,
    now: i64,
) -> bool {
    let made =
        || ObjectView::new(body).text(&["metadata", "creationTimestamp"])?.parse::<jiff::Timestamp>().ok();
    may_never_report(kind, body, context)
        && made().is_some_and(|made| now.saturating_sub(made.as_millisecond()) >= MISSING_STATUS_TIMEOUT)
}

fn may_never_report(kind: &GroupKind, body: &Map<String, Value>, context: &Context) -> bool {
    context.reports == Reports::Perhaps
        && generic::has_no_report(ObjectView::new(body))
        && !always_reports(kind)
}

/// Returns the health to show: `found`, unless the object has been progressing for too long.
#[must_use]
pub fn apply_deadline(
    kind: &GroupKind,
    body: &Map<String, Value>,
    context: &Context,
    found: Health,
    progress: Option<&Progress>,
    now: i64,
    deadline: i64,
) -> Health {
    let (Health::Progressing { why }, Some(progress)) = (&found, progress) else { return found };
    if now < progress.deadline_at(deadline) {
        return found;
    }
    if may_never_report(kind, body, context) {
        return Health::Healthy;
    }
    let still = now.saturating_sub(progress.moved) >= deadline;
    let for_long = if still { deadline } else { deadline.saturating_mul(DEADLINES_IN_ALL) };
    Health::degraded(format!("{why}, for more than {}", format_duration(for_long)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::{body, format_health, kind};

    const MINUTE: i64 = 60_000;

    /// Health that is shown after reads at these minutes with these sentences; no sentence means
    /// healthy.
    fn shown(of: &str, looks: &[(i64, Option<&str>)], context: &Context) -> String {
        let (kind, body) = (kind(of), Map::new());
        let (mut progress, mut shown) = (None, Health::Healthy);
        for (minute, why) in looks {
            let found = why.map_or(Health::Healthy, Health::progressing);
            progress = Progress::update(progress, &found, minute * MINUTE);
            shown =
                apply_deadline(&kind, &body, context, found, progress.as_ref(), minute * MINUTE, 10 * MINUTE);
        }
        format_health(&shown)
    }

    #[test]
    fn what_stands_still_is_degraded() {
        let check = |looks: &[(i64, Option<&str>)], expect: &str| {
            assert_eq!(shown("Widget.example.com", looks, &Context::default()), expect, "{looks:?}");
        };
        let (a, b) = (Some("1 of 2"), Some("0 of 2"));
        check(&[(0, a)], "Progressing: 1 of 2");
        check(&[(0, a), (9, a)], "Progressing: 1 of 2");
        check(&[(0, a), (10, a)], "Degraded: 1 of 2, for more than 10 minutes");
        check(&[(0, a), (10, a), (11, a)], "Degraded: 1 of 2, for more than 10 minutes");
        check(&[(0, a), (9, b), (10, b)], "Progressing: 0 of 2");
        check(&[(0, a), (10, None), (11, a)], "Progressing: 1 of 2");
        check(&[(0, a), (100, None)], "Healthy");
    }

    #[test]
    fn what_goes_to_and_fro_is_degraded_too() {
        let looks = |minutes: i64| -> Vec<_> {
            (0..=minutes)
                .map(|minute| (minute, Some(if minute % 2 == 0 { "1 of 2" } else { "0 of 2" })))
                .collect()
        };
        assert_eq!(shown("Pod", &looks(59), &Context::default()), "Progressing: 0 of 2");
        assert_eq!(shown("Pod", &looks(60), &Context::default()), "Degraded: 1 of 2, for more than 1 hour");
    }

    #[test]
    fn silence_of_a_kind_that_may_never_speak_is_no_failure() {
        let context = |reports| Context { reports, binding: None };
        let looks = [(0, Some("nothing was reported")), (10, Some("nothing was reported"))];
        assert_eq!(shown("Widget.example.com", &looks, &context(Reports::Perhaps)), "Healthy");
        assert!(shown("Widget.example.com", &looks, &context(Reports::Yes)).starts_with("Degraded: "));
        assert!(shown("Deployment.apps", &looks, &context(Reports::Perhaps)).starts_with("Degraded: "));
    }

    #[test]
    fn it_is_waited_for_no_longer_than_a_minute() {
        let (kind, perhaps) =
            (kind("Widget.example.com"), Context { reports: Reports::Perhaps, binding: None });
        let made = body(r#"{"metadata": {"creationTimestamp": "1970-01-01T00:10:00Z"}}"#);
        assert_eq!(progress_timeout(&kind, &made, &perhaps, Some(10 * MINUTE)), MINUTE);
        assert!(!has_stayed_without_report(&kind, &made, &perhaps, 11 * MINUTE - 1));
        assert!(has_stayed_without_report(&kind, &made, &perhaps, 11 * MINUTE));
        let says = body(
            r#"{"metadata": {"creationTimestamp": "1970-01-01T00:10:00Z"}, "status": {"phase": "New"}}"#,
        );
        assert!(!has_stayed_without_report(&kind, &says, &perhaps, 60 * MINUTE));
        assert_eq!(progress_timeout(&kind, &says, &perhaps, Some(10 * MINUTE)), 10 * MINUTE);
        let yes = Context { reports: Reports::Yes, binding: None };
        assert!(!has_stayed_without_report(&kind, &made, &yes, 60 * MINUTE));
        assert_eq!(progress_timeout(&kind, &made, &yes, None), 30 * MINUTE);
    }

    #[test]
    fn a_deadline_is_the_longer_of_two() {
        let check = |of: &str, json: &str, minutes| {
            assert_eq!(deadline_for(&kind(of), &body(json)), minutes * MINUTE, "{of} {json}");
        };
        check("Deployment.apps", r#"{"spec": {"progressDeadlineSeconds": 600}}"#, 11);
        check("Deployment.apps", r#"{"spec": {"progressDeadlineSeconds": 30}}"#, 10);
        check(
            "Deployment.apps",
            r#"{"spec": {"progressDeadlineSeconds": 18446744073709551615}}"#,
            7 * 24 * 60 + 1,
        );
        check("StatefulSet.apps", "{}", 10);
        check("Job.batch", r#"{"spec": {"activeDeadlineSeconds": 7200}}"#, 121);
        check("Pod", r#"{"spec": {"restartPolicy": "Never"}}"#, 61);
        check("Pod", r#"{"spec": {"restartPolicy": "Always"}}"#, 10);
        check("Widget.example.com", "{}", 30);
    }

    #[test]
    fn the_shell_knows_when_to_judge_again() {
        let found = Health::progressing("a");
        let progress = Progress::update(None, &found, 1000).unwrap();
        assert_eq!(progress.deadline_at(5000), 6000);
        let late = Progress::update(Some(progress), &Health::progressing("b"), 29_000).unwrap();
        assert_eq!(late.deadline_at(5000), 31_000);
        assert_eq!(late.deadline_at(i64::MAX), i64::MAX);
    }
}
