//! Change windows: times at which Syncs may take up new revisions.
//!
//! In: the windows of a cluster, a Sync, and the time.
//! Out: [`WindowState`]: open, or closed, with the window and the time of the next opening. Deny
//! wins. If no Allow selects the Sync, it is open. A window that cannot be read is closed. The
//! windows of the cluster and those of the namespace are judged apart, and both have to be open.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod compiled;
mod cron;
#[cfg(test)]
mod decade_tests;
mod schedule;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use compiled::CompiledWindow;
use moorline_api::WindowEffect;
use schedule::Activity;

/// Maximum number of edges in the search for the next opening.
const MAX_EDGES: usize = 400;

/// Maximum number of steps of that search: windows that are joined, and states that are computed.
const MAX_STEPS: usize = 4000;

/// A Sync, as windows select it.
#[derive(Debug, Clone, Copy)]
pub struct WindowSubject<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// The labels of its namespace; none where they are unknown.
    pub namespace_labels: Option<&'a BTreeMap<String, String>>,
}

/// State of the windows for a Sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowState {
    /// New revisions are taken up.
    Open,
    /// New revisions are held.
    Closed(ClosedWindow),
}

/// The reason why new revisions are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedWindow {
    /// The window, such as `ChangeWindow nightly`.
    pub by: String,
    /// The time at which all windows are open, as the zone of that window shows it; none where no
    /// such time is known.
    pub until: Option<String>,
    /// The problem or the reason of the window, as the end of a sentence.
    pub why: String,
}

impl std::fmt::Display for ClosedWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "held ")?;
        self.until.iter().try_for_each(|until| write!(f, "until {until} "))?;
        write!(f, "by {}{}", self.by, self.why)
    }
}

/// Returns true if the answer for this Sync depends on the labels of its namespace.
pub fn needs_namespace_labels<'a>(
    windows: impl IntoIterator<Item = &'a CompiledWindow>,
    sync: &WindowSubject<'_>,
) -> bool {
    windows.into_iter().any(|window| window.selects(sync).is_none())
}

/// Returns the state of the windows for a Sync at a time.
pub fn state_at<'a>(
    windows: impl IntoIterator<Item = &'a CompiledWindow>,
    sync: &WindowSubject<'_>,
    now: Timestamp,
) -> WindowState {
    let (mut chosen, mut unknown) = (Vec::new(), None);
    for window in windows {
        match window.selects(sync) {
            Some(true) => chosen.push(window),
            Some(false) => {}
            None => unknown = unknown.or(Some(window)),
        }
    }
    if let Some(window) = unknown {
        let why = ", which may select this namespace: its labels cannot be read".to_owned();
        return WindowState::Closed(ClosedWindow { by: window.title(), until: None, why });
    }
    let (mut at, mut steps) = (now.as_second(), MAX_STEPS);
    let timed = |window| TimedWindow { window, activity: window.activity(at, &mut steps) };
    let mut timed: Vec<TimedWindow<'_>> = chosen.into_iter().map(timed).collect();
    let Err(by) = judge(&timed) else { return WindowState::Open };
    let closed = |until: Option<i64>| {
        let until = until.and_then(|until| Timestamp::from_second(until).ok());
        let until = until.map(|until| by.display_time(until));
        let why = match by.problem() {
            Some(problem) => format!(", which cannot be read: {problem}"),
            None => by.why(),
        };
        WindowState::Closed(ClosedWindow { by: by.title(), until, why })
    };
    for _ in 0..MAX_EDGES {
        let Some(next) = timed.iter().filter_map(|it| it.activity.until).min() else { break };
        at = next;
        // The others stay as they are until their own edges.
        for it in timed.iter_mut().filter(|it| it.activity.until.is_some_and(|until| until <= at)) {
            steps = steps.saturating_sub(1);
            it.activity = it.window.activity(at, &mut steps);
        }
        if judge(&timed).is_ok() {
            return closed(Some(at));
        }
        if steps == 0 {
            break;
        }
    }
    closed(None)
}

/// A window with its state at one time.
struct TimedWindow<'a> {
    window: &'a CompiledWindow,
    activity: Activity,
}

