//! What other projects' kinds report, and what that means.
//!
//! In: a kind. Out: its [`Row`]: how its status is read, and for how long its objects may be on their way; or that it has
//! none. The rows are data, one file for what a few projects are about. They are written from what the projects document of
//! their statuses; `docs/health.md` is printed from them, and `tests/health_kinds.rs` has objects for everything that a row
//! can answer.

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

/// Every project, in the order of the documentation.
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
    // Last, because some of its rows are for every group with the same end.
    clouds::PROJECTS,
];

/// How an object of a kind is; none where no row is for the kind.
pub(super) fn health(kind: &GroupKind, live: Live<'_>, context: &Context) -> Option<Health> {
    row(kind).map(|row| match &row.says {
        Says::Nothing => Health::Healthy,
        Says::Status { rule, .. } => reading::judge(rule, live, context),
    })
}

/// True for a kind that only says something: its objects have no status that has to be read.
pub(super) fn is_still(kind: &GroupKind) -> bool {
    row(kind).is_some_and(|row| row.rule().is_none())
}

/// True for a kind of which an object without a status has not been looked at yet.
pub(super) fn always_reports(kind: &GroupKind) -> bool {
    let rule = row(kind).and_then(Row::rule);
    rule.is_some_and(|rule| rule.silence != Silence::Perhaps)
}

/// How long an object of a kind may be on its way, in milliseconds.
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

/// `*` stands for any beginning.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => pattern == name,
    }
}

/// A row for people: what is written of it in the documentation, and what its tests have to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The project.
    pub project: &'static str,
    /// The group; `*` stands for any beginning.
    pub group: &'static str,
    /// The kinds; `*` stands for any beginning.
    pub kinds: &'static [&'static str],
    /// How they are read; none for kinds that only say something.
    pub status: Option<KnownStatus>,
}

/// How kinds are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownStatus {
    /// When an object is healthy, in words.
    pub healthy: String,
    /// So many minutes it may be on its way without coming further.
    pub minutes: i64,
    /// All that may be said of one.
    pub answers: BTreeSet<Answer>,
}

/// Every row, in the order of the documentation.
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

    /// The one of its kinds by which this kind is judged, where that is this row.
    pub fn names(&self, kind: &GroupKind) -> Option<&'static str> {
        let row = row(kind)?;
        let is_this = std::ptr::eq(row.kinds, self.kinds) && row.group == self.group;
        let name = || self.kinds.iter().copied().find(|name| fits(name, &kind.kind));
        is_this.then(name).flatten()
    }
}
