//! Change windows: when Syncs may take up new revisions.
//!
//! In: the windows of a cluster, a Sync, and the time.
//! Out: [`WindowState`]: open, or closed by a window and until when. Deny wins; where no Allow
//! selects the Sync, it is open; what cannot be read is closed. The windows of the cluster and those
//! of the namespace are judged apart, and both have to be open.
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

/// Edges that the search for the next opening looks at.
const MAX_EDGES: usize = 400;

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
    let mut at = now.as_second();
    let Err(by) = judge(&chosen, at) else { return WindowState::Open };
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
        let edges = chosen.iter().filter_map(|window| window.activity(at).until);
        let Some(next) = edges.min() else { break };
        at = next;
        if judge(&chosen, at).is_ok() {
            return closed(Some(at));
        }
    }
    closed(None)
}

/// Returns the next time at which a window begins or ends.
pub fn next_edge<'a>(
    windows: impl IntoIterator<Item = &'a CompiledWindow>,
    now: Timestamp,
) -> Option<Timestamp> {
    windows.into_iter().filter_map(|window| window.state(now).1).min()
}

/// Returns the window that closes at this time; `Ok` if none does.
fn judge<'a>(chosen: &[&'a CompiledWindow], at: i64) -> Result<(), &'a CompiledWindow> {
    if let Some(unreadable) = chosen.iter().find(|window| window.problem().is_some()) {
        return Err(unreadable);
    }
    let of = |effect: WindowEffect| chosen.iter().filter(move |window| window.effect() == effect);
    if let Some(denying) = of(WindowEffect::Deny).find(|window| window.activity(at).is_active) {
        return Err(denying);
    }
    for is_namespaced in [false, true] {
        let mut nearest: Option<(i64, &CompiledWindow)> = None;
        let mut is_open = false;
        for window in of(WindowEffect::Allow).filter(|it| it.namespace().is_some() == is_namespaced) {
            let Activity { is_active, until } = window.activity(at);
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

    #[test]
    fn deny_wins_and_what_cannot_be_read_is_closed() {
        let nightly = || {
            let spec = json!({"effect": "Allow", "schedule": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin"});
            window(None, "nightly", spec)
        };
        let rule = |spec: Value| window(None, "rule", spec);
        let own = |spec: Value| window(Some("shop"), "own", spec);
        let noon =
            || json!({"effect": "Deny", "schedule": "0 12 * * *", "duration": "1h", "reason": "lunch"});
        let freeze = |extra: Value| {
            let mut spec = json!({"effect": "Deny"});
            spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            spec
        };
        let minute = json!({"effect": "Allow", "schedule": "0 0 * * *", "duration": "1m"});
        let at_night = "held until 2026-11-27 22:00 Europe/Berlin by ChangeWindow nightly";
        for (what, windows, now, expect) in [
            ("no window", vec![], "2026-11-27T12:30Z", "open"),
            ("a Deny that is over", vec![rule(noon())], "2026-11-27T13:00Z", "open"),
            (
                "a Deny",
                vec![rule(noon())],
                "2026-11-27T12:59:59Z",
                "held until 2026-11-27 13:00 UTC by ChangeWindow rule: lunch",
            ),
            ("an Allow that is on", vec![nightly()], "2026-11-27T21:00Z", "open"),
            ("its last second", vec![nightly()], "2026-11-28T04:59:59Z", "open"),
            ("an Allow that is over", vec![nightly()], "2026-11-27T20:59Z", at_night),
            ("the nearest of two", vec![rule(minute.clone()), nightly()], "2026-11-27T20:59Z", at_night),
            (
                "a Deny within an Allow",
                vec![
                    nightly(),
                    rule(json!({"effect": "Deny", "schedule": "0 21 27 11 *", "duration": "2h"})),
                ],
                "2026-11-27T20:59Z",
                "held until 2026-11-28 00:00 Europe/Berlin by ChangeWindow nightly",
            ),
            (
                "a freeze",
                vec![nightly(), rule(freeze(json!({})))],
                "2026-11-27T22:00Z",
                "held by ChangeWindow rule",
            ),
            (
                "a freeze of other Syncs",
                vec![rule(freeze(json!({"syncSelector": {"matchLabels": {"tier": "dev"}}})))],
                "2026-11-27T22:00Z",
                "open",
            ),
            (
                "a freeze of this namespace",
                vec![rule(freeze(json!({"namespaceSelector": {"matchLabels": {"team": "a"}}})))],
                "2026-11-27T22:00Z",
                "held by ChangeWindow rule",
            ),
            (
                "an unknown zone",
                vec![rule(
                    json!({"effect": "Allow", "schedule": "* * * * *", "duration": "8h", "timeZone": "Mars/Base"}),
                )],
                "2026-11-27T22:00Z",
                "held by ChangeWindow rule, which cannot be read: there is no time zone \"Mars/Base\"",
            ),
            (
                "an unknown schedule beside an Allow",
                vec![nightly(), rule(json!({"effect": "Allow", "schedule": "* * L * *", "duration": "8h"}))],
                "2026-11-27T22:00Z",
                "held by ChangeWindow rule, which cannot be read: the day of month \"L\" cannot be read",
            ),
            (
                "one that a newer version wrote",
                vec![CompiledWindow::unreadable(Some("shop"), "own", "effect")],
                "2026-11-27T22:00Z",
                "held by NamespaceChangeWindow own, which cannot be read: effect",
            ),
            (
                "another namespace's",
                vec![window(Some("other"), "own", freeze(json!({})))],
                "2026-11-27T22:00Z",
                "open",
            ),
            (
                "a namespace's Deny",
                vec![own(freeze(json!({})))],
                "2026-11-27T22:00Z",
                "held by NamespaceChangeWindow own",
            ),
            (
                "a namespace's Allow opens nothing of the cluster",
                vec![nightly(), own(json!({"effect": "Allow", "schedule": "* * * * *", "duration": "1h"}))],
                "2026-11-27T20:59Z",
                at_night,
            ),
            (
                "a namespace's Allow narrows",
                vec![nightly(), own(json!({"effect": "Allow", "schedule": "0 23 * * *", "duration": "1h"}))],
                "2026-11-27T22:00Z",
                "held until 2026-11-27 23:00 UTC by NamespaceChangeWindow own",
            ),
            ("an Allow of one minute", vec![rule(minute)], "2026-11-28T00:00:59Z", "open"),
            (
                "two that never meet",
                vec![
                    rule(json!({"effect": "Allow", "schedule": "0 1 * * *", "duration": "1h"})),
                    own(json!({"effect": "Allow", "schedule": "0 3 * * *", "duration": "1h"})),
                ],
                "2026-11-27T22:00Z",
                "held by ChangeWindow rule",
            ),
            (
                "without end",
                vec![rule(json!({"effect": "Deny", "schedule": "0 0 * * *", "duration": "25h"}))],
                "2026-11-27T22:00Z",
                "held by ChangeWindow rule",
            ),
        ] {
            assert_eq!(state(&windows, now), expect, "{what}");
        }
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