/// Returns the window that closes; `Ok` if none does.
fn judge<'a>(chosen: &[TimedWindow<'a>]) -> Result<(), &'a CompiledWindow> {
    if let Some(unreadable) = chosen.iter().find(|it| it.window.problem().is_some()) {
        return Err(unreadable.window);
    }
    let of = |effect: WindowEffect| chosen.iter().filter(move |it| it.window.effect() == effect);
    if let Some(denying) = of(WindowEffect::Deny).find(|it| it.activity.is_active) {
        return Err(denying.window);
    }
    for is_namespaced in [false, true] {
        let mut nearest: Option<(i64, &CompiledWindow)> = None;
        let mut is_open = false;
        let mut allowing = of(WindowEffect::Allow);
        while let Some(TimedWindow { window, activity }) =
            allowing.find(|it| it.window.namespace().is_some() == is_namespaced)
        {
            let Activity { is_active, until } = *activity;
            is_open |= is_active;
            let until = until.unwrap_or(i64::MAX);
            if nearest.is_none_or(|(known, _)| until < known) {
                nearest = Some((until, window));
            }
        }
        if let Some((_, nearest)) = nearest.filter(|_| !is_open) {
            return Err(nearest);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn window(namespace: Option<&str>, name: &str, spec: Value) -> CompiledWindow {
        CompiledWindow::compile(namespace, name, serde_json::from_value(spec).unwrap())
    }

    fn state(windows: &[CompiledWindow], now: &str) -> String {
        let labels = BTreeMap::from([("tier".to_owned(), "prod".to_owned())]);
        let places = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        let sync = WindowSubject {
            namespace: "shop",
            name: "web",
            labels: &labels,
            namespace_labels: Some(&places),
        };
        match state_at(windows, &sync, now.parse().unwrap()) {
            WindowState::Open => "open".to_owned(),
            WindowState::Closed(closed) => closed.to_string(),
        }
    }

    fn rule(spec: Value) -> CompiledWindow {
        window(None, "rule", spec)
    }

    fn own(spec: Value) -> CompiledWindow {
        window(Some("shop"), "own", spec)
    }

    fn allow(schedule: &str, duration: &str) -> Value {
        json!({"effect": "Allow", "schedule": schedule, "duration": duration})
    }

    fn deny(schedule: &str, duration: &str) -> Value {
        json!({"effect": "Deny", "schedule": schedule, "duration": duration, "reason": "lunch"})
    }

    fn freeze(selector: &str, value: Value) -> Value {
        json!({"effect": "Deny", selector: value})
    }

    fn nightly() -> CompiledWindow {
        let mut spec = allow("0 22 * * *", "8h");
        spec["timeZone"] = json!("Europe/Berlin");
        window(None, "nightly", spec)
    }

    const AT_NIGHT: &str = "held until 2026-11-27 22:00 Europe/Berlin by ChangeWindow nightly";

    fn check(cases: Vec<(&str, Vec<CompiledWindow>, &str, &str)>) {
        for (what, windows, time, expect) in cases {
            assert_eq!(state(&windows, &format!("2026-11-{time}Z")), expect, "{what}");
        }
    }

    #[test]
    fn deny_wins_and_no_allow_is_open() {
        let minute = || rule(allow("0 0 * * *", "1m"));
        let until_one = "held until 2026-11-27 13:00 UTC by ChangeWindow rule: lunch";
        let until_midnight = "held until 2026-11-28 00:00 Europe/Berlin by ChangeWindow rule: lunch";
        let evening = || {
            let mut spec = deny("0 21 27 11 *", "3h");
            spec["timeZone"] = json!("Europe/Berlin");
            rule(spec)
        };
        check(vec![
            ("no window", vec![], "27T12:30", "open"),
            ("a Deny that is over", vec![rule(deny("0 12 * * *", "1h"))], "27T13:00", "open"),
            ("a Deny", vec![rule(deny("0 12 * * *", "1h"))], "27T12:59:59", until_one),
            ("an Allow that is on", vec![nightly()], "27T21:00", "open"),
            ("its last second", vec![nightly()], "28T04:59:59", "open"),
            ("an Allow that is over", vec![nightly()], "27T20:59", AT_NIGHT),
            ("the nearest of two", vec![minute(), nightly()], "27T20:59", AT_NIGHT),
            ("a Deny over the start of an Allow", vec![nightly(), evening()], "27T20:59", until_midnight),
            ("an Allow of one minute", vec![minute()], "28T00:00:59", "open"),
            (
                "a Deny without a gap",
                vec![rule(deny("0 0 * * *", "25h"))],
                "27T22:00",
                "held by ChangeWindow rule: lunch",
            ),
        ]);
    }

    #[test]
    fn what_cannot_be_read_is_closed_and_a_namespace_only_narrows() {
        let by_rule = "held by ChangeWindow rule";
        let dev = freeze("syncSelector", json!({"matchLabels": {"tier": "dev"}}));
        let here = freeze("namespaceSelector", json!({"matchLabels": {"team": "a"}}));
        let all = || freeze("syncSelector", json!({}));
        let mut mars = allow("* * * * *", "8h");
        mars["timeZone"] = json!("Mars/Base");
        let no_zone = "held by ChangeWindow rule, which cannot be read: there is no time zone \"Mars/Base\"";
        let no_day = "held by ChangeWindow rule, which cannot be read: the day of month \"L\" cannot be read";
        let newer = CompiledWindow::unreadable(Some("shop"), "own", "effect");
        let no_spec = "held by NamespaceChangeWindow own, which cannot be read: effect";
        let own_hour = "held until 2026-11-27 23:00 UTC by NamespaceChangeWindow own";
        check(vec![
            ("a freeze", vec![nightly(), rule(all())], "27T22:00", by_rule),
            ("a freeze of other Syncs", vec![rule(dev)], "27T22:00", "open"),
            ("a freeze of this namespace", vec![rule(here)], "27T22:00", by_rule),
            ("an unknown zone", vec![rule(mars)], "27T22:00", no_zone),
            (
                "an unknown day beside an Allow",
                vec![nightly(), rule(allow("* * L * *", "8h"))],
                "27T22:00",
                no_day,
            ),
            ("a window of a newer version", vec![newer], "27T22:00", no_spec),
            ("another namespace's", vec![window(Some("other"), "own", all())], "27T22:00", "open"),
            ("a namespace's freeze", vec![own(all())], "27T22:00", "held by NamespaceChangeWindow own"),
            ("its Allow opens nothing", vec![nightly(), own(allow("* * * * *", "1h"))], "27T20:59", AT_NIGHT),
            ("its Allow narrows", vec![nightly(), own(allow("0 23 * * *", "1h"))], "27T22:00", own_hour),
            (
                "two that never meet",
                vec![rule(allow("0 1 * * *", "1h")), own(allow("0 3 * * *", "1h"))],
                "27T22:00",
                by_rule,
            ),
        ]);
    }

    #[test]
    fn an_object_that_is_not_understood_is_a_closed_window() {
        let problem = |spec: Value| {
            let window = CompiledWindow::read(&json!({"metadata": {"name": "a"}, "spec": spec}));
            window.problem().map(str::to_owned)
        };
        assert_eq!(problem(json!({"effect": "Deny"})), None);
        let known = json!({
            "effect": "Allow", "schedule": "* * * * *", "duration": "1h", "timeZone": "UTC",
            "namespaceSelector": {}, "syncSelector": {"names": ["a"]}, "reason": "b",
        });
        assert_eq!(problem(known), None);
        for (spec, part) in [
            (json!({"effect": "Deny", "except": "a"}), "\"except\" is not known"),
            (json!({"effect": "Deny", "syncSelector": {"kinds": []}}), "\"kinds\" is not known"),
            (
                json!({"effect": "Deny", "syncSelector": {"matchExpressions": [
                    {"key": "a", "operator": "Exists", "prefix": "b"},
                ]}}),
                "\"prefix\" is not known",
            ),
            (
                json!({"effect": "Deny", "syncSelector": {"matchExpressions": [
                    {"key": "a", "operator": "In"},
                ]}}),
                "label \"a\" has no values",
            ),
            (json!({"effect": "Never"}), "unknown variant"),
            (json!({}), "missing field"),
            (json!({"effect": "Allow"}), "needs schedule and duration"),
            (json!({"effect": "Deny", "schedule": "* * * * *"}), "belong together"),
            (json!({"effect": "Deny", "schedule": "* * * * *", "duration": "0m"}), "the duration"),
            (json!({"effect": "Deny", "schedule": "* * * * *", "duration": "90s"}), "the duration"),
            (json!({"effect": "Deny", "schedule": "* * * * *", "duration": "8785h"}), "the duration"),
        ] {
            let said = problem(spec.clone()).unwrap_or_default();
            assert!(said.contains(part), "{spec}: {said}");
        }
    }

    #[test]
    fn the_search_for_an_opening_has_a_bound() {
        let begun = std::time::Instant::now();
        let minutely = || rule(deny("* * * * *", "1m"));
        let windows: Vec<CompiledWindow> = (0..50).map(|_| minutely()).collect();
        for _ in 0..10 {
            assert_eq!(state(&windows, "2026-11-27T22:00Z"), "held by ChangeWindow rule: lunch");
        }
        // Generous: without the bound it takes minutes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
        let look = minutely().next_look("2026-11-27T22:00Z".parse().unwrap()).unwrap();
        assert_eq!(look.to_string(), "2026-11-27T23:01:00Z", "not the end, which is never");
    }

    #[test]
    fn a_requirement_without_values_closes_instead_of_selecting_nothing() {
        let empty = json!({"matchExpressions": [{"key": "tier", "operator": "In"}]});
        check(vec![(
            "In without values",
            vec![rule(freeze("syncSelector", empty))],
            "27T22:00",
            "held by ChangeWindow rule, which cannot be read: the requirement on the label \"tier\" has no values",
        )]);
    }

    #[test]
    fn unknown_labels_of_a_namespace_close() {
        let labels = BTreeMap::new();
        let sync = WindowSubject { namespace: "shop", name: "web", labels: &labels, namespace_labels: None };
        let spec = json!({"effect": "Deny", "namespaceSelector": {"matchLabels": {"team": "a"}}});
        let by_label = [window(None, "rule", spec)];
        assert!(needs_namespace_labels(&by_label, &sync));
        let now = "2026-11-27T22:00Z".parse().unwrap();
        assert!(
            matches!(state_at(&by_label, &sync, now), WindowState::Closed(closed) if closed.until.is_none())
        );
        let spec = json!({"effect": "Deny", "namespaceSelector": {"names": ["other"]}});
        let by_name = [window(None, "rule", spec)];
        assert!(!needs_namespace_labels(&by_name, &sync));
        assert_eq!(state_at(&by_name, &sync, now), WindowState::Open);
    }
}
