//! Health rules for the kinds of third-party projects.
//!
//! In: a kind.
//! Out: its [`KindRule`], with the way to read its status and its deadline, or none. The rules are
//! data, one file for each subject. They follow the documentation of the projects; `docs/health.md`
//! is generated from them, and `tests/render/health_kinds.rs` has objects for every verdict that
//! a rule can give.

mod certificates;
mod clouds;
mod clusters;
mod computing;
mod databases;
mod delivery;
mod describe;
mod evaluate;
mod networks;
mod policies;
mod queues;
mod relational;
mod rule;
mod scaling;
mod search;
mod secrets;
mod storage;
mod telemetry;

use std::collections::BTreeSet;

pub use rule::Verdict;
use rule::{KindRule, MissingStatus, Project, Reporting, Rule};

use super::{Context, Health};
use crate::object_view::ObjectView;
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
pub(super) fn health(kind: &GroupKind, live: ObjectView<'_>, context: &Context) -> Option<Health> {
    find_rule(kind).map(|row| match &row.reporting {
        Reporting::Never => Health::Healthy,
        Reporting::Status { rule, .. } => crate::third_party::evaluate::evaluate(rule, live, context),
    })
}

/// True for a kind without a health of its own: its status does not have to be read.
pub(super) fn has_no_health(kind: &GroupKind) -> bool {
    find_rule(kind).is_some_and(|row| row.rule().is_none())
}

/// True for a kind whose controller writes a status for every object: without one it was not
/// processed yet.
pub(super) fn always_reports(kind: &GroupKind) -> bool {
    let rule = find_rule(kind).and_then(KindRule::rule);
    rule.is_some_and(|rule| rule.missing_status != MissingStatus::ByKind)
}

/// Deadline for progress of a kind, in milliseconds.
pub(super) fn deadline(kind: &GroupKind) -> Option<i64> {
    match find_rule(kind)?.reporting {
        Reporting::Never => None,
        Reporting::Status { minutes, .. } => Some(minutes * 60_000),
    }
}

fn find_rule(kind: &GroupKind) -> Option<&'static KindRule> {
    let projects = PROJECTS.iter().flat_map(|projects| projects.iter());
    projects.flat_map(|project| project.rows).find(|row| row.matches(kind))
}

impl KindRule {
    fn matches(&self, kind: &GroupKind) -> bool {
        matches_pattern(self.group, &kind.group)
            && self.kinds.iter().any(|name| matches_pattern(name, &kind.kind))
    }

    fn rule(&self) -> Option<&Rule> {
        match &self.reporting {
            Reporting::Never => None,
            Reporting::Status { rule, .. } => Some(rule),
        }
    }
}

/// Matches a name; `*` at the start of the pattern matches any prefix.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => pattern == name,
    }
}

/// One rule for the documentation and its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentedRule {
    /// Name of the project.
    pub project: &'static str,
    /// API group; `*` at the start matches any prefix.
    pub group: &'static str,
    /// Kinds; `*` at the start matches any prefix.
    pub kinds: &'static [&'static str],
    /// Reading of the status; `None` for kinds without a health of their own.
    pub status: Option<DocumentedStatus>,
}

/// Documentation of the way to read a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentedStatus {
    /// Condition for health, as text.
    pub healthy: String,
    /// Deadline for progress, in minutes.
    pub minutes: i64,
    /// All verdicts that the rule can give.
    pub verdicts: BTreeSet<Verdict>,
}

/// Returns all rules, in the order of the documentation.
pub fn documented_rules() -> Vec<DocumentedRule> {
    let projects = PROJECTS.iter().flat_map(|projects| projects.iter());
    let rows = projects.flat_map(|project| project.rows.iter().map(move |row| (project.name, row)));
    rows.map(|(project, row)| DocumentedRule::from_rule(project, row)).collect()
}

impl DocumentedRule {
    fn from_rule(project: &'static str, row: &KindRule) -> Self {
        let status = match &row.reporting {
            Reporting::Never => None,
            Reporting::Status { rule, minutes } => Some(DocumentedStatus {
                healthy: crate::third_party::describe::describe_rule(rule),
                minutes: *minutes,
                verdicts: crate::third_party::describe::possible_verdicts(rule),
            }),
        };
        Self { project, group: row.group, kinds: row.kinds, status }
    }

    /// Returns the entry of [`Self::kinds`] that matches this kind; `None` if another rule judges
    /// it.
    pub fn matching_kind(&self, kind: &GroupKind) -> Option<&'static str> {
        let row = find_rule(kind)?;
        let is_this = std::ptr::eq(row.kinds, self.kinds) && row.group == self.group;
        let name = || self.kinds.iter().copied().find(|name| matches_pattern(name, &kind.kind));
        is_this.then(name).flatten()
    }
}
