//! Health rules for the kinds of third-party projects.
//!
//! In: a kind.
//! Out: its [`KindRule`], with the way to read its status and its deadline, or none. The rules are
//! data, one file for each subject. They follow the documentation of the projects; `docs/health.md`
//! is generated from them, and `tests/health_kinds.rs` has objects for every verdict that a rule
//! can give.

mod certificates;
mod clouds;
mod clusters;
mod computing;
mod databases;
mod delivery;
mod networks;
mod policies;
mod queues;
mod reading;
mod relational;
mod rule;
mod scaling;
mod search;
mod secrets;
mod storage;
mod telemetry;
mod words;

use std::collections::BTreeSet;

pub use rule::Answer;
use rule::{Project, Row, Rule, Says, Silence};

use super::live::Live;
use super::{Context, Health};
use moorline_core::object::GroupKind;

/// All projects, in the order of the documentation.
const PROJECTS: &[&[Project]] = &[
    certificates::PROJECTS,
    clusters::PROJECTS,
    computing::PROJECTS,
    databases::PROJECTS,
    delivery::PROJECTS,
    networks::PROJECTS,
    policies::PROJECTS,
    queues::PROJECTS,
    relational::PROJECTS,
    scaling::PROJECTS,
    search::PROJECTS,
    secrets::PROJECTS,
    storage::PROJECTS,
    telemetry::PROJECTS,
    // Last, because some of its rows match every group with the same suffix.
    clouds::PROJECTS,
];

/// Returns the health of an object; `None` without a rule for its kind.
pub(super) fn health(kind: &GroupKind, live: Live<'_>, context: &Context) -> Option<Health> {
    row(kind).map(|row| match &row.says {
        Says::Nothing => Health::Healthy,
        Says::Status { rule, .. } => reading::judge(rule, live, context),
    })
}

/// True for a kind without a health of its own: its status does not have to be read.
pub(super) fn is_still(kind: &GroupKind) -> bool {
    row(kind).is_some_and(|row| row.rule().is_none())
}

/// True for a kind whose controller writes a status for every object: without one it was not
/// processed yet.
pub(super) fn always_reports(kind: &GroupKind) -> bool {
    let rule = row(kind).and_then(Row::rule);
    rule.is_some_and(|rule| rule.silence != Silence::Perhaps)
}

/// Deadline for progress of a kind, in milliseconds.
pub(super) fn deadline(kind: &GroupKind) -> Option<i64> {
    match row(kind)?.says {
        Says::Nothing => None,
        Says::Status { minutes, .. } => Some(minutes * 60_000),
    }
}

fn row(kind: &GroupKind) -> Option<&'static Row> {
    let projects = PROJECTS.iter().flat_map(|projects| projects.iter());
    projects.flat_map(|project| project.rows).find(|row| row.is_for(kind))
}

impl Row {
    fn is_for(&self, kind: &GroupKind) -> bool {
        fits(self.group, &kind.group) && self.kinds.iter().any(|name| fits(name, &kind.kind))
    }

    fn rule(&self) -> Option<&Rule> {
        match &self.says {
            Says::Nothing => None,
            Says::Status { rule, .. } => Some(rule),
        }
    }
}

/// Matches a name; `*` at the start of the pattern matches any prefix.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => pattern == name,
    }
}

/// One rule for the documentation and its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Name of the project.
    pub project: &'static str,
    /// API group; `*` at the start matches any prefix.
    pub group: &'static str,
    /// Kinds; `*` at the start matches any prefix.
    pub kinds: &'static [&'static str],
    /// Reading of the status; `None` for kinds without a health of their own.
    pub status: Option<KnownStatus>,
}

/// Documentation of the way to read a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownStatus {
    /// Condition for health, as text.
    pub healthy: String,
    /// Deadline for progress, in minutes.
    pub minutes: i64,
    /// All verdicts that the rule can give.
    pub answers: BTreeSet<Answer>,
}

/// Returns all rules, in the order of the documentation.
pub fn known() -> Vec<Known> {
    let projects = PROJECTS.iter().flat_map(|projects| projects.iter());
    let rows = projects.flat_map(|project| project.rows.iter().map(move |row| (project.name, row)));
    rows.map(|(project, row)| Known::of(project, row)).collect()
}

impl Known {
    fn of(project: &'static str, row: &Row) -> Self {
        let status = match &row.says {
            Says::Nothing => None,
            Says::Status { rule, minutes } => Some(KnownStatus {
                healthy: words::healthy(rule),
                minutes: *minutes,
                answers: words::answers(rule),
            }),
        };
        Self { project, group: row.group, kinds: row.kinds, status }
    }

    /// Returns the entry of [`Self::kinds`] that matches this kind; `None` if another rule judges
    /// it.
    pub fn names(&self, kind: &GroupKind) -> Option<&'static str> {
        let row = row(kind)?;
        let is_this = std::ptr::eq(row.kinds, self.kinds) && row.group == self.group;
        let name = || self.kinds.iter().copied().find(|name| fits(name, &kind.kind));
        is_this.then(name).flatten()
    }
}
